package measure

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// firstSite opens the site of the first generator, which makes room in the stores for all of them.
func (p *pass) firstSite(ctx context.Context) error {
	if !p.measurement.cfg.First() {
		return nil
	}
	return p.openSite(ctx)
}

// otherSites opens the site of any other generator. The policy's windows begin for all at the moment at which the
// first site was open.
func (p *pass) otherSites(ctx context.Context) error {
	if p.site == nil {
		if err := p.openSite(ctx); err != nil {
			return err
		}
	}
	m := p.measurement
	if !p.met.IsZero() {
		m.ahead, _ = m.cfg.Peers.Clock()
	}
	policy := m.from(p.met)
	p.policy = &policy
	return nil
}

func (p *pass) openSite(ctx context.Context) error {
	m := p.measurement
	name := m.siteName(fmt.Sprint(m.begun))
	site, err := openSite(ctx, m.cfg, m.timebase, p.selection, name, p.run.Repetition)
	p.site = site
	return err
}

// placement puts this process and the stores on cores. An interrupt does not end that: the stores stay there for the
// passes to come.
func (p *pass) placement(ctx context.Context) error {
	m := p.measurement
	open := m.cfg.Open(p.info)
	placement, lift := m.places.take(context.WithoutCancel(ctx), open, m.cfg.RateInForce(), storesOf(p.selection))
	p.run.Placement = &placement
	p.lift = lift
	return nil
}

// warmUp opens connections, loads scripts and prepares statements by requests of other subjects.
func (p *pass) warmUp(ctx context.Context) error {
	warm := p.newWarmUp()
	grants := harness.Grants(warm.stream, p.policy, warmSubjects)
	if err := p.site.Provision(ctx, p.policy, grants, 0); err != nil {
		return err
	}
	warm.run(ctx)
	if err := warm.failure(); err != nil {
		p.site.lose()
		return err
	}
	// Errors that the strategy's source asks for are its answers.
	counts := &warm.counts
	if warm.rate() == 0 && counts.FirstError != nil && counts.Prescribed.Total() == 0 {
		return fmt.Errorf("every warm-up request failed: %w", counts.FirstError)
	}
	p.warm = warm
	p.warmed = min(warmSubjects, warm.next.Load())
	return nil
}

// newWarmUp prepares the warm-up, whose requests have IDs of their own, and subjects that differ from those of other
// generators.
func (p *pass) newWarmUp() *drive {
	measurement := p.measurement
	config := measurement.cfg
	stream := warmStream{units: p.policy.LeastCost()}
	firstID := uint64(bounds.WarmUpID)
	if config.Peers != nil {
		place, _ := config.Place()
		stream.whose = fmt.Sprintf("p%d-", place+1)
		firstID += uint64(place+1) << 40
	}
	return &drive{
		timebase: measurement.timebase, instances: p.site.Instances, deadline: measurement.deadline(),

		stream: stream, requests: math.MaxInt64, duration: int64(warmUpTime(config.Duration)), firstID: firstID,
		subjects: newSubjects(stream, warmSubjects, warmSubjects), workers: config.Workers,

		policy: p.policy, rec: newRecorder(config.Workers),
	}
}

func warmUpTime(duration time.Duration) time.Duration {
	if duration == 0 {
		duration = bounds.RoundDuration
	}
	return min(max(duration/8, 20*time.Millisecond), 200*time.Millisecond)
}

// warmSubjects are enough that the warm-up does not become a contest for one row.
const warmSubjects = 64

// warmStream asks for the smallest cost, of one subject after the other.
type warmStream struct {
	units int64
	whose string // of several peers
}

func (w warmStream) At(i int64, op *workloads.Op) {
	*op = workloads.Op{Subject: uint32(i % warmSubjects), Units: w.units}
}
func (warmStream) Len() int64 { return 0 }

// Name begins as stores know subjects by that nobody asks about any more.
func (w warmStream) Name(n uint32) string { return fmt.Sprintf("warm-up-%s%d", w.whose, n) }

// operations prepares the operations of the pass: how many the stream gives, who is asked about, when they arrive in
// an open loop, and where they are recorded.
func (p *pass) operations(context.Context) error {
	measurement := p.measurement
	config := measurement.cfg
	open := config.Open(p.info)
	rate := p.expectedRate()
	drive := measurement.newDrive(p.site, p.stream, p.policy, rate)
	p.drive = drive
	drive.rec = p.warm.rec.warmed(open)
	p.warm = nil // its memory is freed before the pass begins
	drive.begins = func(now time.Time) {
		if !p.began.IsZero() {
			now = p.began
		}
		measurement.realign(p.policy, p.info, now, measurement.expected(rate, drive.requests))
	}
	p.run.Params.Subjects = drive.subjects.count
	if !open {
		return nil
	}
	drive.perSecond = config.RateInForce() / float64(max(drive.peers, 1))
	var err error
	drive.arrivals, err = config.NewArrivals(p.stream, p.run.Repetition)
	return err
}

