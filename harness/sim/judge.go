package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/quotabench/quotabench/harness/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// blank is a run with everything that is known before it starts.
func (p *pass) blank() results.Run {
	c := p.cfg
	window := c.Policy.Window.Kind.String()
	if c.Policy.Window.Length > 0 {
		window += " " + c.Policy.Window.Length.String()
	}
	n := int64(4096)
	if l := p.stream.Len(); l > 0 {
		n = min(n, l)
	}
	params := results.Params{
		Label: p.sel.String(), Limit: c.Policy.Limit, Unit: c.Policy.Unit, Window: window,
		Loop: results.ClosedLoop, Workers: c.Workers, Instances: c.Topology.total(),
		Subjects: workloads.Subjects(p.stream), Requests: c.Requests, DurationNS: int64(c.Duration), Speed: c.Stream.Speed,
		Popularity: c.Stream.Popularity, Cost: c.Stream.Cost, Fill: c.Stream.Fill, OverQuota: c.Stream.OverQuota,
		Stream: workloads.Fingerprint(p.stream, n),
	}
	if p.open() {
		params.Loop, params.Arrivals = results.OpenLoop, "recorded"
		if c.Stream.Speed == 0 {
			params.RatePerS = p.rate()
			params.Arrivals = c.Arrivals
			setDefault(&params.Arrivals, "poisson")
		}
	}
	return results.Run{
		Strategy: p.sel.Name, Form: string(p.sel.Form), Options: p.sel.Options, Policy: c.Policy.Name,
		Workload: c.Workload.Name, Params: params, Repetition: 1, Guarantee: []results.Clause{},
		Audit: results.Audit{Valid: true, TimingsValid: true, Reasons: []results.Reason{}},
	}
}

// judge turns a finished pass into its figures.
func (p *pass) judge() error {
	d, r := p.d, &p.run
	r.Issued, r.Admitted, r.Rejected, r.Errors, r.Degraded = d.issued, d.admitted, d.rejected, d.failed, d.degraded
	if d.firstError != nil {
		r.FirstError = d.firstError.Error()
	}
	r.ElapsedNS = max(0, d.lastEnd-d.epoch)
	d.series.finish()
	if err := p.latencies(); err != nil {
		return err
	}
	events := d.history.Events()
	cfg := oracle.Config{
		Window: p.policy.Window, Limit: p.policy.Limit, Epoch: p.cfg.Start,
		Initial: func(s uint32) int64 { return d.truth.subjects[s].initial },
	}
	v := oracle.Judge(cfg, events)
	p.correctness(&v)
	p.rolling(cfg, events, &v)
	if err := p.drift(events); err != nil {
		return err
	}
	p.costs()
	p.audit(&v)
	return nil
}

func (p *pass) latencies() error {
	d, r := p.d, &p.run
	var err error
	if r.Latency, err = d.response.Latency(); err != nil {
		return err
	}
	keys := make([][2]uint8, 0, len(d.parts))
	for k := range d.parts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]uint8) int { return (int(a[0])-int(b[0]))*256 + int(a[1]) - int(b[1]) })
	for _, k := range keys {
		l, err := d.parts[k].Latency()
		if err != nil {
			return err
		}
		name := [...]string{"admitted", "rejected", "error"}[k[0]]
		r.Latency.Parts = append(r.Latency.Parts, results.LatencyPart{Outcome: name, Tier: string(d.tiers[k[1]]), Latency: l})
	}
	if p.open() {
		s, err := d.service.Latency()
		if err != nil {
			return err
		}
		r.Service = &s
	}
	if p.cfg.Workload.GivesBack {
		l, err := d.settled.Latency()
		if err != nil {
			return err
		}
		r.Settlement = &results.Settlement{Commits: d.commits, Refunds: d.refunds, Abandoned: d.abandoned, Errors: d.settleErrors, Latency: l}
	}
	return nil
}

func (p *pass) correctness(v *oracle.Verdict) {
	l := &p.run.Leak
	l.Units, l.Possible, l.WorstUnits, l.Subjects, l.Violations = v.LeakUnits, v.LeakPossible, v.LeakWorst, v.LeakSubjects, v.Violations
	l.Crossings, l.OverUnits, l.Requests = v.Crossings, v.OverOffered, v.LeakedRequests
	if v.Crossings > 0 {
		l.Pct = 100 * float64(v.LeakUnits) / (float64(p.policy.Limit) * float64(v.Crossings))
		s := slices.Sorted(slices.Values(v.CrossingLeaks))
		l.MedianUnits = float64(s[(len(s)-1)/2]+s[len(s)/2]) / 2
	}
	if v.OverOffered > 0 {
		l.PctOfOver = 100 * float64(v.LeakUnits) / float64(v.OverOffered)
	}
	f := &p.run.FalseRejects
	f.Count, f.Possible, f.Units = v.FalseRejects, v.FalseRejectsPossible, v.FalseRejectUnits
	if n := v.FalseRejects + v.Admitted.Requests - v.LeakedRequests; n > 0 {
		f.Pct = 100 * float64(v.FalseRejects) / float64(n)
	}
	f.Explained = v.Explained()
}

