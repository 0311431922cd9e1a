package harness

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// clause bounds a property by so many units.
func clause(p quota.Property, bound int64, formula string, tolerates ...quota.Fault) quota.Clause {
	return quota.Clause{Property: p, Formula: formula, Tolerates: tolerates, Bound: func(quota.Params) int64 {
		return bound
	}}
}

// TestVerdictsOfClauses plants a leak of 2 units.
func TestVerdictsOfClauses(t *testing.T) {
	f := planted(t, second, takes(0, 0, 12, oracle.Admitted), takes(1, 0, 1, oracle.Admitted))
	f.Selection.Guarantee = []quota.Clause{clause(quota.PropertyLeak, 1, "broken"), clause(quota.PropertyLeak, 2, "kept"),
		clause("other", 0, "never judged")}
	r, _ := judged(t, f)
	want := []results.Clause{
		{Property: "leak", Formula: "broken", Bound: 1, Certain: 2, Possible: 2, Verdict: results.Broken},
		{Property: "leak", Formula: "kept", Bound: 2, Certain: 2, Possible: 2, Verdict: results.Kept},
		{Property: "other", Formula: "never judged", Verdict: results.NotExercised},
	}
	if !reflect.DeepEqual(r.Guarantee, want) {
		t.Errorf("got  %+v\nwant %+v", r.Guarantee, want)
	}
	if r, _ := judged(t, planted(t, second)); r.Guarantee == nil || len(r.Guarantee) != 0 {
		t.Errorf("nothing is declared: %#v", r.Guarantee)
	}
}

// TestRecordPromisesMore plants a strategy that declares less than its design record
// promises: both are judged alike, and only its own clauses are its guarantee.
func TestRecordPromisesMore(t *testing.T) {
	f := planted(t, second, takes(0, 0, 12, oracle.Admitted))
	f.Selection.Guarantee = []quota.Clause{clause(quota.PropertyLeak, 2, "own")}
	f.Selection.Record = []quota.Clause{quota.Exactly().From("ADR-008", "none"),
		quota.Exactly(quota.FaultOutage).From("ADR-008", "even then")}
	f.Noticed = []Notice{{Fault: quota.FaultOutage}}
	r, _ := judged(t, f)
	want := []results.Clause{
		{Property: "leak", Formula: "L", Source: "ADR-008", Says: "none", Certain: 2, Possible: 2, Verdict: results.Undecided},
		{Property: "leak", Formula: "L", Source: "ADR-008", Says: "even then", Tolerates: []string{"outage"}, Certain: 2, Possible: 2,
			Verdict: results.Broken},
	}
	if !reflect.DeepEqual(r.Record, want) || len(r.Guarantee) != 1 || r.Guarantee[0].Verdict != results.Undecided {
		t.Errorf("record %+v, guarantee %+v", r.Record, r.Guarantee)
	}
	f.Noticed = nil
	r, _ = judged(t, f)
	if r.Guarantee[0].Verdict != results.Kept || r.Record[0].Verdict != results.Broken || len(r.NotPromised) != 0 {
		t.Errorf("record %+v, guarantee %+v, not promised under %v", r.Record, r.Guarantee, r.NotPromised)
	}
}

