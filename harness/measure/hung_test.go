package measure

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// slow is a strategy that asks before it admits, gives back, or closes.
type slow struct {
	take, refund, close func(ctx context.Context, n int64) error
	taken, refunded     atomic.Int64
}

func (s *slow) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	d := quota.Decision{Admitted: true, Tier: quota.TierProcess, Remaining: -1, Reservation: quota.Reservation{Request: r}}
	if s.take == nil || r.ID >= bounds.ProbeID {
		return d, nil
	}
	return d, s.take(ctx, s.taken.Add(1))
}

func (s *slow) Refund(ctx context.Context, _ quota.Reservation) error {
	if s.refund == nil {
		return nil
	}
	return s.refund(ctx, s.refunded.Add(1))
}

func (s *slow) Close(ctx context.Context) error {
	if s.close == nil {
		return nil
	}
	return s.close(ctx, 1)
}

// config measures it on the wall clock.
func (s *slow) config(t *testing.T, policy, workload string, deadline time.Duration) Config {
	t.Helper()
	p, err := harness.NewPlan("unlimited", policy, workload)
	if err != nil {
		t.Fatal(err)
	}
	p.Strategies = []strategies.Selection{{Meta: &strategies.Meta{
		Name: "slow", Doc: "takes its time", Form: strategies.Baseline, Kinds: quota.Kinds(),
		GivesBack: true,
		Open:      func(context.Context, strategies.Env) (strategies.Strategy, error) { return s, nil },
	}}}
	p.Requests = 400
	p.Workers = 3
	p.Seed = 3
	p.DecisionTimeout = deadline
	return Config{Plan: p, Rounds: 1, NoReference: true}
}

func (s *slow) run(t *testing.T, cfg Config) results.Run {
	t.Helper()
	report, err := Measure(t.Context(), cfg)
	if err != nil || len(report.Runs) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	return report.Runs[0]
}

// soonOverdue is the deadline of decisions that are not to return in time. A busy machine
// leaves no thread of this program waiting for that long while others of it run.
const soonOverdue = 300 * time.Millisecond

func never(context.Context, int64) error { select {} }

// TestOverdueDecisionIsCancelled: a decision that waits for its context is cancelled
// once it is overdue, and the next has a context that is not.
func TestOverdueDecisionIsCancelled(t *testing.T) {
	var cancelled, fresh atomic.Int64
	s := &slow{take: func(ctx context.Context, n int64) error {
		if ctx.Err() != nil {
			fresh.Add(1)
		}
		if n%100 != 0 {
			return nil
		}
		<-ctx.Done()
		cancelled.Add(1)
		return ctx.Err()
	}}
	for _, loop := range []float64{0, 5000} {
		cancelled.Store(0)
		s.taken.Store(0)
		cfg := s.config(t, "user-links", "hot-key", soonOverdue)
		cfg.Load = harness.OpenAt(loop)
		r := s.run(t, cfg)
		// Requests of an open loop that a busy machine does not begin in time are not issued.
		late := r.Issued / 100
		if r.Issued != s.taken.Load() || r.Issued != 400 && loop == 0 || late == 0 || r.Errors != late ||
			cancelled.Load() != late || fresh.Load() != 0 ||
			r.DidNotReturn != 0 || r.Audit.Has(codes.Hung) {
			t.Errorf("%d issued, %d errors, %d cancelled, %d begun with a context that was: %+v", r.Issued, r.Errors,
				cancelled.Load(), fresh.Load(), r.Audit)
		}
		if !strings.Contains(r.FirstError, "--decision-timeout") || r.Params.DecisionTimeoutNS != int64(soonOverdue) {
			t.Errorf("first error %q of %+v", r.FirstError, r.Params)
		}
	}
}

