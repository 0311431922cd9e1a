package harness

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// flow is a stream of requests for one unit.
type flow struct {
	n, per   int64
	subjects int
	used     int64
}

func (f *flow) At(i int64, op *workloads.Op) {
	*op = workloads.Op{Units: 1, At: time.Duration(i) * time.Second}
}
func (f *flow) Len() int64             { return f.n }
func (f *flow) Subjects() int          { return f.subjects }
func (f *flow) OpsPerCrossing() int64  { return f.per }
func (f *flow) Name(s uint32) string   { return fmt.Sprintf("s%d", s) }
func (f *flow) Initial(s uint32) int64 { return f.used + int64(s) }

// TestSize bounds requests by the stream, the plan, the trials and the duration.
func TestSize(t *testing.T) {
	for _, c := range []struct {
		name      string
		plan      Plan
		stream    flow
		perSecond float64
		requests  int64
		subjects  int
	}{
		{"no bound", Plan{}, flow{subjects: 3}, 100, math.MaxInt64, 3},
		{"stream", Plan{}, flow{n: 70, subjects: 3}, 100, 70, 3},
		{"plan", Plan{Traffic: Traffic{Requests: 50}}, flow{n: 70, subjects: 3}, 100, 50, 3},
		{"longer plan", Plan{Traffic: Traffic{Requests: 90}}, flow{n: 70, subjects: 3}, 100, 70, 3},
		{"trials", Plan{}, flow{per: 20}, 100, 40_000_000, 2_000_000},
		{"a part of a trial", Plan{Traffic: Traffic{Requests: 41}}, flow{per: 20}, 100, 41, 3},
		{"whole trials", Plan{Traffic: Traffic{Requests: 40}}, flow{per: 20}, 100, 40, 2},
		{"duration", Plan{Traffic: Traffic{Duration: 2 * time.Second}}, flow{per: 20}, 100, 460, 23},
		{"duration, unknown rate", Plan{Traffic: Traffic{Duration: 2 * time.Second}}, flow{per: 20}, 0, 4_000_000, 200_000},
		{"a long time", Plan{Traffic: Traffic{Duration: time.Hour}}, flow{per: 1}, 1e6, 2_000_000, 2_000_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n, s := c.plan.Size(&c.stream, c.perSecond); n != c.requests || s != c.subjects {
				t.Errorf("%d requests of %d subjects, want %d of %d", n, s, c.requests, c.subjects)
			}
		})
	}
}

// TestAlign puts a window's end half way, and a trace's first row at the start.
func TestAlign(t *testing.T) {
	begin := time.Unix(2_000_000, 300)
	recorded := time.Date(2020, time.May, 5, 5, 5, 5, 0, time.UTC)
	minute := quota.Window{Kind: quota.Fixed, Length: time.Minute}
	align := func(w quota.Window, boundary bool, speed float64) quota.Window {
		p := Plan{Policy: quota.Policy{Limit: 3, Window: w}, Traffic: Traffic{
			Workload: &workloads.Meta{Boundary: boundary},
			Stream:   workloads.Params{Options: quota.Options{"speed": fmt.Sprint(speed)}},
		}}
		got := p.Align(workloads.Info{Trace: &workloads.TraceInfo{First: recorded}}, begin, 10*time.Second)
		if got.Limit != 3 {
			t.Errorf("%+v", got)
		}
		return got.Window
	}
	w := align(minute, true, 0)
	if at := w.At(begin.Add(5 * time.Second)); !at.Start.Equal(begin.Add(5 * time.Second)) {
		t.Errorf("a window begins at %v", at.Start)
	}
	if w := align(minute, false, 0); w != minute {
		t.Errorf("%+v", w)
	}
	rolling := quota.Window{Kind: quota.Rolling, Length: time.Minute}
	if w := align(rolling, true, 0); w != rolling {
		t.Errorf("%+v", w)
	}
	want := quota.Timeline{Real: begin, Policy: recorded, Speed: 60}
	if w := align(rolling, false, 60); w.Timeline != want {
		t.Errorf("%+v", w.Timeline)
	}
	if w := align(minute, true, 60); w.Timeline != want {
		t.Errorf("%+v", w.Timeline)
	}
	if w := align(quota.Window{}, true, 60); w != (quota.Window{}) {
		t.Errorf("%+v", w)
	}
}

