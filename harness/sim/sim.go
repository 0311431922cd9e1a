package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Report is what a simulation found.
type Report struct {
	Runs   []results.Run
	Series []results.Series // one per run
	// Traces are hashes of all that happened, one per run.
	Traces []uint64
	// Info describes the workload's stream.
	Info workloads.Info
	// Interrupted is set where the context ended before the last strategy.
	Interrupted bool
}

// Run simulates every strategy of cfg that can take part, one after the other and
// each from the same seed. A strategy that fails is reported with an audit that
// says so. An error means that nothing could be simulated.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	p := cfg.Stream
	p.Seed, p.Policy, p.Requests = cfg.Seed, &cfg.Policy, cfg.Requests
	stream, info, err := cfg.Workload.New(p)
	if err != nil {
		return nil, err
	}
	report := &Report{Info: info}
	selected, _ := cfg.Split()
	for _, sel := range selected {
		if ctx.Err() != nil {
			break
		}
		r := &pass{cfg: &cfg, sel: sel, stream: stream, info: info}
		r.run = r.blank()
		if err := r.simulate(ctx); err != nil {
			r.run.Audit.Strike("run-failed", results.StrikesCorrectness, err.Error())
		}
		report.Runs = append(report.Runs, r.run)
		report.Series = append(report.Series, r.series)
		report.Traces = append(report.Traces, r.trace)
		if cfg.Done != nil {
			cfg.Done(sel.String(), time.Duration(r.run.ElapsedNS), r.run.Issued)
		}
	}
	report.Interrupted = ctx.Err() != nil
	return report, nil
}

// pass is one strategy's run.
type pass struct {
	cfg    *Config
	sel    strategies.Selection
	stream workloads.Stream
	info   workloads.Info
	policy quota.Policy

	run    results.Run
	series results.Series
	trace  uint64

	st *site
	d  *drive
}

// open reports whether the loop is open.
func (p *pass) open() bool {
	return !p.cfg.Closed && (p.info.Loop == workloads.Open || p.cfg.Rate > 0)
}

func (p *pass) arrivals() (workloads.Arrivals, error) {
	c := p.cfg
	switch {
	case !p.open():
		return nil, nil
	case c.Stream.Speed > 0:
		return workloads.FromTrace(p.stream, c.Stream.Speed)
	}
	base, err := workloads.Poisson(p.rate(), c.Seed)
	if c.Arrivals == "constant" {
		base, err = workloads.Constant(p.rate())
	}
	if err != nil {
		return nil, err
	}
	return c.rush(base)
}

func (p *pass) rate() float64 {
	if p.cfg.Rate > 0 {
		return p.cfg.Rate
	}
	return p.cfg.Workload.Rate
}

// align shifts the policy's windows where a workload needs them to meet its
// requests at a certain moment: recorded time begins with the first row, and a
// boundary comes half way through.
func (p *pass) align() {
	c := p.cfg
	p.policy = c.Policy
	if !p.policy.Window.Kind.Tumbling() {
		return
	}
	switch {
	case c.Stream.Speed > 0:
		p.policy.Window.Timeline = quota.Timeline{Real: c.Start, Policy: p.info.Trace.First, Speed: c.Stream.Speed}
	case c.Workload.Boundary:
		p.policy.Window.Timeline = quota.Timeline{Real: c.Start.Add(c.Duration / 2), Policy: c.Policy.Window.At(c.Start).End}
	}
}

// drain is how much virtual time what is in flight, and sessions, may take after
// the last request.
const drain = 48 * time.Hour

// simulate runs and judges.
func (p *pass) simulate(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	c := p.cfg
	p.align()
	hash := newTraceHash(c.Start.UnixNano())
	w := newWires(c, hash)
	s := w.s
	if p.st, err = openSite(ctx, c, p.sel, w); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.st.close(context.WithoutCancel(ctx))) }()
	if err := p.newDrive(ctx, s); err != nil {
		return err
	}
	d := p.d
	d.begin()
	if d.series.every > 0 {
		s.Go("sampler", d.series.run)
	}
	horizon := time.Unix(0, math.MaxInt64/2)
	if c.Duration > 0 {
		horizon = c.Start.Add(c.Duration)
	}
	if err := s.Simulate(horizon, p.st.w.latency); err != nil {
		return err
	}
	d.over = d.over || c.Duration > 0
	if err := s.Simulate(s.Now().Add(drain), p.st.w.latency); err != nil {
		return err
	}
	p.trace = hash.h
	p.run.Partial = ctx.Err() != nil
	if d.series.err != nil {
		return d.series.err
	}
	return p.judge()
}