// rolling judges a run across a boundary once more, as if its windows were
// rolling ones, and holds the strategy to what it declares of either.
func (p *pass) rolling(cfg oracle.Config, events []oracle.Event, v *oracle.Verdict) {
	var other *oracle.Verdict
	if p.cfg.Workload.Boundary && p.policy.Window.Kind.Tumbling() {
		span := p.policy.Window.At(cfg.Epoch)
		cfg.Window = quota.Window{Kind: quota.Rolling, Length: span.End.Sub(span.Start)}
		o := oracle.Judge(cfg, events)
		other = &o
		worst := min(p.policy.Limit, o.Admitted.Units)
		if o.LeakWorst > 0 {
			worst = p.policy.Limit + o.LeakWorst
		}
		p.run.Rolling = &results.Rolling{
			WorstUnits: worst, Multiple: float64(worst) / float64(p.policy.Limit), Units: o.LeakUnits, Possible: o.LeakPossible,
		}
	}
	params := strategies.Params{
		Limit: p.policy.Limit, MaxCost: v.MaxCost, InFlight: v.MaxInFlight, Instances: int64(p.cfg.Topology.total()),
		Offered: v.MaxOffered, SyncPeriod: p.syncPeriod(), Skew: p.cfg.Topology.maxSkew(),
	}
	if params.Skew > 0 {
		own := p.ownClocks(cfg, events)
		v = &own
		p.run.Audit.Strike("clocks-differ", results.StrikesNote, fmt.Sprintf(
			"instances' clocks differ by up to %v: by their own clocks, %d units leaked and %d requests were rejected wrongly",
			params.Skew, own.LeakUnits, own.FalseRejects))
	}
	if t := &p.cfg.Topology; len(t.Regions) > 1 && !t.SharedRedis && p.sel.NeedsStore(strategies.NeedRedis) {
		if len(p.sel.Guarantee) > 0 {
			p.run.Audit.Strike("guarantee-not-judged", results.StrikesNote,
				"what it declares is about one Redis, and here each region counts in its own")
		}
		return
	}
	for _, c := range p.sel.Guarantee {
		// A clock that is ahead makes deadlines pass early. Whoever tolerates that is
		// judged by the clocks that its instances have.
		if params.Skew > 0 && !slices.Contains(c.Tolerates, strategies.FaultClock) {
			continue
		}
		switch {
		case c.Applies(p.policy.Window.Kind):
			p.run.Guarantee = append(p.run.Guarantee, p.clause(c, params, v))
		case other != nil && slices.Contains(c.Kinds, quota.Rolling):
			p.run.Guarantee = append(p.run.Guarantee, p.clause(c, params, other))
		}
	}
}

// ownClocks judges the run with every request at the moment that its instance's
// clock showed, which decides what window it belongs to for the strategy.
func (p *pass) ownClocks(cfg oracle.Config, events []oracle.Event) oracle.Verdict {
	cfg.Window = p.policy.Window
	shifted := slices.Clone(events)
	for i := range shifted {
		e := &shifted[i]
		skew := int64(p.cfg.Topology.skew(int(e.Instance)))
		e.Call += skew
		e.Reply += skew
	}
	return oracle.Judge(cfg, shifted)
}

func (p *pass) clause(c strategies.Clause, params strategies.Params, v *oracle.Verdict) results.Clause {
	r := results.Clause{Property: string(c.Property), Formula: c.Formula, Bound: c.Bound(params)}
	var exercised bool
	r.Certain, r.Possible, exercised = v.Broken(c.Property)
	r.Decide(exercised)
	return r
}

// syncPeriod is the longest period of a job.
func (p *pass) syncPeriod() (d time.Duration) {
	for _, in := range p.st.instances {
		if j, ok := in.(strategies.Jobber); ok {
			for _, job := range j.Jobs() {
				d = max(d, job.Every)
			}
		}
	}
	return d
}

// maxReadings bounds the subjects whose counters are read at rest.
const maxReadings = 500