// expectedRate is that of the warm-up, or the one offered if that is less.
func (p *pass) expectedRate() float64 {
	config := p.measurement.cfg
	rate := p.warm.rate()
	offered := config.RateInForce()
	if config.Open(p.info) && offered > 0 {
		return min(rate, offered)
	}
	return rate
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
func (m *measurement) newDrive(site *site, stream workloads.Stream, policy *quota.Policy, rate float64) *drive {
	config := m.cfg
	factor := float64(warmUpFactor)
	if setsUp(site, stream) {
		factor = provisionedFactor
	}
	requests, subjects := config.Size(stream, factor*rate)
	_, ready := config.Size(stream, rate)
	if config.Peers != nil { // peers differ in their rates, and not in the subjects
		requests, subjects = config.Size(stream, 0)
		requests = config.Ops(requests)
		ready = 0
	}
	number, peers := config.Place()
	perCrossing := workloads.OpsPerCrossing(stream)
	return &drive{
		timebase: m.timebase, instances: site.Instances, stand: site.stand, deadline: m.deadline(),

		stream: stream, requests: requests, duration: int64(config.Duration), place: int64(number), peers: int64(peers),
		subjects: newSubjects(stream, subjects, ready), workers: config.Workers,
		crossing:      m.toCross(int(site.round), perCrossing),
		longCrossings: perCrossing >= 4*int64(config.Workers),

		policy: policy, lowest: config.LowestLimit(), life: config.Life, plan: &config.Plan,
		history: config.NewHistory(config.Workers, 0), online: true,
	}
}

// toCross is how many requests the first pass of a strategy gives at least, so that it goes beyond a limit: three
// quarters of a crossing, which is for twice the limit. Time alone counts if trouble is planned, whose moments are in
// it, and among generators on several machines, which end together.
func (m *measurement) toCross(round int, perCrossing int64) int64 {
	if round > 1 || len(m.cfg.Trouble) > 0 || m.cfg.Peers != nil {
		return 0
	}
	return perCrossing * 3 / 4
}

// provision sets the subjects up that the strategy or the workload asks to be set up.
func (p *pass) provision(ctx context.Context) error {
	p.site.Filling = p.measurement.obs.Filling
	return p.drive.provision(ctx, p.site)
}

// setsUp reports whether the strategy or the workload asks for subjects that are set
// up before the first request.
func setsUp(s *site, stream workloads.Stream) bool {
	_, asks := s.Instances[0].(strategies.Provisioner)
	_, prefilled := stream.(workloads.Prefilled)
	return asks || prefilled
}

// provision sets the subjects up.
func (d *drive) provision(ctx context.Context, site *site) error {
	if !setsUp(site, d.stream) {
		return nil
	}
	grants := harness.Grants(d.stream, d.policy, d.subjects.count)
	if asked := d.willAsk(); asked != nil {
		for i := range grants {
			if !asked[uint32(i)] {
				grants[i].Used = 0 // it will not be seen
			}
		}
	}
	site.Fillers = d.workers
	if d.place == 0 { // one generator fills for all, and all know the initial use
		if err := site.Provision(ctx, d.policy, grants, 0); err != nil {
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
	requests := d.requests
	if d.perSecond > 0 && d.duration > 0 { // arrivals vary around their rate
		requests = min(requests, int64(2*d.perSecond*time.Duration(d.duration).Seconds())+1000)
	}
	if requests > askAhead || d.peers > 1 {
		return nil
	}
	asked := map[uint32]bool{}
	var op workloads.Op
	for i := range requests {
		d.stream.At(i, &op)
		asked[op.Subject] = true
	}
	return asked
}

// catchUp has jobs do what the warm-up and the setting up left to them.
func (p *pass) catchUp(ctx context.Context) error { return p.measurement.catchUp(ctx, p.site) }

// catchUpLimit bounds how long jobs may have work from the warm-up.
const catchUpLimit = 10 * settleLimit

// catchUp has jobs do what the warm-up left to them. A round may take as long as all rounds at rest together: the
// counts in a queue are written one by one, and a busy machine takes its time for that.
func (m *measurement) catchUp(ctx context.Context, s *site) error {
	began := m.timebase.nano()
	again := true
	for again {
		var err error
		again, err = guard.Within(ctx, settleLimit, guard.Grace(m.cfg.DecisionTimeout), "its jobs", s.CatchUp)
		if err != nil {
			return err
		}
		took := time.Duration(m.timebase.nano() - began)
		if again && took > catchUpLimit {
			return fmt.Errorf("its jobs still have work %v after the warm-up", catchUpLimit)
		}
	}
	return nil
}

// startJobs starts the background jobs, which run until the pass is over.
func (p *pass) startJobs(ctx context.Context) error {
	p.site.jobs.start(ctx)
	return nil
}
