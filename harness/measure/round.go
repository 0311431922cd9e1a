package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/quotabench/quotabench/internal/machine"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// abortGrace is how long operations in flight may take to end after Ctrl-C.
const abortGrace = 2 * time.Second

// runOne measures one strategy once: set up, warm up, drive, let everything come
// to rest, read the counters, judge, clean up.
func (m *measurement) runOne(ctx context.Context, sel strategies.Selection, stream workloads.Stream, info workloads.Info, run *results.Run) (err error) {
	// Ctrl-C ends the pass, and neither the judgement nor the clean-up.
	work := context.WithoutCancel(ctx)
	policy := m.aligned(m.cfg.Policy)
	s, err := openSite(work, m.cfg, m.tb, sel, m.siteName(fmt.Sprint(m.n)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(work)) }()
	strays := s.strayKeys(work)
	warm, err := m.warmUp(work, s, &policy)
	if err != nil {
		return err
	}
	rate := warm.rate()
	d := m.newDrive(s, stream, &policy, rate)
	d.rec = warm.rec.warmed()
	run.Params.Subjects = len(d.subjects)
	grants := d.grants()
	if err := s.provision(work, &policy, grants); err != nil {
		return err
	}
	d.setInitial(grants)
	if err := s.jobs.catchUp(work); err != nil {
		return err
	}
	s.jobs.start(work)
	defer s.jobs.stop()
	d.begins = func(now time.Time) { m.realign(&policy, info, now, m.expected(rate, d.requests)) }
	if m.open(info) {
		if d.arrivals, err = m.newArrivals(stream, roundSeed(m.cfg.Seed, run.Repetition)); err != nil {
			return err
		}
	}

	p := &pass{m: m, s: s, d: d, run: run, policy: &policy, strays: strays}
	if err := p.drive(ctx); err != nil {
		return err
	}
	s.jobs.stop()
	return p.judge(work)
}

// expected is how long the pass will take: its duration, or as long as its
// requests take at the rate seen while warming up.
func (m *measurement) expected(rate float64, requests int64) time.Duration {
	if m.cfg.Duration > 0 || rate == 0 {
		return m.cfg.Duration
	}
	return time.Duration(float64(requests) / rate * float64(time.Second))
}

// newDrive prepares the measured pass. How many crossings it needs subjects for
// follows from the rate seen while warming up.
func (m *measurement) newDrive(s *site, stream workloads.Stream, policy *quota.Policy, rate float64) *drive {
	c := m.cfg
	requests := int64(math.MaxInt64)
	if n := stream.Len(); n > 0 {
		requests = n
	}
	if c.Requests > 0 {
		requests = min(requests, c.Requests)
	}
	subjects, long := workloads.Subjects(stream), false
	if per := workloads.OpsPerCrossing(stream); per > 0 {
		if c.Duration > 0 {
			// Half as much again as expected; a faster pass ends early.
			expect := int64(rate*c.Duration.Seconds()*1.5)/per + 8
			requests = min(requests, min(expect, maxCrossings)*per)
		}
		subjects = int((requests + per - 1) / per)
		long = per >= 4*int64(c.Workers)
	}
	d := &drive{
		tb: m.tb, instances: s.instances, stream: stream, policy: policy, workers: c.Workers,
		requests: requests, duration: int64(c.Duration), online: true, longCrossings: long,
		history:  oracle.NewHistory(c.Workers, int64(c.HistoryLimit)),
		subjects: make([]subject, subjects),
	}
	for i := range d.subjects {
		d.subjects[i].name = quota.Subject(stream.Name(uint32(i)))
	}
	return d
}

// maxCrossings bounds the subjects that a pass is prepared for.
const maxCrossings = 200_000

func (d *drive) grants() []strategies.Grant {
	g := make([]strategies.Grant, len(d.subjects))
	for i := range d.subjects {
		g[i] = strategies.Grant{Subject: d.subjects[i].name, Limit: d.policy.Limit, Used: workloads.Initial(d.stream, uint32(i))}
	}
	return g
}

