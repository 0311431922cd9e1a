package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/trouble"
	conditions "github.com/quotabench/quotabench/internal/trouble/network"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// pass is one strategy's run.
type pass struct {
	cfg    *Config
	sel    strategies.Selection
	stream workloads.Stream
	info   workloads.Info
	open   func() (fakeredis.Redis, error)
	beat   *sched.Beat
	number int       // of the strategy, for [Progress]
	real   time.Time // by the wall clock, when it began
	policy quota.Policy

	run    results.Run
	series results.Series
	// overwritten counts the values in Redis that were changed as planned.
	overwritten int64

	site  *site
	drive *drive
	// begun is set once requests are issued; cut if it ended while calls were in flight; abandoned if its judgement
	// goes on by itself, and closes the history.
	begun, cut, abandoned bool
	restarts              []int64       // of instances, since the epoch
	paused                time.Duration // for how long an instance stood still at most
	// failed is the strategy's panic while calls are in flight; nil if there was none.
	failed error
	// resting is nil until nothing is in flight.
	resting *atRest
	// trail of this process; nil unless it is a child.
	trail *isolate.Trail
}

// newPass is a pass of which only the question is known.
func newPass(cfg *Config, sel strategies.Selection, stream workloads.Stream, info workloads.Info) *pass {
	if _, other := cfg.Policies[sel.String()]; other {
		own := *cfg
		own.Plan = cfg.For(sel)
		cfg = &own
	}
	p := &pass{cfg: cfg, sel: sel, stream: stream, info: info, number: unasked, run: cfg.Blank(sel, 1, stream, info)}
	p.run.Params.Instances = cfg.Topology.total()
	p.series = results.Series{Strategy: p.run.Params.Label, Unit: cfg.Policy.Unit, Counters: []string{}, Tiers: []string{},
		Samples: []results.Sample{}}
	return p
}

// discard notes that the run has failed before it could be judged.
func (p *pass) discard(err error) {
	p.begun = true
	harness.DiscardFailed(&p.run, err)
}

// openLoop reports whether the loop is open.
func (p *pass) openLoop() bool { return p.cfg.Open(p.info) }

func (p *pass) arrivals() (workloads.Arrivals, error) {
	if !p.openLoop() {
		return nil, nil
	}
	base, err := p.cfg.NewArrivals(p.stream, 1)
	if err != nil {
		return nil, err
	}
	return p.cfg.rush(base)
}

// drain is how much virtual time what is in flight, and sessions, may take after
// the last request.
const drain = 48 * time.Hour

// simulate runs and judges.
func (p *pass) simulate(ctx context.Context) (err error) {
	defer guard.Caught("being looked at", &err)
	p.policy = p.cfg.Align(p.info, p.cfg.Start, p.cfg.Duration)
	hash := newStepHash()
	var late atomic.Bool // what is in flight has had its time to end
	defer context.AfterFunc(ctx, func() { time.AfterFunc(abortGrace, func() { late.Store(true) }) })()
	interrupt := late.Load
	if p.sel.Foreign { // what ends a context outside of the bubble must not reach into it
		interrupt = func() bool { return ctx.Err() != nil }
	}
	network := newNetwork(p.cfg, hash, interrupt, p.beat)
	network.witness = p.newWitness()
	network.careful = !stacks.InCatalogue(p.sel.Open)
	if p.sel.Foreign {
		p.liveThrough(network)
	}
	p.site, err = openSite(ctx, p.cfg, p.sel, network, p.open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.site.close(context.WithoutCancel(ctx))) }()
	if err := p.newDrive(ctx, network.scheduler); err != nil {
		return err
	}
	defer func() {
		if !p.abandoned {
			err = errors.Join(err, p.drive.history.Close())
		}
	}()
	p.drive.witness = network.witness
	if err := p.metered(func() error { return p.issue(ctx, network) }); err != nil {
		return err
	}
	p.run.Trace = fmt.Sprintf("%016x", hash.h)
	if err := cmp.Or(p.drive.series.err, p.drive.changeErr); err != nil {
		return err
	}
	judging, end := harness.Judging(ctx)
	defer end()
	if err := p.judge(ctx, judging); err != nil || p.failed != nil {
		return err
	}
	if err := p.probe(ctx); err != nil && !errors.Is(err, sched.ErrInterrupted) {
		return err
	}
	for _, reason := range p.drive.witness.Reasons() {
		p.run.Audit.Discard(string(reason.Code), codes.DiscardsCorrectness, reason.Detail)
	}
	return nil
}