func (p *pass) newDrive(ctx context.Context, s *sched.Scheduler) error {
	c := p.cfg
	d := &drive{
		cfg: c, s: s, st: p.st, clock: s.Clock(0), policy: &p.policy, stream: p.stream, epoch: c.Start.UnixNano(),
		requests: math.MaxInt64, history: oracle.NewHistory(1, c.HistoryLimit), tiers: []quota.Tier{""}, hits: []int64{0},
		response: results.NewHistogram(), service: results.NewHistogram(), settled: results.NewHistogram(),
		parts: map[[2]uint8]*results.Histogram{},
	}
	p.d = d
	d.stop = func() bool { return ctx.Err() != nil }
	if n := p.stream.Len(); n > 0 {
		d.requests = n
	}
	if c.Requests > 0 {
		d.requests = min(d.requests, c.Requests)
	}
	var err error
	if d.arrivals, err = p.arrivals(); err != nil {
		return err
	}
	d.truth = truth{policy: &p.policy, counts: p.sel.Counts, tracked: c.Tracked}
	d.truth.span = d.windowAt(d.epoch)
	d.truth.first = d.truth.span.index
	if err := p.provision(ctx); err != nil {
		return err
	}
	p.series = results.Series{Strategy: p.run.Params.Label, Unit: p.policy.Unit, Counters: []string{}, Tiers: []string{}, Samples: []results.Sample{}}
	p.series.Outages = p.spans()
	d.series = &sampler{d: d, out: &p.series, every: p.every(), viewers: p.viewers()}
	return nil
}

// viewers are the instances that are asked for their counters.
func (p *pass) viewers() []viewer {
	var out []viewer
	t := &p.cfg.Topology
	apart := len(t.Regions) > 1 && !t.SharedRedis
	for r, name := range t.Regions {
		v, ok := p.st.instances[r*t.Instances].(strategies.Viewer)
		if !ok || r > 0 && !apart {
			break
		}
		if !apart {
			name = ""
		}
		out = append(out, viewer{v, name, r == 0})
	}
	return out
}

// maxFresh bounds the subjects of a stream that has a fresh one for each crossing.
const maxFresh = 200_000

// provision makes the subjects and sets them up.
func (p *pass) provision(ctx context.Context) error {
	d := p.d
	n := workloads.Subjects(p.stream)
	if per := workloads.OpsPerCrossing(p.stream); per > 0 {
		d.requests = min(d.requests, maxFresh*per)
		if p.open() && p.cfg.Duration > 0 {
			d.requests = min(d.requests, int64(2*p.rate()*p.cfg.Duration.Seconds())+per)
		}
		n = int((d.requests + per - 1) / per)
	}
	p.run.Params.Subjects = n
	d.truth.subjects = make([]subject, n)
	grants := make([]strategies.Grant, n)
	for i := range grants {
		grants[i] = strategies.Grant{
			Subject: quota.Subject(p.stream.Name(uint32(i))), Limit: p.policy.Limit, Used: workloads.Initial(p.stream, uint32(i)),
		}
	}
	if err := p.st.provision(ctx, &p.policy, grants); err != nil {
		return err
	}
	for i, g := range grants {
		s := &d.truth.subjects[i]
		*s = subject{name: g.Subject, initial: g.Used, used: g.Used, window: d.truth.first}
		s.cell.Fill(g.Used)
		d.truth.usage += g.Used
		d.truth.fill += g.Used
		if p.policy.Window.Kind == quota.Rolling && g.Used > 0 {
			s.recent = append(s.recent, charge{d.epoch, g.Used, true})
			d.truth.recent = append(d.truth.recent, charge{d.epoch, g.Used, true})
		}
	}
	return nil
}

// every is the distance between two samples; 0 takes none.
func (p *pass) every() time.Duration {
	c := p.cfg
	length := c.Duration
	if length == 0 && p.info.Trace != nil && c.Stream.Speed > 0 {
		length = time.Duration(float64(p.info.Trace.Span) / c.Stream.Speed)
	}
	if length == 0 && p.open() && c.Requests > 0 {
		length = time.Duration(float64(c.Requests) / p.rate() * float64(time.Second))
	}
	switch {
	case c.Every < 0:
		return 0
	case c.Every > 0:
		return c.Every
	case length > 0:
		return max(length/samples, time.Millisecond)
	default:
		return 0
	}
}