func (d *drive) setInitial(grants []strategies.Grant) {
	for i := range grants {
		d.subjects[i].initial = grants[i].Used
	}
}

// warmUp opens connections, loads scripts and prepares statements by requests of
// other subjects.
func (m *measurement) warmUp(ctx context.Context, s *site, policy *quota.Policy) (*drive, error) {
	c := m.cfg
	d := &drive{
		tb: m.tb, instances: s.instances, stream: warmStream{}, policy: policy, workers: c.Workers,
		requests: math.MaxInt64, duration: int64(warmUpTime(c.Duration)), firstID: warmUpID,
		rec: newRecorder(c.Workers), subjects: make([]subject, warmSubjects),
	}
	for i := range d.subjects {
		d.subjects[i].name = quota.Subject(d.stream.Name(uint32(i)))
	}
	if err := s.provision(ctx, policy, d.grants()); err != nil {
		return nil, err
	}
	d.run(ctx)
	if err := d.crash.Load(); err != nil {
		return nil, *err
	}
	if d.rate() == 0 && d.firstError != nil {
		return nil, fmt.Errorf("every warm-up request failed: %w", d.firstError)
	}
	return d, nil
}

// rate is the decisions per second that a finished pass reached.
func (d *drive) rate() float64 {
	n := d.counts.admitted.Load() + d.counts.rejected.Load()
	return float64(n) / time.Duration(max(d.end-d.epoch, 1)).Seconds()
}

func warmUpTime(d time.Duration) time.Duration {
	if d == 0 {
		d = DefaultDuration
	}
	return min(max(d/8, 20*time.Millisecond), 200*time.Millisecond)
}

// warmSubjects are enough that the warm-up does not become a contest for one row.
const warmSubjects = 64

// warmStream asks for single units, of one subject after the other.
type warmStream struct{}

func (warmStream) At(i int64, op *workloads.Op) {
	*op = workloads.Op{Subject: uint32(i % warmSubjects), Units: 1}
}
func (warmStream) Len() int64           { return 0 }
func (warmStream) Name(n uint32) string { return fmt.Sprintf("warm-up-%d", n) }

// pass is a measured pass and what surrounds it.
type pass struct {
	m       *measurement
	s       *site
	d       *drive
	run     *results.Run
	policy  *quota.Policy
	planned int64 // errors that a planned outage explains
	strays  int64 // keys under our prefix before the first request

	redisBefore, redisAfter stores.Stats
	sqlBefore, sqlAfter     stores.Stats
	own                     ownCPU
	steal                   machine.CPUTime
	allocs                  uint64
	modelSQL                int64
	cost                    counted
}

// drive runs the pass. Ctrl-C stops it at the next request; operations that do
// not end soon after are given up.
func (p *pass) drive(ctx context.Context) error {
	d := p.d
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopped := context.AfterFunc(ctx, func() {
		d.stop.Store(true)
		time.AfterFunc(abortGrace, cancel)
	})
	defer stopped()
	runtime.GC()
	p.redisBefore, p.sqlBefore = p.s.redisState(work), p.s.sqlState(work)
	before, allocs, model := p.s.counted(), heapAllocs(), p.s.modelStatements.Load()
	cpu, own := machine.ReadCPU(), readOwnCPU()
	var over []func()
	for _, o := range p.s.outages {
		over = append(over, o.schedule(d.tb.nano, p.m.cfg.Duration))
	}
	if t := p.m.cfg.Timer; t != nil {
		t.StartTimer()
		d.run(work)
		t.StopTimer()
	} else {
		d.run(work)
	}
	for _, end := range over {
		end()
	}
	p.steal, p.own = machine.ReadCPU().Sub(cpu), readOwnCPU().sub(own)
	p.allocs = heapAllocs() - allocs
	p.modelSQL = p.s.modelStatements.Load() - model
	p.cost = p.s.counted().sub(before)
	p.redisAfter, p.sqlAfter = p.s.redisState(work), p.s.sqlState(work)
	p.run.Partial = d.stop.Load()
	if err := d.crash.Load(); err != nil {
		return *err
	}
	return nil
}

func heapAllocs() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
