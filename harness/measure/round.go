package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/quota/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// abortGrace is how long operations in flight may take to end after Ctrl-C.
const abortGrace = 500 * time.Millisecond

// runOne measures one strategy once: set up, warm up, drive, let everything come
// to rest, read the counters, judge, clean up. begun is false if it ended before
// the measured pass.
func (m *measurement) runOne(ctx context.Context, sel strategies.Selection, stream workloads.Stream,
	info workloads.Info, run *results.Run) (begun bool, err error) {
	defer guard.Caught("being looked at", &err)
	// Ctrl-C ends the setting up and the pass, leaves little time for the judgement,
	// and does not end the clean-up.
	rest := context.WithoutCancel(ctx)
	work, cancel := context.WithCancel(rest)
	defer cancel()
	setUp := context.AfterFunc(ctx, cancel)
	s, opened, err := m.site(ctx, func() (*site, error) {
		return openSite(work, m.cfg, m.timebase, sel, m.siteName(fmt.Sprint(m.n)), run.Repetition)
	})
	if s == nil {
		return false, err
	}
	policy := m.from(opened)
	defer func() {
		_, lost := m.meet(ctx, "end") // what all have asked for may go now
		s.apart = lost != nil
		if err == nil {
			err = lost
		}
		s.hung(err)
		err = errors.Join(err, s.close(rest))
		if m.cfg.Trouble.Has(trouble.Failover) {
			m.places.forget()
		}
	}()
	if err != nil {
		return false, err
	}
	placement, lift := m.places.take(rest, m.cfg.Open(info), m.cfg.RateInForce(), storesOf(sel))
	defer lift()
	run.Placement = &placement
	p := &pass{measurement: m, site: s, run: run, policy: &policy}
	drive, err := p.ready(work, stream, info)
	if drive != nil {
		defer func() {
			err = errors.Join(err, drive.close())
			if len(drive.hung) == 0 {
				drive.rec.release()
			}
		}()
	}
	if err != nil {
		return false, err
	}
	s.jobs.start(work)
	defer func() { err = errors.Join(err, s.jobs.stop(s.aside())) }()

	if !setUp() { // ctx has ended
		return false, ctx.Err()
	}
	if err := p.drive(ctx); err != nil {
		return true, err
	}
	p.failed = drive.failure()
	if p.failed != nil {
		s.lose()
	}
	if err := s.jobs.stop(s.aside()); err != nil && p.failed == nil {
		p.failed = err
		s.lose()
	}
	lift()
	judging, end := harness.Judging(ctx)
	defer end()
	return true, p.judge(judging)
}

// site opens the site, of peers that of the first before all others. It returns when that was, by their common
// clock, and with an error the site that is to be closed, if there is one.
func (m *measurement) site(ctx context.Context, open func() (*site, error)) (s *site, at time.Time, err error) {
	if _, err := m.meet(ctx, "begin"); err != nil {
		return nil, at, err
	}
	if m.cfg.First() {
		s, err = open()
		if err != nil {
			return nil, at, err
		}
	}
	at, err = m.meet(ctx, "open")
	if s == nil && err == nil {
		s, err = open()
	}
	if s != nil && !at.IsZero() {
		m.ahead, _ = m.cfg.Peers.Clock()
	}
	return s, at, err
}

// ready warms up, and sets subjects up for the pass. The drive is the caller's to close, with an error too.
func (p *pass) ready(ctx context.Context, stream workloads.Stream, info workloads.Info) (*drive, error) {
	measurement := p.measurement
	site := p.site
	run := p.run
	if err := p.mark(ctx); err != nil {
		return nil, err
	}
	warm, err := measurement.warmUp(ctx, site, p.policy)
	if err != nil {
		return nil, err
	}
	rate := warm.rate()
	if offered := measurement.cfg.RateInForce(); measurement.cfg.Open(info) && offered > 0 {
		rate = min(rate, offered)
	}
	d := measurement.newDrive(site, stream, p.policy, rate)
	p.d, p.warmed = d, min(warmSubjects, warm.next.Load())
	d.rec = warm.rec.warmed(measurement.cfg.Open(info))
	d.begins = func(now time.Time) {
		if !p.began.IsZero() {
			now = p.began
		}
		measurement.realign(p.policy, info, now, measurement.expected(rate, d.requests))
	}
	run.Params.Subjects = d.subjects.n
	if measurement.cfg.Open(info) {
		d.perSecond = measurement.cfg.RateInForce() / float64(max(d.peers, 1))
		d.arrivals, err = measurement.cfg.NewArrivals(stream, run.Repetition)
		if err != nil {
			return d, err
		}
	}
	site.Filling = measurement.obs.Filling
	if err := d.provision(ctx, site); err != nil {
		return d, err
	}
	return d, measurement.catchUp(ctx, site)
}

