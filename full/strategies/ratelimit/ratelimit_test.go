package ratelimit_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotabench/quotabench/full/stores/ratelimit"
	_ "github.com/quotabench/quotabench/full/strategies/ratelimit"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// planted is a service that admits so many units of each descriptor.
type planted struct {
	rls.UnimplementedRateLimitServiceServer
	admits int64
	// fails has every so-many-th call end in an error; 0 for none.
	fails int64
	// takes is how long each call takes.
	takes time.Duration
	calls atomic.Int64

	mu   sync.Mutex
	used map[string]int64
	last *rls.RateLimitRequest
}

func (p *planted) ShouldRateLimit(ctx context.Context, r *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	if n := p.calls.Add(1); p.fails > 0 && n%p.fails == 0 {
		return nil, status.Error(codes.Internal, "planted")
	}
	if p.takes > 0 {
		if err := (clock.Wall{}).Sleep(ctx, p.takes); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = r
	key := fmt.Sprint(r.Domain, r.Descriptors)
	code := rls.RateLimitResponse_OVER_LIMIT
	if units := int64(r.HitsAddend); p.used[key]+units <= p.admits {
		p.used[key] += units
		code = rls.RateLimitResponse_OK
	}
	return &rls.RateLimitResponse{OverallCode: code, Statuses: []*rls.RateLimitResponse_DescriptorStatus{{
		Code: code, CurrentLimit: &rls.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(p.admits),
			Unit: rls.RateLimitResponse_RateLimit_HOUR},
		LimitRemaining: uint32(p.admits - p.used[key]), DurationUntilReset: durationpb.New(7 * time.Second),
	}}}, nil
}

