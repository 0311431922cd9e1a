package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// failing is right, and fails if it is told to: of its requests, counted from 1.
type failing struct {
	errorNo func(n int64) error
	n       int64
	clock   quota.Clock
	used    map[counted]int64
}

type counted struct {
	subject quota.Subject
	window  int64
}

func (f *failing) Take(_ context.Context, r quota.Request) (quota.Decision, error) {
	f.n++
	if err := f.errorNo(f.n); err != nil {
		return quota.Decision{}, fmt.Errorf("planted: %w", err)
	}
	at := counted{r.Subject, r.Policy.Window.At(f.clock.Now()).Index}
	d := quota.Decision{Tier: quota.TierProcess, Admitted: f.used[at]+r.Units <= r.Policy.Limit}
	if d.Admitted {
		f.used[at] += r.Units
	}
	return d, nil
}

func (f *failing) Close(context.Context) error { return nil }

// TestPlantedKindsOfErrors: contention and time-outs are results, and are given back as
// they were planted. As many errors of a store are none.
func TestPlantedKindsOfErrors(t *testing.T) {
	hotKey, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	simulated := func(two, one error) results.Run {
		meta := &strategies.Meta{
			Name: "failing", Doc: "has known errors", Form: strategies.Baseline, Counts: quota.CountsAdmitted,
			Kinds: []quota.Kind{quota.CalendarHour},
			Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
				return &failing{clock: env.Clock, used: map[counted]int64{}, errorNo: func(n int64) error {
					switch n % 100 {
					case 7, 57:
						return two
					case 31:
						return one
					}
					return nil
				}}, nil
			},
		}
		report, err := sim.Run(t.Context(), sim.Config{Plan: harness.Plan{
			Strategies: []strategies.Selection{{Meta: meta}}, Traffic: harness.Traffic{Workload: hotKey, Requests: 4000},
			Workers: 4, Seed: 1,
			Policy: quota.Policy{Name: "mine", Limit: 20, Unit: "requests", Window: quota.Window{Kind: quota.CalendarHour}},
		}})
		var invalid *results.InvalidError
		if err != nil && !errors.As(err, &invalid) {
			t.Fatal(err)
		}
		return report.Runs[0]
	}
	r := simulated(strategies.ErrContention, context.DeadlineExceeded)
	valid(t, &r)
	if want := (results.ErrorKinds{Contention: 80, TimeOuts: 40}); r.ErrorKinds == nil || *r.ErrorKinds != want ||
		r.Errors != 120 {
		t.Errorf("%d errors, %+v, want %+v", r.Errors, r.ErrorKinds, want)
	}
	r = simulated(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, strategies.ErrContention)
	if want := (results.ErrorKinds{Store: 80, Contention: 40}); r.ErrorKinds == nil || *r.ErrorKinds != want ||
		r.Audit.Valid {
		t.Errorf("%+v, want %+v; audit %+v", r.ErrorKinds, want, r.Audit)
	}
	if !slices.ContainsFunc(r.Audit.Reasons, func(x results.Reason) bool {
		return x.Code == "errors" && x.Detail == "2.00 % of requests ended in an error, the first: planted: dial tcp: "+
			"connection refused"
	}) {
		t.Errorf("audit %+v", r.Audit)
	}
}

// endless sends a script that does not end.
type endless struct{ redis redis.UniversalClient }

func (e endless) Take(ctx context.Context, _ quota.Request) (quota.Decision, error) {
	return quota.Decision{Remaining: -1}, e.redis.Eval(ctx, "while true do end", nil).Err()
}

func (endless) Close(context.Context) error { return nil }

// TestScriptsThatDoNotEnd: the call that sends one is given up as any that does not return.
func TestScriptsThatDoNotEnd(t *testing.T) {
	if !testenv.Apart(t) { // the script goes on
		return
	}
	cfg := config(t, "exact", "user-links", "hot-key")
	cfg.Strategies = []strategies.Selection{{Meta: &strategies.Meta{
		Name: "endless", Doc: "does not answer", Form: strategies.Baseline, Counts: quota.CountsNothing, Kinds: quota.Kinds(),
		Needs: []strategies.Need{strategies.NeedRedis},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return endless{strategies.Redis(env)}, nil
		},
	}}}
	cfg.DecisionTimeout = 100 * time.Millisecond
	report, err := sim.Run(t.Context(), cfg)
	if report == nil || !report.Runs[0].Audit.Has(codes.Hung) {
		t.Errorf("%+v, %v", report, err)
	}
}