// expected is how long the pass will take: its duration, or as long as its
// requests take at the rate seen while warming up.
func (m *measurement) expected(rate float64, requests int64) time.Duration {
	if m.cfg.Duration > 0 || rate == 0 {
		return m.cfg.Duration
	}
	return time.Duration(float64(requests) / rate * float64(time.Second))
}

// How much faster than in its warm-up a strategy may become, when the machine grows
// quieter, before its trials run out: less if each subject is set up before the
// pass.
const (
	warmUpFactor      = 30
	provisionedFactor = 3
)

// newDrive prepares the measured pass. How many trials it needs subjects for
// follows from the rate seen while warming up, or from the one offered if that is less.
func (m *measurement) newDrive(s *site, stream workloads.Stream, policy *quota.Policy, rate float64) *drive {
	config := m.cfg
	factor := float64(warmUpFactor)
	if setsUp(s, stream) {
		factor = provisionedFactor
	}
	requests, subjects := config.Size(stream, factor*rate)
	_, ready := config.Size(stream, rate)
	if config.Peers != nil { // peers differ in their rates, and not in the subjects
		requests, subjects = config.Size(stream, 0)
		requests = config.Ops(requests)
		ready = 0
	}
	number, of := config.Place()
	per := workloads.OpsPerCrossing(stream)
	return &drive{
		timebase: m.timebase, instances: s.Instances, stream: stream, policy: policy, workers: config.Workers,
		requests: requests, place: int64(number), peers: int64(of),
		duration: int64(config.Duration), online: true, longCrossings: per >= 4*int64(config.Workers),
		history: config.NewHistory(config.Workers, 0), subjects: newSubjects(stream, subjects, ready), life: config.Life,
		lowest:   config.LowestLimit(),
		deadline: m.deadline(), plan: &config.Plan, stand: s.stand,
	}
}

// setsUp reports whether the strategy or the workload asks for subjects that are set
// up before the first request.
func setsUp(s *site, stream workloads.Stream) bool {
	_, asks := s.Instances[0].(strategies.Provisioner)
	return asks || workloads.IsPrefilled(stream)
}

// provision sets the subjects up.
func (d *drive) provision(ctx context.Context, s *site) error {
	if !setsUp(s, d.stream) {
		return nil
	}
	grants := harness.Grants(d.stream, d.policy, d.subjects.n)
	if asked := d.willAsk(); asked != nil {
		for i := range grants {
			if !asked[uint32(i)] {
				grants[i].Used = 0 // it will not be seen
			}
		}
	}
	s.Fillers = d.workers
	if d.place == 0 { // of peers one fills for all, and all know what was there
		if err := s.Provision(ctx, d.policy, grants, 0); err != nil {
			return err
		}
	}
	for i, grant := range grants {
		if grant.Used != 0 {
			d.subjects.at(uint32(i)).initial = grant.Used
		}
	}
	return nil
}

// askAhead is how many requests are looked at to find which subjects a pass will ask
// about.
const askAhead = 1 << 20

// willAsk are the subjects that the pass can ask about, if a bound on its requests is
// known and not too large; nil otherwise. Filling a subject takes as many requests as
// it has units, and many subjects of a large crowd are never asked about.
func (d *drive) willAsk() map[uint32]bool {
	n := d.requests
	if d.perSecond > 0 && d.duration > 0 { // arrivals vary around their rate
		n = min(n, int64(2*d.perSecond*time.Duration(d.duration).Seconds())+1000)
	}
	if n > askAhead || d.peers > 1 {
		return nil
	}
	asked := map[uint32]bool{}
	var op workloads.Op
	for i := range n {
		d.stream.At(i, &op)
		asked[op.Subject] = true
	}
	return asked
}