// TestParamsOfClauses: a clause is evaluated with what the run measured.
func TestParamsOfClauses(t *testing.T) {
	var got quota.Params
	overlap := oracle.Event{Call: 5, Reply: 100, Units: 3}
	f := planted(t, second, []oracle.Event{overlap, overlap, {Call: 50, Reply: 60, Units: 2}},
		takes(0, 500, 1, oracle.Rejected))
	f.Instances = 2
	f.SyncPeriod = 5 * time.Second
	f.Selection.Options = quota.Options{"a": "b"}
	f.Selection.Guarantee = []quota.Clause{{Property: quota.PropertyLeak, Bound: func(p quota.Params) int64 {
		got = p
		return 0
	}}}
	judged(t, f)
	want := quota.Params{
		Limit: 10, MaxCost: 3, Deciding: 3, InFlight: 3, Offered: 9, Instances: 2, SyncPeriod: 5 * time.Second, Unsynced: 8,
		Policy: f.Policy, Options: quota.Options{"a": "b"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestAllThatIsAskedForIsNoBound: the record of 15 units asked says that there is none,
// and not that 15 are allowed.
func TestAllThatIsAskedForIsNoBound(t *testing.T) {
	f := planted(t, second, takes(0, 0, 15, oracle.Admitted))
	f.Selection.Guarantee = []quota.Clause{{Property: quota.PropertyLeak, Formula: "any",
		Bound: func(p quota.Params) int64 {
			return p.Offered
		}}}
	r, _ := judged(t, f)
	if c := r.Guarantee[0]; c.Bound != quota.Unbounded || c.Certain != 5 {
		t.Errorf("%+v: want no bound, and 5 units beyond the limit", c)
	}
}

// TestFaultsOfTheNetwork: latency is none, and who loses replies to a client that repeats commands needs two to be
// borne.
func TestFaultsOfTheNetwork(t *testing.T) {
	const outage, reply, retry = quota.FaultOutage, quota.FaultLostReply, quota.FaultRetry
	all := []quota.Clause{
		clause(quota.PropertyLeak, 0, "none"), clause(quota.PropertyLeak, 0, "outage", outage),
		clause(quota.PropertyLeak, 0, "reply", reply),
		clause(quota.PropertyLeak, 0, "retry", reply, retry), clause(quota.PropertyLeak, 0, "all", outage, reply, retry),
	}
	for text, want := range map[string][2]string{ // without retries and with some
		"redis:latency=1s,bandwidth=1kB": {"none outage reply retry all", "none outage reply retry all"},
		"redis:loss=0.1":                 {"outage all", "outage all"},
		"redis/1:reply-loss=0.1@0.1-0.2": {"reply retry all", "retry all"},
		"redis:cut":                      {"all", "all"},
	} {
		for retries, want := range want {
			f := planted(t, second, takes(0, 0, 1, oracle.Admitted))
			f.Plan.Trouble = trouble.MustParse(text)
			f.Plan.Duration = time.Second
			f.Instances = 2
			f.Selection.Guarantee = all
			run := results.Run{Params: results.Params{Connections: results.Connections{Retries: retries}}}
			if _, err := Judge(t.Context(), &run, f); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range run.Guarantee {
				got = append(got, x.Formula)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s with %d retries: judged %q, want %q", text, retries, got, want)
			}
		}
	}
}

// TestRepeatsInAnOutage: the connections that it ends may have carried commands that took effect and are sent again.
func TestRepeatsInAnOutage(t *testing.T) {
	for retries, want := range map[int]int{0: 2, 3: 1} {
		f := planted(t, second, takes(0, 0, 1, oracle.Admitted))
		f.Plan.Trouble = trouble.MustParse("redis:away")
		f.Selection.Guarantee = []quota.Clause{
			clause(quota.PropertyLeak, 0, "outage", quota.FaultOutage),
			clause(quota.PropertyLeak, 0, "both", quota.FaultOutage, quota.FaultRetry),
		}
		run := results.Run{Params: results.Params{Connections: results.Connections{Retries: retries}}}
		if _, err := Judge(t.Context(), &run, f); err != nil || len(run.Guarantee) != want {
			t.Errorf("%d clauses are judged with %d retries (%v), want %d", len(run.Guarantee), retries, err, want)
		}
	}
}

// TestFaultsThatHappened: a clause that does not tolerate what happened promises
// nothing.
func TestFaultsThatHappened(t *testing.T) {
	const outage, clock, loss, failover = quota.FaultOutage, quota.FaultClock, quota.FaultEviction, quota.FaultFailover
	all := []quota.Clause{
		clause(quota.PropertyLeak, 0, "none"), clause(quota.PropertyLeak, 0, "outage", outage),
		clause(quota.PropertyLeak, 0, "clock", clock), clause(quota.PropertyLeak, 0, "both", clock, outage),
		clause(quota.PropertyLeak, 0, "loss", loss, outage), clause(quota.PropertyLeak, 0, "failover", failover, outage),
	}
	for _, c := range []struct {
		events []string
		skews  []time.Duration
		want   []string
	}{
		{nil, nil, []string{"none", "outage", "clock", "both", "loss", "failover"}},
		{[]string{"redis:away"}, nil, []string{"outage", "both", "loss", "failover"}},
		{[]string{"redis:away@0.1-0.2", "redis:empty@0.3-0.4"}, nil, []string{"loss"}},
		{[]string{"redis:failover"}, nil, []string{"failover"}},
		{[]string{"redis:scripts-lost"}, nil, []string{"none", "outage", "clock", "both", "loss", "failover"}},
		{[]string{"redis:flushed"}, nil, []string{"loss"}},
		{nil, []time.Duration{1}, []string{"clock", "both"}},
		{[]string{"redis:away"}, []time.Duration{1}, []string{"both"}},
		{nil, nil, nil}, // but another limit
	} {
		f := planted(t, second, takes(0, 0, 1, oracle.Admitted))
		if len(c.want) == 0 {
			f.LimitChanges = []oracle.LimitChange{{From: 1, To: 2, Limit: 5}}
		}
		f.Plan.Trouble = trouble.MustParse(c.events...)
		f.Skews = c.skews
		f.Instances = 2
		f.Selection.Guarantee = all
		r, _ := judged(t, f)
		var got []string
		for _, x := range r.Guarantee {
			got = append(got, x.Formula)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("outages %v, skews %v: judged %q, want %q", c.events, c.skews, got, c.want)
		}
	}
}

// TestClausesByStores plants a limit's units in each of two windows, of which the second instance's clock shows one:
// only a strategy that goes by the instances' clocks has leaked.
func TestClausesByStores(t *testing.T) {
	late := takes(0, 1100*ms, 10, oracle.Admitted)
	for i := range late {
		late[i].Instance = 1
	}
	f := planted(t, second, takes(0, 100*ms, 10, oracle.Admitted), late)
	f.Instances = 2
	f.Skews = []time.Duration{0, -time.Second}
	for _, c := range []string{"", "instance", "redis", "postgres"} {
		x := clause(quota.PropertyLeak, 5, c, quota.FaultClock)
		x.Clock = c
		f.Selection.Guarantee = append(f.Selection.Guarantee, x)
	}
	r, _ := judged(t, f)
	for _, c := range r.Guarantee {
		want := map[string]int64{"": 10, "instance": 10}[c.Formula]
		if c.Certain != want || (c.Verdict == results.Broken) != (want > 5) {
			t.Errorf("by %q: %+v, want %d units", c.Formula, c, want)
		}
	}
}

// TestClausesOfKinds: what is promised of rolling windows is judged on rolling
// ones if the run was, and otherwise not at all.
func TestClausesOfKinds(t *testing.T) {
	of := func(formula string, kinds ...quota.Kind) quota.Clause {
		c := clause(quota.PropertyLeak, 5, formula)
		c.Kinds = kinds
		return c
	}
	for _, boundary := range []bool{true, false} {
		f := planted(t, second, takes(0, 900*ms, 10, oracle.Admitted), takes(0, 1100*ms, 10, oracle.Admitted))
		f.Plan.Workload = &workloads.Meta{Boundary: boundary}
		f.Selection.Guarantee = []quota.Clause{of("fixed", quota.Fixed), of("rolling", quota.Rolling),
			of("month", quota.CalendarMonth), of("standing or rolling", quota.Standing, quota.Rolling)}
		r, _ := judged(t, f)
		want := []results.Clause{{Property: "leak", Formula: "fixed", Bound: 5, Verdict: results.NotExercised}}
		if boundary {
			for _, name := range []string{"rolling", "standing or rolling"} {
				want = append(want, results.Clause{Property: "leak", Formula: name, Bound: 5, Certain: 10, Possible: 10,
					Verdict: results.Broken})
			}
		}
		if !reflect.DeepEqual(r.Guarantee, want) {
			t.Errorf("boundary %t: got  %+v\nwant %+v", boundary, r.Guarantee, want)
		}
	}
}

// TestNoticedFaults: a clause that does not tolerate what happened to a store is left
// undecided, broken or not, and the finding discards the run.
func TestNoticedFaults(t *testing.T) {
	f := planted(t, second, takes(0, 0, 12, oracle.Admitted), takes(1, 0, 1, oracle.Admitted))
	f.Selection.Guarantee = []quota.Clause{
		clause(quota.PropertyLeak, 1, "broken, and tolerates it", quota.FaultOutage), clause(quota.PropertyLeak, 1, "broken"),
		clause(quota.PropertyLeak, 2, "kept"), clause(quota.PropertyLeak, 2, "kept, and tolerates it", quota.FaultOutage),
	}
	f.Noticed = []Notice{{Fault: quota.FaultOutage, Code: "store-failed", Detail: "redis did not answer"},
		{Fault: quota.FaultOutage}}
	r, _ := judged(t, f)
	var got []string
	for _, x := range r.Guarantee {
		got = append(got, x.Verdict)
	}
	want := []string{results.Broken, results.Undecided, results.Undecided, results.Kept}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if r.Audit.Valid || len(r.Audit.Reasons) != 1 || r.Audit.Reasons[0].Detail != "redis did not answer" {
		t.Errorf("audit %+v", r.Audit)
	}
}

// TestNotPromised: a fault that no bound on the leak tolerates is named. Without a bound
// there is nothing to name.
func TestNotPromised(t *testing.T) {
	clauses := []quota.Clause{
		{Property: quota.PropertyLeak, Tolerates: []quota.Fault{quota.FaultCrash}},
		{Property: quota.PropertyLeak, Kinds: []quota.Kind{quota.Rolling}, Tolerates: []quota.Fault{quota.FaultOutage}},
		{Property: quota.PropertyFalseReject, Tolerates: []quota.Fault{quota.FaultOutage}},
	}
	happened := []quota.Fault{quota.FaultCrash, quota.FaultOutage, quota.FaultOutage}
	if got := notPromised(clauses, quota.Fixed, happened); !slices.Equal(got, []string{"outage"}) {
		t.Errorf("a fixed window: %q", got)
	}
	if got := notPromised(clauses, quota.Rolling, happened); got != nil {
		t.Errorf("a rolling window: %q", got)
	}
	if got := notPromised(clauses[2:], quota.Fixed, happened); got != nil {
		t.Errorf("no bound on the leak: %q", got)
	}
}

// TestLeftToPeers: the run of one of several processes has its clauses undecided, and keeps what is known of it for the
// verdict on all. What happened to its stores is not believed either.
func TestLeftToPeers(t *testing.T) {
	f := planted(t, second, takes(0, 0, 12, oracle.Admitted))
	others := &placed{number: 1, of: 3}
	f.Plan.Peers = others
	f.Selection.Guarantee = []quota.Clause{quota.Exactly(quota.FaultCrash), quota.MayReject(quota.FaultCrash),
		clause(quota.PropertyLeak, 2, "calm")}
	f.Selection.Record = []quota.Clause{quota.Exactly(quota.FaultCrash).From("ADR-1", "none")}
	f.Plan.Trouble = trouble.MustParse("callers:killed=0.1")
	f.SyncPeriod = time.Second
	f.Readings = []Readings{{At: AtRest,
		List: []Reading{reading(0, "redis", 13), {Subject: 7, Call: 1, Reply: 2, Tier: "postgres"}}}}
	r, _ := judged(t, f)
	if g := r.Guarantee; len(g) != 2 || g[0].Formula != "L" || g[0].Certain != 0 || g[0].Verdict != results.Undecided ||
		g[1].Verdict != results.NoPromise ||
		r.Record[0].Verdict != results.Undecided || r.Record[0].Possible != 0 {
		t.Errorf("%+v, %+v", r.Guarantee, r.Record)
	}
	if r.Drift != nil || others.judged == nil || others.judged.SyncPeriod != time.Second ||
		len(others.judged.Readings) != 1 || !r.Audit.Valid {
		t.Errorf("drift %+v, known %+v, %+v", r.Drift, others.judged, r.Audit)
	}
	f.Noticed = []Notice{{Code: "store-restarted", Detail: "at 1s"}}
	r, _ = judged(t, f)
	if r.Audit.Valid || !r.Audit.Has("store-restarted") {
		t.Errorf("%+v", r.Audit)
	}
}