// drift reads counters at rest: nothing is in flight, and woken jobs have ended.
func (p *pass) drift(events []oracle.Event) error {
	if len(p.d.series.viewers) == 0 || p.sel.Counts == strategies.CountsNothing || p.d.history.Overflowed() {
		return nil
	}
	var starts []int
	for i := range events {
		if i == 0 || events[i].Subject != events[i-1].Subject {
			starts = append(starts, i)
		}
	}
	if len(starts) > maxReadings {
		rng := rand.New(rand.NewPCG(p.cfg.Seed, 1))
		rng.Shuffle(len(starts), func(i, j int) { starts[i], starts[j] = starts[j], starts[i] })
		starts = starts[:maxReadings]
	}
	now := p.d.now()
	w := p.d.windowAt(now)
	out := &results.Drift{Tiers: []results.TierDrift{}}
	index := map[string]int{}
	for _, from := range starts {
		n := sort.Search(len(events)-from, func(i int) bool { return events[from+i].Subject > events[from].Subject })
		if err := p.driftOf(events[from:from+n], now, w, out, index); err != nil {
			return err
		}
	}
	for _, t := range out.Tiers {
		if abs(t.Units) >= abs(out.Units) {
			out.Units, out.PctOfLimit, out.PctOfUsage = t.Units, t.PctOfLimit, t.PctOfUsage
		}
	}
	p.run.Drift = out
	return nil
}

func (p *pass) driftOf(events []oracle.Event, now int64, w window, out *results.Drift, index map[string]int) error {
	s := &p.d.truth.subjects[events[0].Subject]
	initial := s.initial
	if p.policy.Window.Kind.Tumbling() {
		if w.index != p.d.truth.first {
			initial = 0
		}
		from := sort.Search(len(events), func(i int) bool { return events[i].Call+p.d.epoch >= w.start })
		if slices.ContainsFunc(events[:from], func(e oracle.Event) bool { return e.Reply+p.d.epoch >= w.start }) {
			return nil
		}
		events = events[from:]
	}
	if p.policy.Window.Kind == quota.Rolling {
		from := sort.Search(len(events), func(i int) bool { return events[i].Reply+p.d.epoch > now-int64(p.policy.Window.RealLength()) })
		events, initial = events[from:], 0
	}
	at := oracle.Reading{Call: now - p.d.epoch + 1, Reply: now - p.d.epoch + 1}
	want, surplus, err := oracle.Expected(events, at, p.sel.Counts, initial)
	if err != nil {
		return err
	}
	for _, v := range p.d.series.viewers {
		got, err := v.Used(context.Background(), s.name, &p.policy)
		if err != nil {
			return fmt.Errorf("read counters: %w", err)
		}
		for _, g := range got {
			name := string(g.Tier)
			if v.region != "" && g.Tier == quota.TierRedis {
				name += " " + v.region
			} else if !v.first {
				continue
			}
			i, ok := index[name]
			if !ok {
				i = len(out.Tiers)
				index[name] = i
				out.Tiers = append(out.Tiers, results.TierDrift{Tier: name, At: "rest"})
			}
			p.addReading(&out.Tiers[i], g, want, surplus)
		}
	}
	return nil
}

func (p *pass) addReading(t *results.TierDrift, g quota.Reading, want, surplus oracle.Interval) {
	t.Readings++
	t.Surplus += surplus.Lo
	drift := want.Distance(g.Units)
	switch {
	case !g.Known:
		t.Unknown++
	case drift != 0:
		t.Drifting++
		t.Total += abs(drift)
		if abs(drift) > abs(t.Units) {
			t.Units, t.Width, t.PctOfUsage = drift, want.Width(), 0
			t.PctOfLimit = 100 * float64(drift) / float64(p.policy.Limit)
			if usage := want.Lo - surplus.Lo; usage > 0 {
				t.PctOfUsage = 100 * float64(drift) / float64(usage)
			}
		}
	}
}

func (p *pass) costs() {
	c, n := &p.run.Cost, float64(p.d.issued)
	c.KeysAtEnd, c.KeysWithoutTTL = p.st.keys()
	if n == 0 {
		return
	}
	var commands int64
	for _, r := range p.st.redis {
		commands += r.served
	}
	c.Commands = float64(commands) / n
	c.ModelSQL = float64(p.st.postgres.served) / n
	c.RoundTrips = float64(p.st.w.legs) / n
	if m, ok := p.st.instances[0].(strategies.Meter); ok {
		p.run.Meter = map[string]int64{}
		for i := range p.st.instances {
			if i > 0 {
				m = p.st.instances[i].(strategies.Meter)
			}
			for _, x := range m.Measures() {
				p.run.Meter[x.Name] += x.Value
			}
		}
	}
}