// pass is a measured pass and what surrounds it.
type pass struct {
	measurement *measurement
	site        *site
	d           *drive
	run         *results.Run
	policy      *quota.Policy
	// began is when peers begin, by their common clock.
	began time.Time

	// accompanied is set if another measurement of this process was under way, too.
	accompanied bool

	cores   coreWaits
	own     ownCPU
	machine machine.CPUTime
	traffic traffic
	meter   []results.Measure // as the pass began
	limits  operator
	// overwritten counts the values in Redis that were changed as planned, and overwriting is why that ended.
	overwritten int64
	overwriting error
	// failed is why the strategy is asked nothing any more; nil if it is.
	failed   error
	stores   monitor.Stores
	counters counters
	keys     monitor.Keys
	// warmed is how many subjects the warm-up asked about.
	warmed int64
}

// coreWaits tells what waiting for a core explains: [monitor.Cores].
type coreWaits interface {
	Explains(all iter.Seq[monitor.Moment], least int64) float64
	Record(stolen float64) *results.Waiting
	End()
}

// together makes what the pass needs, and waits for the moment at which all peers begin.
func (p *pass) together(ctx, work context.Context) (err error) {
	p.stores.Prepared(work)
	if err := p.site.replicate(work); err != nil {
		return err
	}
	p.began, err = p.measurement.meet(ctx, "start")
	if err != nil {
		return err
	}
	p.counters.open(work, p)
	runtime.GC()
	p.site.observe(work, func(store *siteStore) *stores.Stats { return &store.before })
	return p.begin(work)
}

// drive runs the pass. Ctrl-C stops it at the next request; operations that do
// not end soon after are given up.
func (p *pass) drive(ctx context.Context) error {
	drive := p.d
	site := p.site
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopped := context.AfterFunc(ctx, func() {
		drive.stop.Store(true)
		time.AfterFunc(abortGrace, cancel)
	})
	defer stopped()
	if err := p.together(ctx, work); err != nil {
		return err
	}
	before := site.traffic(heapAllocs())
	p.meter = site.Meter()
	counts := map[string]stores.Counts{}
	pools := site.poolUse()
	for name, store := range site.stores {
		counts[name] = store.meter.Snapshot()
	}
	cpu := machine.ReadCPU()
	own := readOwnCPU()
	others := watchOthers()
	over := p.plan(work)
	p.stores.Begin(work, drive.timebase.nano)
	p.counters.begin(work, drive)
	p.cores = p.watchCores(work)
	p.measurement.cfg.Live.begin(p)
	if timer := p.measurement.cfg.Timer; timer != nil {
		timer.StartTimer()
		drive.run(work)
		timer.StopTimer()
	} else {
		drive.run(work)
	}
	p.cores.End()
	p.measurement.cfg.Live.end(len(drive.hung) == 0)
	p.counters.end(work)
	p.stores.End(work)
	for _, name := range p.stores.Absent() {
		site.stores[name].absent = true
	}
	for _, end := range over {
		end()
	}
	p.machine, p.own, p.accompanied = machine.ReadCPU().Sub(cpu), readOwnCPU().sub(own), others()
	p.traffic = site.traffic(heapAllocs()).sub(before)
	_, lost := p.measurement.meet(ctx, "rest")
	// after which a client forgets what it counted of a server that is gone
	if !slices.ContainsFunc(site.outages, (*outage).moves) {
		p.run.PoolWait = poolWaits(pools, site.poolUse())
	}
	for name, store := range site.stores {
		store.traffic = store.meter.Snapshot().Sub(counts[name])
	}
	site.observe(work, func(store *siteStore) *stores.Stats { return &store.after })
	if slices.ContainsFunc(site.outages, (*outage).restarts) {
		_ = drive.timebase.clock.Sleep(work, time.Duration(reconnectGrace)) // before clients are asked for counters
	}
	for _, outage := range site.outages {
		if outage.err != nil {
			return fmt.Errorf("%s: %w", outage.Event, outage.err)
		}
	}
	return cmp.Or(p.limits.err, p.overwriting, lost)
}

// plan begins what is to happen while requests are measured. What it returns ends that.
func (p *pass) plan(ctx context.Context) (over []func()) {
	config := p.measurement.cfg
	drive := p.d
	over = p.site.goWrong()
	p.limits = operator{drive: drive, session: p.site.Session}
	over = append(over, p.limits.schedule(ctx, config.Trouble.Of(trouble.Change), config.Duration), p.overwrite(ctx))
	if config.Duration > 0 && !p.measurement.latencyOnly && drive.place == 0 {
		over = append(over, p.keys.Schedule(drive.timebase.nano, config.Duration, func() map[string]results.StoredAt {
			return p.countKeys(ctx)
		}))
	}
	return over
}

func heapAllocs() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}
