package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

var errPlanted = errors.New("planted failure")

func TestAuditErrors(t *testing.T) {
	p := &planted{errorNo: func(n int64) error {
		if n%100 == 0 {
			return errPlanted
		}
		return nil
	}}
	r := measureOne(t, p, "hot-key", nil)
	if r.Audit.Valid || !hasReason(r, "errors") {
		t.Errorf("1 %% of errors passed the audit: %+v", r.Audit)
	}
	if r.Errors < 39 || r.FirstError != errPlanted.Error() {
		t.Errorf("%d errors, first %q", r.Errors, r.FirstError)
	}
	if r.Issued != r.Admitted+r.Rejected+r.Errors || r.Issued != 4000 {
		t.Errorf("issued %d is not %d + %d + %d", r.Issued, r.Admitted, r.Rejected, r.Errors)
	}
}

// TestPlantedKindsOfErrors: contention and time-outs are results, and are given back as
// they were planted. As many errors of a store are none.
func TestPlantedKindsOfErrors(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	plant := func(two, one error) *planted {
		return &planted{errorNo: func(n int64) error {
			if n > 4000 { // after the pass comes a probe, which a store's error ends
				return nil
			}
			switch n % 100 {
			case 7, 57:
				return fmt.Errorf("planted: %w", two)
			case 31:
				return fmt.Errorf("planted: %w", one)
			}
			return nil
		}}
	}
	r := measureOne(t, plant(strategies.ErrContention, context.DeadlineExceeded), "hot-key", nil)
	if want := (results.ErrorKinds{Contention: 80, TimeOuts: 40}); r.ErrorKinds == nil || *r.ErrorKinds != want ||
		r.Errors != 120 || !r.Audit.Valid {
		t.Errorf("%d errors, %+v, want %+v; audit %+v", r.Errors, r.ErrorKinds, want, r.Audit)
	}
	r = measureOne(t, plant(refused, strategies.ErrContention), "hot-key", nil)
	if want := (results.ErrorKinds{Store: 80, Contention: 40}); r.ErrorKinds == nil || *r.ErrorKinds != want ||
		r.Audit.Valid {
		t.Errorf("%+v, want %+v; audit %+v", r.ErrorKinds, want, r.Audit)
	}
	if want := "2.00 % of requests ended in an error, the first: planted: dial tcp: connection refused"; !slices.ContainsFunc(r.Audit.Reasons, func(x results.Reason) bool {
		return x.Code == "errors" && x.Detail == want
	}) {
		t.Errorf("audit %+v, want errors: %s", r.Audit, want)
	}
	r = measureOne(t, &planted{}, "hot-key", nil)
	if r.ErrorKinds != nil {
		t.Errorf("%+v of no errors", r.ErrorKinds)
	}
}

func TestAuditPrescribedErrorsAreNoted(t *testing.T) {
	p := &planted{errorNo: func(n int64) error {
		if n%100 == 0 {
			return strategies.ErrPrescribed
		}
		return nil
	}}
	r := measureOne(t, p, "hot-key", nil)
	if !r.Audit.Valid || !hasReason(r, "prescribed-errors") {
		t.Errorf("audit %+v", r.Audit)
	}
}

// A strategy whose source makes every request fail is measured: its errors are what
// it does, and no mistake of the run.
func TestAuditOfNothingButPrescribedErrors(t *testing.T) {
	r := measureOne(t, &planted{errorNo: func(int64) error { return strategies.ErrPrescribed }}, "hot-key", nil)
	if !r.Audit.Valid || !hasReason(r, "nothing-admitted") || hasReason(r, "limit-never-crossed") {
		t.Errorf("audit %+v", r.Audit)
	}
	if r.Leak.Trials != 0 || r.Errors != r.Issued {
		t.Errorf("%d trials, %d errors of %d requests", r.Leak.Trials, r.Errors, r.Issued)
	}
}

func TestAuditLimitNeverCrossed(t *testing.T) {
	r := measureOne(t, &planted{}, "hot-key", func(c *Config) { c.Requests = 15 })
	if r.Audit.Valid || !hasReason(r, "limit-never-crossed") {
		t.Errorf("audit %+v", r.Audit)
	}
}

// TestFirstPassCrosses: the first pass of a strategy goes on until it went beyond a limit of 20, though its time of five
// requests is over. A later one ends in time.
func TestFirstPassCrosses(t *testing.T) {
	pass := func(earlier int) results.Run {
		return measureOne(t, &planted{}, "hot-key", func(c *Config) {
			c.Requests = 0
			c.Duration = 5 * time.Microsecond
			c.Earlier = earlier
		})
	}
	first := pass(0)
	if first.Issued < 30 || first.Leak.Trials == 0 || !first.Audit.Valid {
		t.Errorf("the first pass had %d requests and %d trials: %+v", first.Issued, first.Leak.Trials, first.Audit)
	}
	if later := pass(1); later.Issued > 20 || !hasReason(later, codes.NeverCrossed) {
		t.Errorf("a later pass had %d requests: %+v", later.Issued, later.Audit)
	}
}