// heap is how much memory a simulation takes before garbage is collected all the same.
const heap = 2 << 30

// metered measures the processor time of all requests, if it is wanted. What a collection would cost depends on what
// the simulation keeps, so there is none.
func (p *pass) metered(issue func() error) error {
	if !p.cfg.CPU {
		return issue()
	}
	runtime.GC()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(heap))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	began := clock.Processor()
	err := issue()
	p.run.Cost.ClientCPU = float64(clock.Processor()-began) / float64(max(p.drive.issued, 1))
	return err
}

// issue has all requests issued, and waits until nothing is in flight.
func (p *pass) issue(ctx context.Context, w *network) error {
	config := p.cfg
	drive := p.drive
	scheduler := w.scheduler
	drive.rest = func() { p.rest(ctx) }
	w.watching = true
	drive.begin()
	p.others(scheduler)
	horizon := time.Unix(0, math.MaxInt64/2)
	if config.Duration > 0 {
		horizon = config.Start.Add(config.Duration)
	}
	p.begun = true
	if err := p.stopping(ctx, horizon); err != nil {
		return err
	}
	if err := p.keep(ctx); err != nil {
		return err
	}
	drive.over = drive.over || config.Duration > 0
	drive.calm()
	if p.failed == nil {
		if err := p.through(scheduler.Now().Add(drain)); err != nil {
			return err
		}
	}
	for _, server := range p.site.redis {
		if server.unfit != nil {
			return server.unfit
		}
	}
	if p.failed != nil { // what is in flight ends with it
		scheduler.Close()
		harness.DiscardFailed(&p.run, p.failed)
	}
	drive.judged = true
	w.watching = false
	return nil
}

// others begins what goes on next to the callers: samples, changes of the limit, and changes of counters by somebody
// else.
func (p *pass) others(scheduler *sched.Scheduler) {
	drive := p.drive
	if drive.series.every > 0 {
		scheduler.Go("sampler", drive.series.run)
	}
	if changes := p.cfg.Trouble.Of(trouble.Change); len(changes) > 0 {
		scheduler.Go("operator", func(ctx context.Context) {
			onTime(ctx, drive, changes, func(event *trouble.Event) error {
				return drive.change(ctx, event.What.Units, p.site.through())
			})
		})
	}
	if tampered := p.cfg.Trouble.Of(trouble.Tamper); len(tampered) > 0 {
		scheduler.Go("somebody else", func(ctx context.Context) { onTime(ctx, drive, tampered, p.overwrite) })
	}
}

// abortGrace is how long, of real time, what is in flight may take to end after Ctrl-C.
const abortGrace = 500 * time.Millisecond

// through lets virtual time pass up to a moment, unless the run is cut short.
func (p *pass) through(until time.Time) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *sched.Panic:
			p.failed = &guard.PanicError{Where: v.Actor, Value: v.Value, Stack: v.Stack}
			p.cut = true
		default:
			panic(v)
		}
	}()
	err = p.site.scheduler.Simulate(until, p.site.network.latency)
	if errors.Is(err, sched.ErrInterrupted) {
		p.cut = true
		err = nil
	}
	return err
}

// historyEvents of a pass stay in memory, which take 32 MiB, and twice that before the
// garbage collector looks. What comes before them goes to a file, in a third of that.
const historyEvents = 1 << 20

