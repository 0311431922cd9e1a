package measure

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// counters reads a strategy's own counters of some subjects in mid-run, by an instance of
// its own whose traffic is not the strategy's. If others have access to the store, a
// counter may change though no decision changed it.
type counters struct {
	site    *site // nil if nothing is read
	watched []harness.Subject
	list    []harness.Reading // times are those of the machine's clock
	stop    func()            // ends the reading
}

// Bounds of what is read: the subjects at a time, and the looks at a store between two
// readings of them.
const (
	maxWatched   = 32
	counterEvery = 2
)

// open prepares to read. If that is not possible, nothing is read.
func (c *counters) open(ctx context.Context, pass *pass) {
	if !pass.watchesCounters() {
		return
	}
	cfg := *pass.measurement.cfg
	cfg.Pool = 1
	measured := pass.site
	session := &harness.Session{Plan: &cfg.Plan, Selection: measured.Selection, Deadline: monitor.Timeout}
	c.site = &site{
		Session: session, cfg: &cfg, timebase: measured.timebase, scope: measured.scope, model: measured.model,
		jobs: newJobRunner(measured.timebase), stores: map[string]*siteStore{},
	}
	for name, store := range measured.stores {
		c.site.stores[name] = &siteStore{Store: store.Store, name: name}
	}
	if c.site.Open(ctx, 1, pass.run.Repetition, c.site) != nil {
		c.close(ctx)
	}
}

// watchesCounters reports whether others have access to the counters, and nothing but decisions is to change them.
func (p *pass) watchesCounters() bool {
	config := p.measurement.cfg
	kind := p.policy.Window.Kind
	onlyRise := kind == quota.Standing || kind.Tumbling()
	changes := len(p.site.Jobs) > 0 || len(p.site.outages) > 0 || p.site.loses("") || config.Workload.GivesBack ||
		len(config.Trouble.Of(trouble.Change, trouble.Tamper)) > 0
	return p.shared() && config.Peers == nil && !p.measurement.latencyOnly && p.site.Counts() && onlyRise && !changes
}

// shared reports whether others have access to a store of the strategy.
func (p *pass) shared() bool {
	for _, store := range p.site.stores {
		if !store.Owned() {
			return true
		}
	}
	return false
}

// begin reads until end is called.
func (c *counters) begin(ctx context.Context, drive *drive) {
	drive.shadowed = c.site != nil
	c.stop = clock.Aside(func(wait func(time.Duration) bool) {
		if c.site == nil {
			return
		}
		for wait(counterEvery * monitor.Every) {
			if force := drive.limit.Load(); force != nil {
				c.watch(drive)
				c.read(ctx, drive.timebase, force.policy)
			}
		}
	})
}

// end closes what open has opened.
func (c *counters) end(ctx context.Context) {
	c.stop()
	c.close(ctx)
}

// close leaves the stores alone, which are the strategy's.
func (c *counters) close(ctx context.Context) {
	if c.site != nil {
		c.site.stores = nil
		_ = c.site.close(ctx) // it was only read by
		c.site = nil
	}
}

// watch adds the subjects that are asked about now.
func (c *counters) watch(drive *drive) {
	at := max(drive.next.Load(), int64(drive.perSecond*time.Duration(drive.timebase.nano()-drive.epoch).Seconds()))
	var op workloads.Op
	for i := at; i < min(at+2*maxWatched, drive.requests); i++ {
		drive.stream.At(i, &op)
		if !slices.ContainsFunc(c.watched, func(subject harness.Subject) bool { return subject.Number == op.Subject }) {
			c.watched = append(c.watched, harness.Subject{Number: op.Subject, Name: drive.subjects.at(op.Subject).name})
		}
	}
	c.watched = c.watched[max(0, len(c.watched)-maxWatched):]
}

func (c *counters) read(ctx context.Context, tb *timebase, policy *quota.Policy) {
	list, err := c.site.Read(ctx, harness.ReadConfig{Policy: policy, Now: tb.nano}, c.watched)
	if err == nil { // otherwise the monitor of the store tells
		c.list = append(c.list, list...)
	}
}

// jump is a change of a counter that no decision explains.
type jump struct {
	before, after harness.Reading
	from, to      int64 // when it happened, in nanoseconds since the epoch
}

// jumps are the changes that no decision of the run explains, as one finding about the store.
func (c *counters) jumps(pass *pass, facts *harness.Facts) ([]harness.Notice, error) {
	all, err := c.strangers(pass, facts)
	if err != nil {
		return nil, err
	}
	seen, err := c.seen(pass, facts)
	if err != nil {
		return nil, err
	}
	all = append(all, seen...)
	if len(all) == 0 {
		return nil, nil
	}
	for _, jump := range all {
		facts.Changed = append(facts.Changed, jump.after.Subject)
	}
	return []harness.Notice{{Code: "store-changed", Detail: pass.describe(all)}}, nil
}

// seen are the changes that two readings show.
func (c *counters) seen(pass *pass, facts *harness.Facts) (all []jump, err error) {
	if len(c.list) == 0 {
		return nil, nil
	}
	counts := readingsOf(c.sinceEpoch(pass.drive.epoch, facts), facts.Initial)
	limit := facts.Policy.Limit
	if !counts.suspect(limit) {
		return nil, nil // the history need not be read
	}
	for events, err := range facts.History.Subjects() {
		if err != nil {
			return nil, err
		}
		for _, readings := range counts[events[0].Subject] {
			all = append(all, unexplained(pass.drive, events, readings, limit)...)
		}
	}
	return all, nil
}