func TestAuditControls(t *testing.T) {
	exact := &planted{leak: 1}
	r := measureOne(t, exact, "hot-key", func(c *Config) { c.Strategies[0].Control = strategies.ControlExact })
	if r.Audit.Valid || !hasReason(r, "control-failed") {
		t.Errorf("a leaking exact control passed: %+v", r.Audit)
	}
	r = measureOne(t, &planted{}, "hot-key", func(c *Config) { c.Strategies[0].Control = strategies.ControlOpen })
	if r.Audit.Valid || !hasReason(r, "control-failed") {
		t.Errorf("a rejecting open control passed: %+v", r.Audit)
	}
	r = measureOne(t, &planted{}, "hot-key", func(c *Config) {
		c.Strategies[0].Control, c.Strategies[0].Record = strategies.ControlRacy,
			[]quota.Clause{quota.Exactly().From("ADR-008", "none")}
	})
	if !hasReason(r, "racy-control-clean") || r.Guarantee[0].Verdict != results.Undecided ||
		r.Record[0].Verdict != results.Undecided {
		t.Errorf("a racy control that leaked nothing took nothing back: %+v, %+v, %+v", r.Audit, r.Guarantee, r.Record)
	}
}

// A run whose history is nearly full ends early, and counts as far as it came.
func TestRunEndsBeforeItsHistoryOverflows(t *testing.T) {
	r := measureOne(t, &planted{leak: 1}, "hot-key", func(c *Config) {
		c.HistoryLimit = 20_000
		c.Requests = 100_000
	})
	if !r.Audit.Valid || r.Partial || !hasReason(r, "ended-early") {
		t.Errorf("audit %+v", r.Audit)
	}
	if r.Issued < 5_000 || r.Issued > 20_000 || r.Leak.Units != r.Leak.Trials {
		t.Errorf("issued %d, leak %+v", r.Issued, r.Leak)
	}
}

// A strategy that is a hundred times as fast as in its warm-up uses up the trials
// that were prepared by the warm-up's rate.
func TestRunEndsWithItsTrials(t *testing.T) {
	v := &virtual{}
	p := &planted{}
	p.delay = func(context.Context) {
		if p.total == 0 {
			v.advance(time.Millisecond)
		} else {
			v.advance(10 * time.Microsecond)
		}
	}
	r := measureOne(t, p, "hot-key", func(c *Config) {
		c.base = v.timebase()
		c.Requests = 0
		c.Duration = 10 * time.Second
	})
	if !r.Audit.Valid || r.Partial || !hasReason(r, "ended-early") {
		t.Errorf("audit %+v", r.Audit)
	}
	// 1,000 requests/s in the warm-up, for 10 s, times 3 and half as much again, and 8
	// trials more: 45,800, or a little less by what reading the clock takes.
	if r.Issued < 40_000 || r.Issued > 45_800 || r.Issued%40 != 0 {
		t.Errorf("issued %d", r.Issued)
	}
}

func TestAuditWindowCrossedWithoutReset(t *testing.T) {
	v := &virtual{}
	p := &planted{delay: func(context.Context) { v.advance(60_000_000) }}
	r := measureOne(t, p, "hot-key", func(c *Config) {
		c.base = v.timebase()
		c.Policy.Window = quota.Window{Kind: quota.Fixed, Length: 60_000_000_000}
		c.Strategies[0].Reset = strategies.ResetsNever
	})
	if r.Audit.Valid || !hasReason(r, "window-crossed") {
		t.Errorf("audit %+v", r.Audit)
	}
}

func TestPanicEndsTheRunAndNotTheProcess(t *testing.T) {
	p := &planted{delay: func(context.Context) { panic("planted panic") }}
	r := measureOne(t, p, "hot-key", nil)
	if r.Audit.Valid || !hasReason(r, "strategy-panicked") ||
		!strings.Contains(r.Audit.Reasons[0].Detail, "planted panic") {
		t.Errorf("audit %+v", r.Audit)
	}
}

func TestInterruptedRunIsPartial(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &planted{}
	p.delay = func(context.Context) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.total == 3000 {
			cancel()
		}
	}
	sel := p.selection()
	w, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	policy := quota.Policy{Name: "p", Limit: 20, Unit: "units"}
	report, err := Measure(ctx, Config{
		Plan: harness.Plan{Strategies: []strategies.Selection{sel}, Policy: policy, Traffic: harness.Traffic{
			Workload: w,
			Requests: 1_000_000,
		}, Workers: 2},
		Rounds: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Interrupted || len(report.Runs) != 1 || !report.Runs[0].Partial {
		t.Fatalf("interrupted %v, %d runs", report.Interrupted, len(report.Runs))
	}
	r := report.Runs[0]
	if r.Issued == 0 || r.Issued >= 1_000_000 || !r.Audit.Valid {
		t.Errorf("issued %d, audit %+v", r.Issued, r.Audit)
	}
}
