package harness

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// counting is a strategy whose own figures are planted.
type counting struct {
	strategies.Strategy
	retries, size, most int64
}

func (c *counting) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "retries", Unit: "retries", Value: c.retries},
		{Name: "size", Unit: "bytes", Value: c.size, Kind: strategies.MeasureLevel},
		{Name: "depth", Unit: "charges", Value: c.most, Kind: strategies.MeasureMost},
	}
}

// TestMeter plants figures of two instances before and in a pass: what was counted
// before is taken off, levels are those of the end, and of the largest the larger.
func TestMeter(t *testing.T) {
	a := &counting{retries: 5, size: 100, most: 9}
	b := &counting{retries: 1, size: 20, most: 3}
	s := &Session{Instances: []strategies.Strategy{a, b}}
	before := s.Meter()
	a.retries, b.retries, a.size, b.most = 10, 3, 150, 12
	want := []results.Measure{
		{Name: "retries", Unit: "retries", Value: 7}, {Name: "size", Unit: "bytes", Kind: "level", Value: 170},
		{Name: "depth", Unit: "charges", Kind: "most", Value: 12},
	}
	if got := MeterSince(before, s.Meter()); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (&Session{Instances: []strategies.Strategy{struct{ strategies.Strategy }{}}}).Meter(); got != nil {
		t.Errorf("a strategy without figures has %+v", got)
	}
}

// handHost is a host whose clock is set by hand.
type handHost struct{ clock *handClock }

func (h handHost) Furnish(_ context.Context, env *strategies.Env) error {
	env.Clock = h.clock
	return nil
}

func (h handHost) Adopt(_ int, jobs []*Job) error {
	for _, j := range jobs {
		j.Begin()
	}
	return nil
}

// meteredJob has a job, and figures that are planted.
type meteredJob struct {
	counting
	run    func(context.Context) (bool, error)
	closed *int
}

func (m *meteredJob) Jobs() []strategies.Job {
	return []strategies.Job{{Name: "sync", Every: time.Second, Run: m.run}}
}

func (m *meteredJob) Close(context.Context) error {
	*m.closed++
	return nil
}

// TestReopen: an instance in the place of another one has a random source of its own. What was
// counted and how rounds of jobs went is known further on, levels go with the memory, and rounds
// of the former instance count no more.
func TestReopen(t *testing.T) {
	h := handHost{&handClock{now: time.Unix(1000, 0)}}
	closed := 0
	fails := errors.New("planted error")
	var draws []uint64
	meta := &strategies.Meta{Name: "planted",
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			draws = append(draws, env.Rand.Uint64())
			return &meteredJob{counting{nil, 5, 100, 9}, func(context.Context) (bool, error) {
				return true, fails
			}, &closed}, nil
		}}
	s := &Session{Plan: &Plan{}, Selection: strategies.Selection{Meta: meta}}
	if err := s.Open(t.Context(), 2, 1, h); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, _ = s.Jobs[0].Run(ctx)
	former := s.Jobs[0]
	h.clock.now = time.Unix(1002, 0)
	if err := s.Reopen(ctx, h, 0); err != nil || len(s.Instances) != 2 || len(s.Jobs) != 2 {
		t.Fatalf("%v, %d instances, %d jobs", err, len(s.Instances), len(s.Jobs))
	}
	_, _ = former.Run(ctx)
	fails = nil
	h.clock.now = time.Unix(1003, 0)
	_, _ = s.Jobs[0].Run(ctx)
	if n, err := s.FailedRounds(); n != 1 || err == nil || s.AchievedPeriod() != 3*time.Second {
		t.Errorf("%d failed rounds, %v, and a period of %v", n, err, s.AchievedPeriod())
	}
	if m := s.Meter(); m[0].Value != 15 || m[1].Value != 200 || m[2].Value != 9 {
		t.Errorf("%+v", m)
	}
	if draws[2] == draws[0] || draws[2] == draws[1] {
		t.Errorf("sources of instances begin with %x", draws)
	}
	if err := s.Close(ctx); err != nil || closed != 3 {
		t.Errorf("%v, %d closed", err, closed)
	}
}

// tidyingJob has a job that only one instance of all runs.
type tidyingJob struct{ meteredJob }

func (*tidyingJob) Jobs() []strategies.Job {
	return []strategies.Job{{Name: "tidy", Every: time.Second, Singleton: true}}
}

// placed are peers of which this process has a place.
type placed struct {
	Peers
	number, of int
	judged     *Facts
}

func (p *placed) Place() (number, of int)         { return p.number, p.of }
func (p *placed) Judged(_ *results.Run, f *Facts) { p.judged = f }

// TestInstancesOfPeers: those of all processes have numbers and random sources of their own, and one of them
// alone runs what runs once.
func TestInstancesOfPeers(t *testing.T) {
	numbers := map[int]bool{}
	draws := map[uint64]bool{}
	jobs := 0
	closed := 0
	meta := &strategies.Meta{Name: "planted",
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			numbers[env.Instance], draws[env.Rand.Uint64()] = true, true
			if env.Instances != 6 {
				t.Errorf("there are %d instances", env.Instances)
			}
			return &tidyingJob{meteredJob{closed: &closed}}, nil
		}}
	for number := range 3 {
		plan := &Plan{Surroundings: Surroundings{Peers: &placed{number: number, of: 3}}}
		s := &Session{Plan: plan, Selection: strategies.Selection{Meta: meta}}
		if err := s.Open(t.Context(), 2, 1, handHost{&handClock{}}); err != nil {
			t.Fatal(err)
		}
		jobs += len(s.Jobs)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(numbers) != 6 || !numbers[0] || !numbers[5] || len(draws) != 6 || jobs != 1 {
		t.Errorf("instances %v, %d sources, %d jobs", numbers, len(draws), jobs)
	}
}

// TestPeersShareTheStream: all operations and arrivals are some process' own, each once.
func TestPeersShareTheStream(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 3, 10, 11} {
		sum := int64(0)
		for number := range 3 {
			plan := &Plan{Surroundings: Surroundings{Peers: &placed{number: number, of: 3}}}
			sum += plan.Ops(n)
		}
		if alone := (&Plan{}).Ops(n); sum != n || alone != n {
			t.Errorf("%d operations: %d among three, %d alone", n, sum, alone)
		}
	}
	seen := map[time.Duration]int{}
	for number := range 3 {
		plan := &Plan{Surroundings: Surroundings{Peers: &placed{number: number, of: 3}}}
		all, err := workloads.Constant(1000)
		if err != nil {
			t.Fatal(err)
		}
		own := plan.own(all)
		for range 4 {
			at, _ := own.Next()
			seen[at]++
		}
	}
	whole, err := workloads.Constant(1000)
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if at, _ := whole.Next(); seen[at] != 1 {
			t.Errorf("%d processes have the arrival at %v", seen[at], at)
		}
	}
}