// TestHungSettlement: a refund that does not return ends the run, too, and so does a
// strategy that cannot even be closed then.
func TestHungSettlement(t *testing.T) {
	s := &slow{close: never, refund: func(_ context.Context, n int64) error {
		if n == 5 {
			select {}
		}
		return nil
	}}
	cfg := s.config(t, "tenant-uploads", "uploads", soonOverdue)
	cfg.Stream.Set("settle", "1ms")
	cfg.Stream.Set("hold", "1ms")
	cfg.Requests = 4000
	r := s.run(t, cfg)
	if r.DidNotReturn != 1 || !r.Audit.Has(codes.Hung) || r.Settlement == nil || r.Settlement.Errors != 1 ||
		r.Issued == 0 {
		t.Errorf("%d did not return, %+v: %+v", r.DidNotReturn, r.Settlement, r.Audit)
	}
	if detail := r.Audit.Reasons[0].Detail; !strings.Contains(detail, "in a refund") ||
		!strings.Contains(detail, "hung_test.go") || r.Audit.Has("count-mismatch") {
		t.Errorf("%+v", r.Audit.Reasons)
	}
}

// TestHungInAnOpenLoop: what did not return took at least that long, and is counted.
func TestHungInAnOpenLoop(t *testing.T) {
	s := &slow{take: func(_ context.Context, n int64) error {
		if n == 5 { // early: what a busy machine does not begin in time is not issued
			select {}
		}
		return nil
	}}
	cfg := s.config(t, "user-links", "hot-key", soonOverdue)
	cfg.Load = harness.OpenAt(2000)
	r := s.run(t, cfg)
	if r.DidNotReturn != 1 || r.Errors != 1 || r.Audit.Has("sample-mismatch") || r.Audit.Has("count-mismatch") ||
		r.Issued < 5 {
		t.Errorf("%d did not return, %d of %d errors: %+v", r.DidNotReturn, r.Errors, r.Issued, r.Audit)
	}
}

// TestInterruptedWhileACallHangs: Ctrl-C does not wait for a call that does not return,
// and loses neither the round before nor what was decided in this one.
func TestInterruptedWhileACallHangs(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var once sync.Once
	s := &slow{take: func(_ context.Context, n int64) error {
		if n > 600 { // in the second round
			once.Do(interrupt)
			select {}
		}
		return nil
	}}
	cfg := s.config(t, "user-links", "hot-key", bounds.DecisionTimeout)
	cfg.Rounds = 3
	report, err := Measure(ctx, cfg)
	if err != nil || !report.Interrupted || len(report.Runs) != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	first := report.Runs[0]
	second := report.Runs[1]
	if first.Issued != 400 || first.Partial || !second.Partial || second.Issued < 200 || second.DidNotReturn == 0 {
		t.Errorf("%d requests, then %d, of which %d did not return: %+v", first.Issued, second.Issued, second.DidNotReturn,
			second.Audit)
	}
}

// TestHungWhileBeingRead: a counter that cannot be read, and a probe that does not
// return, leave what was decided.
func TestHungWhileBeingRead(t *testing.T) {
	s := &slow{}
	cfg := s.config(t, "user-links", "hot-key", soonOverdue)
	cfg.Strategies[0].Counts = quota.CountsAdmitted
	cfg.Strategies[0].Open = func(context.Context, strategies.Env) (strategies.Strategy, error) {
		return &unreadable{slow: s}, nil
	}
	r := s.run(t, cfg)
	if r.Issued != 400 || r.DidNotReturn != 1 || !r.Audit.Has(codes.Hung) ||
		!strings.Contains(r.Audit.Reasons[0].Detail, "being read") {
		t.Errorf("%d issued, %d did not return: %+v", r.Issued, r.DidNotReturn, r.Audit)
	}
}

type unreadable struct{ *slow }

func (*unreadable) Used(context.Context, quota.Subject, *quota.Policy) ([]quota.Reading, error) {
	select {}
}

// TestAbandonedWorkerTouchesNothing: what returns after it was given up is not
// counted. The race detector sees what it touches.
func TestAbandonedWorkerTouchesNothing(t *testing.T) {
	release := make(chan bool)
	returned := make(chan bool, 1)
	s := &slow{take: func(_ context.Context, n int64) error {
		if n == 100 {
			<-release
			defer func() { returned <- true }()
			return errors.New("too late")
		}
		return nil
	}}
	r := s.run(t, s.config(t, "user-links", "hot-key", soonOverdue))
	close(release)
	<-returned
	if r.DidNotReturn != 1 || r.Errors != 1 || strings.Contains(r.FirstError, "too late") {
		t.Errorf("%d did not return, %d errors, the first: %s", r.DidNotReturn, r.Errors, r.FirstError)
	}
}
