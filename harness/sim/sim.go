package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/memredis"
	"github.com/quotabench/quotabench/internal/ordered"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/internal/seed"
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

// Err is the first reason for which a run's correctness figures do not count, or
// nil.
func (r *Report) Err() error { return results.Invalid(r.Runs) }

// Run simulates every strategy of cfg that can take part, each from the same seed. A strategy that fails, or whose run is invalid, is
// reported with an audit that says so, and the others go on.
//
// When ctx ends, the runs under way are judged as far as they came and marked partial.
//
// An error without a report means that nothing could be simulated. A report with
// an error, a [*results.InvalidError], means that the figures of at least one run
// do not count: a test that only looks at its leak would pass for a limiter that
// never ran.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	stream, info, err := harness.NewStreamUnless(ctx, &cfg.Plan, 1)
	if err == nil {
		err = cfg.CheckStream(info)
	}
	if err != nil {
		return nil, err
	}
	report := &Report{Info: info}
	selected, _ := cfg.Split()
	cfg.Progress.begin(len(selected))
	for i, r := range ordered.Do(cfg.parallel(), len(selected), func(i int) *pass {
		if ctx.Err() != nil {
			return nil
		}
		part := cfg.Progress.of(i)
		p := simulated(ctx, &cfg, selected[i], stream, info, part)
		if part != nil {
			part.Store(math.Float64bits(1))
		}
		return p
	}) {
		if r == nil || !r.begun && ctx.Err() != nil {
			continue // another one may have begun before
		}
		report.Runs = append(report.Runs, r.run)
		report.Series = append(report.Series, r.series)
		report.Traces = append(report.Traces, r.trace)
		if cfg.SoFar != nil {
			cfg.SoFar(report.Runs)
		}
		if cfg.Done != nil {
			cfg.Done(selected[i].String(), time.Duration(r.run.ElapsedNS), r.run.Issued)
		}
	}
	report.Interrupted = ctx.Err() != nil
	return report, report.Err()
}

// parallel is how many strategies are simulated at the same time: on a real server one,
// since all of them have the same keys there.
func (c *Config) parallel() int {
	if _, real := c.Stores.Get(string(strategies.NeedRedis)); real {
		return 1
	}
	return cmp.Or(c.Parallel, runtime.GOMAXPROCS(0))
}

// simulated runs one strategy, on a table of keys where that has all commands
// that it sends, and elsewhere on miniredis.
func simulated(ctx context.Context, cfg *Config, sel strategies.Selection, stream workloads.Stream, info workloads.Info, part *atomic.Uint64) *pass {
	if cfg.isolates && sel.Foreign && cfg.outOfBubbles(sel) == nil {
		p := isolated(ctx, cfg, sel, stream, info, part)
		cfg.Live.judged(&p.run)
		return p
	}
	watchdog := harness.Watchdog{
		Driver:   new(atomic.Uint64),
		Patience: cfg.DecisionTimeout, Beat: new(sched.Beat),
		Callers: []string{"sim.(*drive).do", "sim.(*drive).event", "sim.(*pass).probe.func1", "sched.runJob"}, Around: []string{"harness.ask[...]", "harness.(*Session).SetLimit"},
	}
	p, err := harness.Watched(ctx, watchdog, func() *pass { return driven(ctx, cfg, sel, stream, info, &watchdog, part) })
	if err != nil {
		p = blank(cfg, sel, stream, info)
		harness.StrikeFailed(&p.run, errors.Join(err, leftBehind(ctx, cfg)))
	}
	cfg.Live.judged(&p.run)
	return p
}

// leftBehind removes what a strategy that was given up keeps on a real server.
func leftBehind(ctx context.Context, cfg *Config) error {
	real, ok := cfg.Stores.Get(string(strategies.NeedRedis))
	if !ok {
		return nil
	}
	return real.Wipe(context.WithoutCancel(ctx), scope)
}