func TestLoops(t *testing.T) {
	open := workloads.Info{Loop: workloads.Open}
	closed := workloads.Info{Loop: workloads.Closed}
	for _, c := range []struct {
		plan Plan
		info workloads.Info
		want bool
	}{
		{Plan{}, open, true}, {Plan{}, closed, false}, {Plan{Traffic: Traffic{Load: OpenAt(1)}}, closed, true},
		{Plan{Traffic: Traffic{Load: Closed()}}, open, false},
		{Plan{Traffic: Traffic{Load: Load{Loop: Both,
			PerSecond: 1}}}, closed, false}, {Plan{Traffic: Traffic{Load: Load{Loop: Both, PerSecond: 1}}}, open, true},
		{Plan{Traffic: Traffic{Load: OpenAt(0)}}, closed, false},
	} {
		if got := c.plan.Open(c.info); got != c.want {
			t.Errorf("%+v is open: %t", c.plan, got)
		}
	}
	p := Plan{Traffic: Traffic{Workload: &workloads.Meta{Rate: 70}}}
	if p.RateInForce() != 70 || p.arrivals() != poisson {
		t.Errorf("a rate of %g, arrivals %s", p.RateInForce(), p.arrivals())
	}
	p.Load = OpenAt(30)
	p.Arrivals = constant
	if p.RateInForce() != 30 || p.arrivals() != constant {
		t.Errorf("a rate of %g, arrivals %s", p.RateInForce(), p.arrivals())
	}
	p.Stream.Set("speed", 2)
	if p.RateInForce() != 0 || p.arrivals() != recorded {
		t.Errorf("a rate of %g, arrivals %s", p.RateInForce(), p.arrivals())
	}
}

// TestArrivals takes the second arrival of each kind.
func TestArrivals(t *testing.T) {
	second := func(p Plan, round int) time.Duration {
		p.Workload = &workloads.Meta{Rate: 10}
		a, err := p.NewArrivals(&flow{n: 5}, round)
		if err != nil {
			t.Fatal(err)
		}
		a.Next()
		at, _ := a.Next()
		return at
	}
	if at := second(Plan{Traffic: Traffic{Arrivals: constant}}, 1); at != 100*time.Millisecond {
		t.Errorf("constant arrivals at %v", at)
	}
	if at := second(Plan{Traffic: Traffic{Stream: workloads.Params{Options: quota.Options{"speed": fmt.Sprint(4)}}}},
		1); at != 250*time.Millisecond {
		t.Errorf("recorded arrivals at %v", at)
	}
	one := second(Plan{Seed: 5}, 1)
	two := second(Plan{Seed: 5}, 2)
	if one == two || one != second(Plan{Seed: 5}, 1) || two != second(Plan{Seed: roundSeed(5, 2)}, 1) {
		t.Errorf("random arrivals at %v and %v", one, two)
	}
}

// TestNewStream hands the plan's own fields to the workload, and each round a seed.
func TestNewStream(t *testing.T) {
	var got workloads.Params
	p := Plan{Seed: 7, Traffic: Traffic{
		Requests: 30,
		Workload: &workloads.Meta{Name: "planted", Make: func(p workloads.Params) (workloads.Stream, workloads.Info, error) {
			got = p
			return &flow{}, workloads.Info{}, nil
		}},
	}, Policy: quota.Policy{Limit: 9}}
	for round, want := range map[int]uint64{1: 7, 2: 7 + 0x9E3779B97F4A7C15, 3: 7 + 0x3C6EF372FE94F82A} {
		if _, _, err := p.NewStream(round); err != nil || got.Seed != want || got.Requests != 30 || got.Policy != &p.Policy {
			t.Errorf("round %d: %+v, %v", round, got, err)
		}
	}
}