func (p *pass) newDrive(ctx context.Context, scheduler *sched.Scheduler) error {
	config := p.cfg
	d := &drive{
		cfg: config, scheduler: scheduler, site: p.site, number: p.number, clock: scheduler.Clock(0), policy: &p.policy,
		stream: p.stream, epoch: config.Start.UnixNano(),
		requests: math.MaxInt64, history: config.NewHistory(1, historyEvents),
		placement: seed.Stream(config.Seed, seed.Placement),
		tiers:     []quota.Tier{""}, hits: []int64{0}, service: results.NewHistogram(), settled: results.NewHistogram(),
	}
	p.drive = d
	d.live, d.liveParts = config.Live.begin(&p.run), map[[2]uint8]*stat.LiveLatency{}
	d.aborted = func() bool { return ctx.Err() != nil }
	d.stop = func() bool {
		return d.aborted() || p.site.unknown() != "" || d.witness.Noted(witness.OtherClient) || d.history.Full()
	}
	var err error
	d.arrivals, err = p.arrivals()
	if err != nil {
		return err
	}
	d.truth = truth{policy: &p.policy, flow: p.policy.Window.Flow(), counts: p.sel.Counts, tracked: config.Tracked,
		epoch: d.epoch}
	d.truth.span = d.windowAt(d.epoch)
	d.truth.first = d.truth.span.index
	d.truth.lowest = config.LowestLimit()
	d.truth.change(p.policy.Limit, p.policy.Limit)
	if err := p.provision(ctx); err != nil {
		return err
	}
	p.series.Outages = append(p.site.network.sinceStart(d.epoch), p.cfg.NetworkSpans(true, int64(p.cfg.Duration))...)
	d.series = &sampler{drive: d, out: &p.series, every: p.every()}
	return nil
}

// provision makes the subjects and sets them up.
func (p *pass) provision(ctx context.Context) error {
	drive := p.drive
	perSecond := 0.0
	if p.openLoop() {
		perSecond = p.cfg.RateInForce()
	}
	var n int
	drive.requests, n = p.cfg.Size(p.stream, perSecond)
	p.run.Params.Subjects = n
	drive.truth.subjects = make([]subject, n)
	grants := harness.Grants(p.stream, &p.policy, n)
	if err := p.site.Provision(ctx, &p.policy, grants, p.site.through()...); err != nil {
		return err
	}
	for i, grant := range grants {
		s := &drive.truth.subjects[i]
		*s = subject{name: grant.Subject, initial: grant.Used,
			inWindow: inWindow{window: drive.truth.first, used: grant.Used}}
		s.cell.Fill(grant.Used)
		drive.truth.fillOwn(s, drive.epoch)
		drive.truth.usage += grant.Used
		drive.truth.fill += grant.Used
		if p.policy.Window.Kind == quota.Rolling && grant.Used > 0 {
			s.recent = append(s.recent, charge{at: drive.epoch, units: grant.Used, fill: true})
			drive.truth.recent = append(drive.truth.recent, charge{at: drive.epoch, units: grant.Used, fill: true})
		}
	}
	return nil
}

// errRestarted is what a caller sees of a process that ends.
var errRestarted = conditions.Reset("planned restart")

// stopping lets virtual time pass up to a moment, and carries out what is planned until then.
func (p *pass) stopping(ctx context.Context, until time.Time) error {
	for _, event := range p.cfg.Trouble.Of(trouble.Pause, trouble.Restart).InTime() {
		at, _ := event.When.Within(p.cfg.Duration)
		// then nothing is left to do
		if err := p.through(p.cfg.Start.Add(at)); err != nil || p.cut || p.site.scheduler.Since() < at {
			return err
		}
		if err := p.stop(ctx, &event, at); err != nil {
			return err
		}
	}
	return p.through(until)
}

// stop has instances stand still, or opens them anew and ends what they were doing.
func (p *pass) stop(ctx context.Context, event *trouble.Event, at time.Duration) error {
	for i, process := range p.site.process {
		switch {
		case !event.Where.Has(i):
			continue
		case event.What.Word == trouble.Paused:
			p.paused = max(p.paused, process.Pause(event.What.For))
			continue
		}
		p.site.network.watching = false
		err := p.site.Reopen(context.WithoutCancel(ctx), p.site, i)
		p.site.network.watching = true
		if err != nil {
			return err
		}
		process.Crash(errRestarted)
		p.restarts = append(p.restarts, int64(at))
	}
	return nil
}