// driven runs one strategy on the caller's goroutine.
func driven(ctx context.Context, cfg *Config, sel strategies.Selection, stream workloads.Stream, info workloads.Info, watchdog *harness.Watchdog, part *atomic.Uint64) *pass {
	var last *pass
	_, err := memredis.WithFallback(func(open func() (memredis.Redis, error)) (struct{}, error) {
		lacked := last != nil
		last = &pass{cfg: cfg, sel: sel, stream: stream, info: info, open: open, beat: watchdog.Beat, part: part, real: clock.Wall{}.Now()}
		last.run = cfg.Blank(sel, 1, stream, info)
		last.run.Params.Instances = cfg.Topology.total()
		if lacked {
			last.run.Audit.Strike("miniredis", results.StrikesNote, "its commands are answered by miniredis in this process, since the faster table of keys does not have all of them")
		}
		if sel.Foreign {
			return struct{}{}, last.inBubble(ctx, watchdog.Driver)
		}
		return struct{}{}, last.simulate(ctx)
	})
	if err != nil {
		harness.StrikeFailed(&last.run, err)
	}
	return last
}

// pass is one strategy's run.
type pass struct {
	cfg    *Config
	sel    strategies.Selection
	stream workloads.Stream
	info   workloads.Info
	open   func() (memredis.Redis, error)
	beat   *sched.Beat
	part   *atomic.Uint64
	real   time.Time // by the wall clock, when it began
	policy quota.Policy

	run    results.Run
	series results.Series
	trace  uint64

	st *site
	d  *drive
	// begun is set once requests are issued; cut where it ended in mid-flight; abandoned where its judgement goes on by
	// itself, and closes the history.
	begun, cut, abandoned bool
	// failed is the strategy's panic in mid-flight, or what has ended another process there;
	// nil where there was none.
	failed error
	// resting is nil until nothing is in flight.
	resting *atRest
	// reached is how far a process has come that has died.
	reached trailed
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
	defer harness.Caught("being looked at", &err)
	c := p.cfg
	p.policy = c.Align(p.info, c.Start, c.Duration)
	hash := newTraceHash()
	var late atomic.Bool // what is in flight has had its time to end
	defer context.AfterFunc(ctx, func() { time.AfterFunc(abortGrace, func() { late.Store(true) }) })()
	interrupt := late.Load
	if p.sel.Foreign { // what ends a context outside of the bubble must not reach into it
		interrupt = func() bool { return ctx.Err() != nil }
	}
	w := newNetwork(c, hash, interrupt, p.beat)
	w.witness = p.newWitness()
	if p.sel.Foreign {
		p.liveThrough(w)
	}
	s := w.s
	if p.st, err = openSite(ctx, c, p.sel, w, p.open); err != nil {
		return err
	}
	defer func() {
		if !c.trail.ends() {
			err = errors.Join(err, p.st.close(context.WithoutCancel(ctx)))
		}
	}()
	if err := p.newDrive(ctx, s); err != nil {
		return err
	}
	defer func() {
		if !p.abandoned {
			err = errors.Join(err, p.d.history.Close())
		}
	}()
	d := p.d
	d.witness = w.witness
	d.rest = func() { p.rest(ctx) }
	w.watching = true
	d.begin()
	if d.series.every > 0 {
		s.Go("sampler", d.series.run)
	}
	if len(c.LimitChanges) > 0 {
		s.Go("operator", d.operate(c.LimitChanges, p.st.through()))
	}
	horizon := time.Unix(0, math.MaxInt64/2)
	if c.Duration > 0 {
		horizon = c.Start.Add(c.Duration)
	}
	p.begun = true
	if err := p.through(horizon); err != nil {
		return err
	}
	if err := p.keep(ctx); err != nil {
		return err
	}
	d.over = d.over || c.Duration > 0
	d.calm()
	if p.failed == nil {
		if err := p.through(s.Now().Add(drain)); err != nil {
			return err
		}
	}
	for _, r := range p.st.redis {
		if r.unfit != nil {
			return r.unfit
		}
	}
	if p.failed != nil { // what is in flight ends with it
		s.Close()
		harness.StrikeFailed(&p.run, p.failed)
	}
	d.judged = true
	w.watching = false
	p.trace = hash.h
	p.run.Trace = fmt.Sprintf("%016x", p.trace)
	if err := cmp.Or(d.series.err, d.limitErr); err != nil {
		return err
	}
	judging, end := harness.Judging(ctx)
	defer end()
	if err := p.judge(ctx, judging); err != nil || p.failed != nil {
		return err
	}
	if died := c.trail.judged(); died != nil {
		return died
	}
	if err := p.probe(ctx); err != nil && !errors.Is(err, sched.ErrInterrupted) {
		return err
	}
	p.auditUnseen()
	return nil
}