// serve starts a service, and opens it by its URL.
func serve(t *testing.T, p rls.RateLimitServiceServer) *ratelimit.Store {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(s, p)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	st, err := ratelimit.Open(t.Context(), "grpc://"+l.Addr().String(), stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// open opens one instance of a strategy.
func open(t *testing.T, strategy string, s *ratelimit.Store) strategies.Strategy {
	t.Helper()
	list := testkit.Strategy(t, strategy)
	conn, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	st, err := list.Open(t.Context(),
		strategies.Env{Clock: clock.Wall{}, Prefix: "run:", Options: list.Options,
			Clients: map[string]any{"ratelimit": conn.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func take(t *testing.T, s strategies.Strategy, units int64) (quota.Decision, error) {
	t.Helper()
	p := testkit.Policy(t, "5 calls per rolling 1h")
	return s.Take(t.Context(), quota.Request{Subject: "a", Policy: &p, Units: units})
}

// run measures one strategy, which each subject asks for twice the limit.
func run(t *testing.T, strategy, policy string, s stores.Store, change func(*harness.Plan)) *results.Run {
	t.Helper()
	list, err := strategies.Parse(strategy)
	if err != nil {
		t.Fatal(err)
	}
	p := testkit.Policy(t, policy)
	w, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	set := stores.NewSet()
	if err := set.Add("ratelimit", s); err != nil {
		t.Fatal(err)
	}
	plan := harness.Plan{Strategies: list, Traffic: harness.Traffic{Workload: w, Requests: 400}, Policy: p, Workers: 4,
		Instances: 2, Seed: 1,
		Surroundings: harness.Surroundings{Stores: set}}
	if change != nil {
		change(&plan)
	}
	report, err := measure.Measure(t.Context(), measure.Config{Plan: plan, Rounds: 1, NoReference: true})
	if err != nil {
		t.Fatal(err)
	}
	r := &report.Runs[0]
	if !r.Outside {
		t.Error("the run is not said to be from outside")
	}
	return r
}

func verdict(t *testing.T, r *results.Run, property string) string {
	t.Helper()
	for _, c := range r.Guarantee {
		if c.Property == property {
			return c.Verdict
		}
	}
	t.Fatalf("no clause on %s in %+v", property, r.Guarantee)
	return ""
}

// TestRequestAndAnswer: what is sent, and what the answer means.
func TestRequestAndAnswer(t *testing.T) {
	p := &planted{admits: 5, used: map[string]int64{}}
	s := open(t, "envoy-ratelimit:domain=edge,descriptors=tenant=x+user=<{subject}>|all=y", serve(t, p))
	for _, c := range []struct {
		units int64
		want  quota.Decision
	}{
		{3, quota.Decision{Admitted: true, Remaining: 2}},
		{3, quota.Decision{Remaining: 2, RetryAfter: 7 * time.Second}},
		{2, quota.Decision{Admitted: true, Remaining: 0}},
	} {
		c.want.Tier = "service"
		if d, err := take(t, s, c.units); err != nil || d != c.want {
			t.Errorf("%d units: %+v (%v), want %+v", c.units, d, err, c.want)
		}
	}
	var sent []string
	for _, d := range p.last.Descriptors {
		for _, e := range d.Entries {
			sent = append(sent, e.Key+"="+e.Value)
		}
		sent = append(sent, "|")
	}
	if want := []string{"tenant=x", "user=<run:a>", "|", "all=y", "|"}; p.last.Domain != "edge" ||
		p.last.HitsAddend != 2 || !slices.Equal(sent, want) {
		t.Errorf("sent %s, %q, %d units", p.last.Domain, sent, p.last.HitsAddend)
	}
	if _, err := take(t, s, 1<<32); err == nil {
		t.Error("units that hits_addend cannot hold are sent")
	}
}

// odd answers without a limit, with a code of its own.
type odd struct {
	rls.UnimplementedRateLimitServiceServer
	code rls.RateLimitResponse_Code
}

func (o odd) ShouldRateLimit(context.Context, *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	return &rls.RateLimitResponse{OverallCode: o.code}, nil
}

// TestAnswersWithoutALimit are admitted, as Envoy does, and counted: a configuration that
// does not match says nothing else.
func TestAnswersWithoutALimit(t *testing.T) {
	s := open(t, "envoy-ratelimit:domain=edge", serve(t, odd{code: rls.RateLimitResponse_OK}))
	d, err := take(t, s, 1)
	if want := (quota.Decision{Admitted: true, Remaining: -1, Tier: "service"}); err != nil || d != want {
		t.Errorf("%+v (%v), want %+v", d, err, want)
	}
	if m := s.(strategies.Meter).Measures(); len(m) != 1 || m[0].Value != 1 {
		t.Errorf("%+v, want one answer without a limit", m)
	}
	s = open(t, "envoy-ratelimit:domain=edge", serve(t, odd{code: rls.RateLimitResponse_UNKNOWN}))
	if _, err := take(t, s, 1); err == nil || !strings.Contains(err.Error(), "neither admitted nor rejected") {
		t.Errorf("the code UNKNOWN: %v", err)
	}
}

// TestPlantedLeak: a service that admits 7 too many leaks 7 per subject, and one that
// admits 2 too few rejects wrongly. A promise decides what is said of it.
func TestPlantedLeak(t *testing.T) {
	p := &planted{used: map[string]int64{}}
	s := serve(t, p)
	for _, c := range []struct {
		options       string
		admits        int64
		leak, rejects int64 // of each subject
		leakClause    string
		rejectClause  string
	}{
		{"", 20, 0, 0, results.Kept, results.Kept},
		{"", 27, 7, 0, results.Kept, results.Kept}, // windows on the clock promise 40
		{",may-leak=7", 27, 7, 0, results.Kept, results.Kept},
		{",may-leak=6", 27, 7, 0, results.Broken, results.Kept},
		{"", 18, 0, 22, results.Kept, results.Broken},
		{",may-reject=any", 18, 0, 22, results.Kept, results.NoPromise},
	} {
		p.mu.Lock()
		p.admits = c.admits
		p.mu.Unlock()
		r := run(t, "envoy-ratelimit:domain=edge"+c.options, "20 calls per rolling 1h", s, nil)
		if !r.Audit.Valid || r.Errors > 0 {
			t.Fatalf("%d errors (%s), audit %+v", r.Errors, r.FirstError, r.Audit)
		}
		trials := r.Leak.Trials
		if trials == 0 || r.Leak.Units != c.leak*trials || r.Leak.WorstUnits != c.leak ||
			r.FalseRejects.Units != c.rejects*trials {
			t.Errorf("%q, which admits %d: a leak of %d in %d trials, %d at worst, %d rejected wrongly", c.options, c.admits,
				r.Leak.Units, trials, r.Leak.WorstUnits, r.FalseRejects.Units)
		}
		if got := verdict(t, r, string(quota.PropertyLeak)); got != c.leakClause {
			t.Errorf("%q, which admits %d: the leak clause is %s", c.options, c.admits, got)
		}
		if got := verdict(t, r, string(quota.PropertyFalseReject)); got != c.rejectClause {
			t.Errorf("%q, which admits %d: the false-reject clause is %s", c.options, c.admits, got)
		}
		if r.Cost.Commands != 1 || r.Cost.RoundTrips > 1 {
			t.Errorf("%+v, want a call for each decision", r.Cost)
		}
	}
}

// TestPlantedErrors: a service that fails every 50th call has errors of 2 %, and one that
// fails every 7th still has a run: the cost probe goes on when it meets an error.
func TestPlantedErrors(t *testing.T) {
	for every, want := range map[int64]int64{50: 8, 7: 57} {
		r := run(t, "envoy-ratelimit:domain=edge", "5 calls per rolling 1h",
			serve(t, &planted{admits: 5, fails: every, used: map[string]int64{}}), nil)
		if r.Issued != 400 || r.Errors < want || r.Errors > want+1 || !strings.Contains(r.FirstError, "planted") {
			t.Errorf("every %d.: %d errors of %d (%s), want %d, or one more with those of the warm-up: %+v", every, r.Errors,
				r.Issued, r.FirstError, want, r.Audit)
		}
		if p := r.Cost.Probe; p == nil || p.Admitted == nil || p.Rejected == nil {
			t.Errorf("every %d.: the probe is %+v", every, p)
		}
	}
}

// TestPlantedDelay: a service that takes 5 ms has a median of 5 ms at least.
func TestPlantedDelay(t *testing.T) {
	r := run(t, "envoy-ratelimit:domain=edge", "5 calls per rolling 1h",
		serve(t, &planted{admits: 5, takes: 5 * time.Millisecond, used: map[string]int64{}}), nil)
	if r.Service.P50 < int64(5*time.Millisecond) {
		t.Errorf("%+v", r.Service)
	}
}

// TestRefused: what no measurement could tell anything about is refused beforehand.
func TestRefused(t *testing.T) {
	for list, want := range map[string]string{
		"envoy-ratelimit:descriptors=user=a":         "every subject would be the same",
		"envoy-ratelimit:descriptors={subject}":      "are no entries of a descriptor",
		"envoy-ratelimit:may-leak=-1":                "give windows, a number of requests from 0, or any",
		"envoy-ratelimit:servers=0":                  "servers",
		"envoy-ratelimit:descriptors=a={subject}|=b": "are no entries of a descriptor",
	} {
		if _, err := strategies.Parse(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", list, err, want)
		}
	}
	list := testkit.Strategy(t, "envoy-ratelimit")
	for text, ok := range map[string]bool{
		"5 x per fixed 1s": true, "5 x per rolling 1m": true, "5 x per calendar hour": true, "5 x per calendar day": true,
		"5 x per fixed 24h": true, "5 x per rolling 1h costing 2": true,
		"5 x per fixed 10s": false, "5 x refilling 1 per 1s": false, "5 x per calendar month": false,
		"1000000000 x per fixed 1s": false,
	} {
		p := testkit.Policy(t, text)
		if err := list.ServesPolicy(&p); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	set := stores.NewSet()
	if err := set.Add("ratelimit", serve(t, odd{})); err != nil {
		t.Fatal(err)
	}
	c := measure.Config{Plan: harness.Plan{Policy: quota.Policy{Limit: 5,
		Window: quota.Window{Kind: quota.Rolling, Length: time.Hour}},
		Traffic: harness.Traffic{Workload: &workloads.Meta{}}, Surroundings: harness.Surroundings{Stores: set}}}
	if err := c.CannotRun(list); err == nil || !strings.Contains(err.Error(), "envoy-ratelimit:domain=NAME") {
		t.Errorf("without a domain: %v", err)
	}
}

// TestRealServer: what fixed windows promise holds on the real service, with one server
// and with two that share a Redis, with a local cache and without. Around the end of a
// window it admits more than a rolling window of the same length has room for.
func TestRealServer(t *testing.T) {
	s := storetest.Shared(t, "ratelimit", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(ratelimit.Open)(ctx, "process", stores.Options{})
	})
	for _, strategy := range []string{"envoy-ratelimit", "envoy-ratelimit:servers=2",
		"envoy-ratelimit:servers=2,cache=1000000"} {
		r := run(t, strategy, "5 calls per rolling 24h", s, nil)
		if !r.Audit.Valid || r.Errors > 0 || r.Leak.Trials == 0 {
			t.Fatalf("%s: %d errors (%s), %d trials, audit %+v", strategy, r.Errors, r.FirstError, r.Leak.Trials, r.Audit)
		}
		if verdict(t, r, string(quota.PropertyLeak)) != results.Kept || verdict(t, r, string(quota.PropertyFalseReject)) != results.Kept {
			t.Errorf("%s: %+v", strategy, r.Guarantee)
		}
	}
	r := run(t, "envoy-ratelimit", "5 calls per rolling 24h costing 3", s, nil)
	if r.Errors > 0 || r.FalseRejects.Units != 0 && verdict(t, r, string(quota.PropertyFalseReject)) != results.Kept {
		t.Errorf("requests of several units: %d errors (%s), %+v", r.Errors, r.FirstError, r.Guarantee)
	}
	steady, err := workloads.Lookup("steady")
	if err != nil {
		t.Fatal(err)
	}
	r = run(t, "envoy-ratelimit", "5 calls per rolling 1s", s, func(p *harness.Plan) {
		p.Workload, p.Load, p.Requests = steady, harness.OpenAt(200), 700
		p.Stream.Options = quota.Options{"subjects": "1", "over-quota": "0", "popularity": "uniform"}
	})
	if r.Leak.Units == 0 || verdict(t, r, string(quota.PropertyLeak)) != results.Kept ||
		verdict(t, r, string(quota.PropertyFalseReject)) != results.Kept {
		t.Errorf("over several windows: a leak of %d, clauses %+v", r.Leak.Units, r.Guarantee)
	}
	if r := run(t, "grpc-bare", "5 calls per rolling 24h", s, nil); r.Rejected > 0 || r.Errors > 0 {
		t.Errorf("without a limit: %d rejected, %d errors (%s)", r.Rejected, r.Errors, r.FirstError)
	}
}