// sinceEpoch are the readings in mid-run and then those at rest, with times since the epoch.
func (c *counters) sinceEpoch(epoch int64, facts *harness.Facts) []harness.Reading {
	list := slices.Clone(c.list)
	for i := range list {
		list[i].Call -= epoch
		list[i].Reply -= epoch
	}
	for _, readings := range facts.Readings {
		if readings.At == harness.AtRest {
			list = append(list, readings.List...)
		}
	}
	return list
}

// readings are the readings of each counter, by subject and tier.
type readings map[uint32]map[string][]harness.Reading

// readingsOf begins with what subjects had used at the epoch.
func readingsOf(list []harness.Reading, initial func(subject uint32) int64) readings {
	counts := readings{}
	for _, reading := range list {
		if reading.Tier == string(quota.TierProcess) { // which others cannot reach
			continue
		}
		tiers := counts[reading.Subject]
		if tiers == nil {
			tiers = map[string][]harness.Reading{}
			counts[reading.Subject] = tiers
		}
		if tiers[reading.Tier] == nil && initial != nil {
			begun := harness.Reading{Subject: reading.Subject, Tier: reading.Tier, Units: initial(reading.Subject)}
			tiers[reading.Tier] = []harness.Reading{begun}
		}
		tiers[reading.Tier] = append(tiers[reading.Tier], reading)
	}
	return counts
}

// suspect reports whether a counter fell, or rose by more than the limit.
func (r readings) suspect(limit int64) bool {
	for _, tiers := range r {
		for _, readings := range tiers {
			least := int64(math.MaxInt64)
			most := int64(math.MinInt64)
			for i, reading := range readings {
				if i > 0 && (reading.Units < most || stat.Sum(reading.Units, -least) > limit) {
					return true
				}
				least = min(least, reading.Units)
				most = max(most, reading.Units)
			}
		}
	}
	return false
}

// describe tells of the first jump, and how many more there are.
func (p *pass) describe(all []jump) string {
	first := slices.MinFunc(all, func(x, y jump) int { return cmp.Compare(x.to, y.to) })
	more := ""
	if n := len(all) - 1; n > 0 {
		more = fmt.Sprintf(", and %s more", format.Number(n, "counter"))
	}
	subject := p.drive.subjects.at(first.after.Subject)
	return fmt.Sprintf("somebody else changed what the strategy counted in %s: the counter of %s went from %d to "+
		"%d %s, which no decision of the run explains%s; if it was the strategy, a server of the run's own shows it",
		first.after.Tier, subject.name, first.before.Units, first.after.Units, monitor.Span(first.from, first.to), more)
}

// margin is how far readings are from the end of a window, so that other clocks have them in
// the same one.
const margin = int64(time.Second)

// unexplained are the jumps of one subject's counter in one tier. A decision writes what it
// has read, or more: a counter that is not lowered by others never falls below what it was
// when the last time no decision was in flight, whatever a race loses. It does not rise by
// more than the units asked for either, with a wide margin. Decisions in flight may lower it
// for a moment, each by what it asks for.
func unexplained(drive *drive, events []oracle.Event, readings []harness.Reading, limit int64) (out []jump) {
	if slices.ContainsFunc(events, func(event oracle.Event) bool { return event.Outcome == oracle.Failed }) {
		return nil // which may take effect at any time
	}
	least := int64(math.MinInt64)
	var before harness.Reading // the last one
	for i, reading := range readings {
		if !inOneWindow(drive, reading) || i > 0 && !sameWindow(drive, before, reading) {
			least = math.MinInt64
			before = reading
			continue
		}
		lowered := inFlight(events, reading)
		if i > 0 && least > math.MinInt64 {
			asked := askedBetween(events, before, reading)
			fell := stat.Sum(reading.Units, lowered) < least
			if fell || stat.Sum(reading.Units, -before.Units) > limit+2*asked {
				out = append(out, jump{before, reading, before.Reply, reading.Call})
				least = math.MinInt64
			}
		}
		least = max(least, reading.Units-lowered)
		before = reading
	}
	return out
}

// inOneWindow reports whether a reading is far enough from the ends of its window.
func inOneWindow(drive *drive, reading harness.Reading) bool {
	call := reading.Call + drive.epoch
	reply := reading.Reply + drive.epoch
	window := drive.window(call)
	begun := window.index == drive.firstWindow || call-window.start > margin
	return begun && window.end-reply >= margin
}

// sameWindow reports whether two readings are in the same one.
func sameWindow(drive *drive, one, other harness.Reading) bool {
	return drive.window(one.Call+drive.epoch).index == drive.window(other.Call+drive.epoch).index
}

// askedBetween are the units of the decisions that may have come between two readings.
func askedBetween(events []oracle.Event, before, after harness.Reading) (units int64) {
	for _, event := range events {
		if event.Reply >= before.Call && event.Call <= after.Reply {
			units += event.Units
		}
	}
	return units
}

// inFlight are the units of the decisions since the last moment before a reading at which
// none was in flight.
func inFlight(events []oracle.Event, reading harness.Reading) (units int64) {
	from := reading.Call
	for _, event := range slices.Backward(events) { // by their calls
		if event.Call <= reading.Reply && event.Reply >= from {
			from = min(from, event.Call)
		}
	}
	for _, event := range events {
		if event.Call <= reading.Reply && event.Reply >= from {
			units += event.Units
		}
	}
	return units
}