// abortGrace is how long, of real time, what is in flight may take to end after Ctrl-C.
const abortGrace = 500 * time.Millisecond

// through lets virtual time pass up to a moment, unless the run is cut short.
func (p *pass) through(until time.Time) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *harness.DiedError:
			p.failed, p.cut = v, true
		case *sched.Panic:
			p.failed, p.cut = &harness.PanicError{Where: v.Actor, Value: v.Value, Stack: v.Stack}, true
		default:
			panic(v)
		}
	}()
	err = p.st.s.Simulate(until, p.st.w.latency)
	if errors.Is(err, sched.ErrInterrupted) {
		p.cut, err = true, nil
	}
	return err
}

// historyEvents of a pass stay in memory, which take 32 MiB, and twice that before the
// garbage collector looks. What comes before them goes to a file, in a third of that.
const historyEvents = 1 << 20

func (p *pass) newDrive(ctx context.Context, s *sched.Scheduler) error {
	c := p.cfg
	history := oracle.NewHistory(oracle.HistoryOptions{Workers: 1, Limit: c.HistoryLimit, Dir: cmp.Or(c.HistoryDir, os.TempDir()), Memory: historyEvents})
	d := &drive{
		cfg: c, s: s, st: p.st, part: p.part, clock: s.Clock(0), policy: &p.policy, stream: p.stream, epoch: c.Start.UnixNano(),
		requests: math.MaxInt64, history: history, placement: seed.Stream(c.Seed, seed.Placement), tiers: []quota.Tier{""}, hits: []int64{0},
		response: results.NewHistogram(), service: results.NewHistogram(), settled: results.NewHistogram(),
	}
	p.d = d
	d.live, d.liveParts = c.Live.begin(&p.run), map[[2]uint8]*harness.LiveLatency{}
	d.aborted = func() bool { return ctx.Err() != nil }
	d.stop = func() bool { return d.aborted() || p.st.unknown() != "" || d.history.Full() }
	var err error
	if d.arrivals, err = p.arrivals(); err != nil {
		return err
	}
	d.truth = truth{policy: &p.policy, flow: p.policy.Window.Flow(), counts: p.sel.Counts, tracked: c.Tracked}
	d.truth.span = d.windowAt(d.epoch)
	d.truth.first = d.truth.span.index
	d.truth.lowest = c.LowestLimit()
	d.truth.change(p.policy.Limit, p.policy.Limit)
	if err := p.provision(ctx); err != nil {
		return err
	}
	p.series = results.Series{Strategy: p.run.Params.Label, Unit: p.policy.Unit, Counters: []string{}, Tiers: []string{}, Samples: []results.Sample{}}
	p.series.Outages = p.spans()
	d.series = &sampler{d: d, out: &p.series, every: p.every(), st: p.st}
	return nil
}

// provision makes the subjects and sets them up.
func (p *pass) provision(ctx context.Context) error {
	d := p.d
	perSecond := 0.0
	if p.openLoop() {
		perSecond = p.cfg.RateInForce()
	}
	var n int
	d.requests, n = p.cfg.Size(p.stream, perSecond)
	p.run.Params.Subjects = n
	d.truth.subjects = make([]subject, n)
	grants := harness.Grants(p.stream, &p.policy, n)
	if err := p.st.Provision(ctx, &p.policy, grants, p.st.through()...); err != nil {
		return err
	}
	for i, g := range grants {
		s := &d.truth.subjects[i]
		*s = subject{name: g.Subject, initial: g.Used, used: g.Used, window: d.truth.first}
		s.cell.Fill(g.Used)
		d.truth.fillOwn(s, d.epoch)
		d.truth.usage += g.Used
		d.truth.fill += g.Used
		if p.policy.Window.Kind == quota.Rolling && g.Used > 0 {
			s.recent = append(s.recent, charge{at: d.epoch, units: g.Used, fill: true})
			d.truth.recent = append(d.truth.recent, charge{at: d.epoch, units: g.Used, fill: true})
		}
	}
	return nil
}
