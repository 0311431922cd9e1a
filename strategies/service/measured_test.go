package service_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/haproxy"
	"github.com/quotabench/quotabench/internal/stores/nginx"
	"github.com/quotabench/quotabench/internal/stores/service"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/service"
	"github.com/quotabench/quotabench/workloads"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// run measures one strategy on one store, with a limit that is reached.
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
	if err := set.Add(s.Driver(), s); err != nil {
		t.Fatal(err)
	}
	plan := harness.Plan{Strategies: list, Traffic: harness.Traffic{Workload: w, Requests: 200}, Policy: p, Workers: 4,
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
	if !r.Audit.Valid || r.Errors > 0 || !r.Outside {
		t.Fatalf("%s: %d errors (%s), outside %v, audit %+v", strategy, r.Errors, r.FirstError, r.Outside, r.Audit)
	}
	return r
}

// verdict is that of the clause on a property.
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

// TestPlantedService: a service that admits so many requests of each user is judged by
// what it was said to promise.
func TestPlantedService(t *testing.T) {
	var mu sync.Mutex
	var admits int
	used := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if user := r.URL.Query().Get("user"); used[user] < admits {
			used[user]++
		} else {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer srv.Close()
	s, err := service.Open(t.Context(), srv.URL+"/check?user={subject}", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		strategy            string
		admits              int
		leak, worst, wrong  int64 // of 20 trials with a limit of 5
		leakClause, rejects string
	}{
		{"http", 5, 0, 0, 0, results.Kept, results.Kept},
		{"http:may-leak=2", 7, 40, 2, 0, results.Kept, results.Kept},
		{"http:may-leak=1", 7, 40, 2, 0, results.Broken, results.Kept},
		{"http", 3, 0, 0, 140, results.Kept, results.Broken},
	} {
		admits = c.admits
		r := run(t, c.strategy, "5 calls per rolling 1h", s, nil)
		if r.Leak.Units != c.leak || r.Leak.WorstUnits != c.worst || r.FalseRejects.Units != c.wrong {
			t.Errorf("%s, which admits %d: a leak of %d, %d at worst, and %d rejected wrongly", c.strategy, c.admits,
				r.Leak.Units, r.Leak.WorstUnits, r.FalseRejects.Units)
		}
		if got := verdict(t, r, string(quota.PropertyLeak)); got != c.leakClause {
			t.Errorf("%s, which admits %d: the leak clause is %s", c.strategy, c.admits, got)
		}
		if got := verdict(t, r, string(quota.PropertyFalseReject)); got != c.rejects {
			t.Errorf("%s, which admits %d: the false-reject clause is %s", c.strategy, c.admits, got)
		}
		if r.Cost.Commands != 1 || r.Cost.RoundTrips != 1 {
			t.Errorf("%s: %+v, want a request for each decision", c.strategy, r.Cost)
		}
	}
}

// TestNginx: what limit_req promises holds with several workers, and a location in which
// it is never asked is caught.
func TestNginx(t *testing.T) {
	s := storetest.Shared(t, "nginx", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(nginx.Open)(ctx, "process", stores.Options{})
	})
	for _, c := range []struct {
		strategy, policy string
		leak, worst      int64
		verdict          string
	}{
		{"nginx-limit-req", "5 calls refilling 3 per 1m", 0, 0, results.Kept},
		{"nginx-limit-req:burst=5", "5 calls refilling 3 per 1m", 20, 1, results.Kept},
		{"nginx-limit-req:answer=return", "5 calls refilling 3 per 1m", 100, 5, results.Broken},
		{"nginx-limit-req:burst=2,workers=1", "180 calls per fixed 1h", 0, 0, results.Kept},
	} {
		r := run(t, c.strategy, c.policy, s, nil)
		if c.verdict != results.Broken && r.Leak.Trials == 0 && c.worst > 0 {
			t.Errorf("%s: no limit was reached", c.strategy)
		}
		if r.Leak.Units != c.leak || r.Leak.WorstUnits != c.worst || verdict(t, r, string(quota.PropertyLeak)) != c.verdict {
			t.Errorf("%s, %s: a leak of %d, %d at worst, and the clause is %s", c.strategy, c.policy, r.Leak.Units,
				r.Leak.WorstUnits, verdict(t, r, string(quota.PropertyLeak)))
		}
	}
}

// TestHAProxy: it admits the limit at once, and since rejected requests count a client
// that does not pause stays locked out, which the plain promise calls false rejects.
func TestHAProxy(t *testing.T) {
	s := storetest.Shared(t, "haproxy", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(haproxy.Open)(ctx, "process", stores.Options{})
	})
	r := run(t, "haproxy-req-rate", "5 calls per rolling 1h", s, nil)
	// Of two requests at once, both may find the count of the second: up to three of the four callers' are denied then.
	if trials := int64(20); r.Leak.Units != 0 || r.Admitted > 5*trials || r.Admitted < 2*trials ||
		verdict(t, r, string(quota.PropertyLeak)) != results.Kept {
		t.Errorf("a leak of %d, %d false rejects, %d admitted", r.Leak.Units, r.FalseRejects.Count, r.Admitted)
	}
	steady, err := workloads.Lookup("steady")
	if err != nil {
		t.Fatal(err)
	}
	r = run(t, "haproxy-req-rate", "5 calls per rolling 50ms", s, func(p *harness.Plan) {
		p.Workload, p.Load, p.Requests = steady, harness.OpenAt(1000), 500
		p.Stream.Options = quota.Options{"subjects": "1", "over-quota": "0", "popularity": "uniform"}
	})
	if r.FalseRejects.Count == 0 || verdict(t, r, string(quota.PropertyFalseReject)) != results.NoPromise ||
		verdict(t, r, string(quota.PropertyLeak)) != results.Kept {
		t.Errorf("%d false rejects of %d rejected, clauses %+v", r.FalseRejects.Count, r.Rejected, r.Guarantee)
	}
}
