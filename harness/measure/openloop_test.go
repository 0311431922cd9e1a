package measure

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// A stalled server delays the requests that were due meanwhile. In open loop
// they count from when they were due, so one stall of 100 ms at 1,000 requests/s
// must show in about 100 responses, and in the service time of as many as there
// are workers: closed-loop figures would hide it (coordinated omission).
func TestOpenLoopCountsFromTheIntendedStart(t *testing.T) {
	stalled := false
	p := &planted{}
	p.delay = func(ctx context.Context) {
		p.mu.Lock()
		first := p.total == 200 && !stalled
		stalled = stalled || first
		p.mu.Unlock()
		if first {
			_ = wallTime.clock.Sleep(ctx, 100*time.Millisecond)
		}
	}
	r := measureOne(t, p, "steady", func(c *Config) {
		c.base, c.Workers, c.Load, c.Arrivals, c.Requests = nil, 1, harness.OpenAt(1000), "constant", 600
		c.Stream = workloads.Params{Options: quota.Options{"subjects": "50"}}
		c.Policy.Limit = 1000
	})
	if !r.Audit.Valid {
		t.Fatalf("audit %+v", r.Audit)
	}
	if r.Params.Loop != codes.OpenLoop || r.Response == nil || r.Lateness == nil {
		t.Fatalf("not an open loop: %+v", r.Params)
	}
	h, err := r.Response.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if q := h.Quantile(0.85); q < 10_000_000 { // about 1 in 6 was due in the stall
		t.Errorf("85 %% of responses took at most %v, want the stall to show", time.Duration(q))
	}
	s, err := r.Service.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if q := s.Quantile(0.98); q > 50_000_000 {
		t.Errorf("98 %% of services took up to %v: the stall of 100 ms was one request", time.Duration(q))
	}
	if s.Max() < 100_000_000 {
		t.Errorf("the longest service took %v, want at least the stall of 100 ms", time.Duration(s.Max()))
	}
}

// More than the strategy can do: the backlog grows, and says so.
func TestOpenLoopSaturates(t *testing.T) {
	// 200 decisions per second, so that the backlog grows even if the pacer is held up.
	p := &planted{delay: func(ctx context.Context) { _ = wallTime.clock.Sleep(ctx, 10*time.Millisecond) }}
	r := measureOne(t, p, "steady", func(c *Config) {
		c.base, c.Workers, c.Load, c.Arrivals = nil, 2, harness.OpenAt(2000), "constant"
		c.Requests = 0
		c.Duration = 300 * time.Millisecond
		c.Stream = workloads.Params{Options: quota.Options{"subjects": "50"}}
	})
	if !r.Lateness.Saturated {
		t.Errorf("not saturated: %+v", r.Lateness)
	}
	if r.Response.AtLeast == 0 {
		t.Error("no unfinished request entered as at least")
	}
	if want := r.Issued + r.Response.AtLeast; r.Response.Samples != want {
		t.Errorf("%d samples, want %d issued and unfinished", r.Response.Samples, want)
	}
	if !hasReason(r, "saturated") {
		t.Errorf("audit %+v", r.Audit)
	}
}

func hasReason(r results.Run, code string) bool {
	for _, x := range r.Audit.Reasons {
		if x.Code == code {
			return true
		}
	}
	return false
}

// TestPacerIsNeverEarly has it release requests at moments that it must wait for.
func TestPacerIsNeverEarly(t *testing.T) {
	p := newPacer(wallTime.nano, 0)
	defer p.close()
	if early := recordLateness(results.NewHistogram(), p.wait, 50); early > 0 {
		t.Errorf("the pacer was early %d times", early)
	}
}

// TestPacerIsEarlierThanSleep compares the pacer's lateness with that of
// time.Sleep, in turns, so that both meet the same load. Lateness is the machine's, and a
// busy one may delay either for a whole turn: the pacer fails only if it is later by
// half in every one of many attempts.
func TestPacerIsEarlierThanSleep(t *testing.T) {
	testenv.Long(t)
	p := newPacer(wallTime.nano, 0)
	defer p.close()
	sleep := func(at int64) {
		if d := at - wallTime.nano(); d > 0 {
			time.Sleep(time.Duration(d))
		}
	}
	const attempts, turns, moments, margin = 60, 10, 50, 1.5
	for range attempts {
		ours := results.NewHistogram()
		theirs := results.NewHistogram()
		for range turns {
			if early := recordLateness(ours, p.wait, moments); early > 0 {
				t.Errorf("the pacer was early %d times", early)
			}
			recordLateness(theirs, sleep, moments)
		}
		ratio := float64(ours.Quantile(0.5)) / float64(max(1, theirs.Quantile(0.5)))
		t.Logf("median lateness: pacer %v, time.Sleep %v", time.Duration(ours.Quantile(0.5)),
			time.Duration(theirs.Quantile(0.5)))
		if ratio <= margin {
			return
		}
	}
	t.Errorf("in each of %d attempts the pacer is later than time.Sleep by more than a factor of %g", attempts, margin)
}

// recordLateness records how much later than each of n moments, 200 microseconds
// apart, wait returns, and counts how often it returned before its moment.
func recordLateness(h *results.Histogram, wait func(at int64), n int64) (early int) {
	start := wallTime.nano() + 1_000_000
	for i := range n {
		at := start + i*200_000
		wait(at)
		late := wallTime.nano() - at
		if late < 0 {
			early++
		}
		h.Record(late)
	}
	return early
}

// What a pass in open loop records into was made before it: a histogram made with the
// first request of each worker would be seen in the percentiles of a short pass.
func TestOpenLoopIsReadyWhenItBegins(t *testing.T) {
	warm := newRecorder(1)
	warm.record(warm.stripe(0), oracle.Admitted, 0, false, 1)
	rec := warm.warmed(true)
	s := rec.stripe(0)
	for _, outcome := range []oracle.Outcome{oracle.Admitted, oracle.Rejected} {
		i := slot(outcome, 0)
		latency := s.latency[i]
		service := s.service[i]
		wait := s.wait
		rec.recordOpen(s, outcome, 0, false, openTimes{3, 2, 1})
		if latency != s.latency[i] || service != s.service[i] || wait != s.wait {
			t.Errorf("histograms are made when the first request is %v", outcome)
		}
	}

	// A fast strategy is not given the subjects of a rate that no one offers.
	r := measureOne(t, &planted{}, "hot-key", func(c *Config) {
		c.base, c.Workers, c.Load, c.Duration = nil, 4, harness.OpenAt(400), 50*time.Millisecond
		c.Policy.Limit = 5
	})
	if most := int(400*0.05*1.5*warmUpFactor/10) + 9; r.Params.Subjects > most {
		t.Errorf("%d subjects, want at most %d", r.Params.Subjects, most)
	}
}
