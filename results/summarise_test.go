package results

import (
	"math"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
)

// round is a valid run with the given leak and throughput.
func round(n int, leak int64, throughput float64) Run {
	return Run{
		Identity: Identity{Strategy: "s"}, Policy: "p", Workload: "w",
		Params: Params{Label: "s", Quota: Quota{Limit: 10}, Load: Load{Loop: codes.ClosedLoop}}, Repetition: n,
		Requests: Requests{Issued: 200, Admitted: 100 + leak, Rejected: 100 - leak},
		Rates:    Rates{ThroughputPerS: throughput, ReferencePerS: 1_000},
		Correctness: Correctness{Leak: Leak{Units: leak, Possible: leak + 1, Requests: leak, Trials: 10,
			OverQuotaUnits: 100, WorstUnits: leak,
			LeakedTrials: min(leak, 10)}},
		Audit: Audit{Valid: true},
	}
}

func one(t *testing.T, runs ...Run) Summary {
	t.Helper()
	s := Summarise(runs)
	if len(s) != 1 {
		t.Fatalf("%d summaries, want 1", len(s))
	}
	return s[0]
}

func TestSummariseLeak(t *testing.T) {
	s := one(t, round(1, 0, 500), round(2, 7, 600), round(3, 3, 700))
	l := s.Leak
	if l.Units != 10 || l.Possible != 13 || l.WorstUnits != 7 || l.Trials != 30 || l.LeakedTrials != 10 {
		t.Errorf("leak over three rounds: %+v", l)
	}
	if want := 100.0 * 10 / 300; math.Abs(l.PctOfLimit-want) > 1e-9 {
		t.Errorf("leak is %g %% of the limit, want %g", l.PctOfLimit, want)
	}
	if want := 100.0 * 10 / 300; math.Abs(l.PctOfOverQuota-want) > 1e-9 {
		t.Errorf("leak is %g %% of what was over, want %g", l.PctOfOverQuota, want)
	}
	if s.Throughput.Value != 600 || s.Ratio.Value != 0.6 {
		t.Errorf("throughput %v, ratio %v", s.Throughput, s.Ratio)
	}
}

func TestSummariseFalseRejects(t *testing.T) {
	a := round(1, 5, 1)
	b := round(2, 0, 1)
	a.FalseRejects = FalseRejects{Count: 10, Possible: 12, Units: 20}
	s := one(t, a, b)
	// 10 / (10 + 105 + 100 - 5)
	if want := 100 * 10.0 / 210; math.Abs(s.FalseRejects.PctOfValid-want) > 1e-9 || s.FalseRejects.Possible != 12 ||
		s.FalseRejects.Units != 20 {
		t.Errorf("false rejects %+v, want %g %%", s.FalseRejects, want)
	}
}

func TestSummariseExplained(t *testing.T) {
	a := round(1, 0, 1)
	b := round(2, 0, 1)
	a.FalseRejects, b.FalseRejects = FalseRejects{Possible: 12, Explained: true},
		FalseRejects{Possible: 5, Explained: true}
	if f := one(t, a, b).FalseRejects; f.Possible != 0 || !f.Explained {
		t.Errorf("both rounds explained: %+v", f)
	}
	b.FalseRejects.Explained = false
	if f := one(t, a, b).FalseRejects; f.Possible != 5 || f.Explained {
		t.Errorf("one round explained: %+v", f)
	}
}

func TestSummariseExtras(t *testing.T) {
	a := round(1, 0, 1)
	b := round(2, 0, 1)
	c := round(3, 0, 1)
	a.Rolling, b.Rolling = &Rolling{WorstUnits: 20, Multiple: 2, Units: 1, Possible: 4},
		&Rolling{WorstUnits: 13, Multiple: 1.3, Units: 2, Possible: 2}
	a.Settlement, c.Settlement = &Settlement{Commits: 3, Refunds: 1, Errors: 1}, &Settlement{Commits: 4, Abandoned: 2}
	a.Lateness = &Lateness{PacerP50: 10, BacklogHalf: 1, BacklogEnd: 2}
	b.Lateness = &Lateness{PacerP50: 30, BacklogHalf: 7, BacklogEnd: 50, Saturated: true}
	c.Lateness = &Lateness{PacerP50: 20, BacklogHalf: 90, BacklogEnd: 4}
	a.Cost, b.Cost, c.Cost = Cost{ClientCPU: 5, RunQueue: 9},
		Cost{ClientCPU: 7, Probe: &Probe{First: ProbeCost{Commands: 3}}}, Cost{ClientCPU: 6}
	b.Audit.Discard("cpu-steal", codes.DiscardsRound, "x") // takes timings back, and not what was counted
	s := one(t, a, b, c)
	if r := s.Rolling; r == nil || *r != (Rolling{WorstUnits: 20, Multiple: 2, Units: 3, Possible: 6}) {
		t.Errorf("rolling %+v", r)
	}
	if x := s.Settled; x == nil || x.Commits != 7 || x.Refunds != 1 || x.Abandoned != 2 || x.Errors != 1 {
		t.Errorf("settled %+v", x)
	}
	if l := s.Lateness; l == nil || l.PacerP50 != 15 || l.BacklogHalf != 90 || l.BacklogEnd != 4 || s.Saturated != 0 {
		t.Errorf("lateness %+v, saturated in %d", l, s.Saturated)
	}
	if s.Cost.ClientCPU != 5.5 || s.Cost.RunQueue != 4.5 || s.Cost.Probe == nil || s.Cost.Probe.First.Commands != 3 {
		t.Errorf("cost %+v", s.Cost)
	}
	if s := one(t, round(1, 0, 1)); s.Rolling != nil || s.Settled != nil || s.Lateness != nil || s.Cost.Probe != nil {
		t.Errorf("nothing recorded, and yet %+v", s)
	}
}

func TestSettingsApart(t *testing.T) {
	for name, change := range map[string]func(*Params){
		"popularity": func(p *Params) { p.Workload = map[string]string{"popularity": "uniform"} },
		"fill":       func(p *Params) { p.Workload = map[string]string{"fill": "0.5"} },
		"outages":    func(p *Params) { p.Trouble = trouble.MustParse("redis:away@0.3-0.6") },
		"clocks":     func(p *Params) { p.Trouble = trouble.MustParse("instance/0:clock=2s") },
	} {
		a := round(1, 0, 1)
		b := round(1, 0, 1)
		change(&b.Params)
		if a.Key() == b.Key() {
			t.Errorf("rounds that differ in %s are taken for rounds of one measurement", name)
		}
	}
}

// TestSummariseLatePacer: late releases in most rounds mark the response times alone.
func TestSummariseLatePacer(t *testing.T) {
	for late, want := range map[int]bool{0: false, 4: false, 5: true, 8: true} {
		var runs []Run
		for i := range 8 {
			r := round(i+1, 0, 500)
			r.Service = Latency{Distribution: Distribution{Samples: 1000, P50: 100}}
			l := r.Service
			r.Response = &l
			if i < late {
				r.Audit.Discard("pacer-late", codes.DisturbsResponse, "x")
			}
			runs = append(runs, r)
		}
		s := one(t, runs...)
		if s.Timed != 8 || s.Service.P50.Rounds != 8 || s.Service.P50.Disturbed || s.Response.P50.Rounds != 8 ||
			s.Response.P50.Disturbed != want {
			t.Errorf("%d late rounds: %d rounds, service %+v, response %+v", late, s.Timed, s.Service.P50, s.Response.P50)
		}
	}
}

func TestSummariseDiscardedRounds(t *testing.T) {
	good := round(1, 0, 500)
	wrong := round(2, 9, 510)
	slow := round(3, 0, 90)
	wrong.Audit.Discard("history-overflow", codes.DiscardsCorrectness, "x")
	slow.Audit.Discard("cpu-steal", codes.Disturbs, "y")
	cut := round(4, 0, 70)
	cut.Partial = true
	s := one(t, good, wrong, slow, cut)
	if s.Rounds != 4 || s.Invalid != 1 || s.Disturbed != 1 || s.Partial != 1 || s.Timed != 3 {
		t.Errorf("rounds %d, invalid %d, disturbed %d, partial %d, timed %d", s.Rounds, s.Invalid, s.Disturbed, s.Partial,
			s.Timed)
	}
	if s.Leak.Units != 0 || s.Leak.Trials != 30 {
		t.Errorf("an invalid round's leak counted: %+v", s.Leak)
	}
	if s.Throughput.Rounds != 3 || math.Abs(s.Throughput.Value-1100.0/3) > 1e-9 || !s.Counts() {
		t.Errorf("throughput %v of three of four rounds", s.Throughput)
	}
	if s.Audit.Valid || len(s.Audit.Reasons) != 2 || s.Occurrences["cpu-steal"] != 1 {
		t.Errorf("audit %+v %v", s.Audit, s.Occurrences)
	}
	if s := one(t, good, wrong); s.Throughput.Value != 505 {
		t.Errorf("throughput %v of all rounds", s.Throughput)
	}
	if s := one(t, wrong); s.Counts() {
		t.Error("only an invalid round, and yet its correctness counts")
	}
}

func TestSummariseGroups(t *testing.T) {
	a := round(1, 0, 1)
	b := round(1, 0, 1)
	c := round(1, 0, 1)
	b.Params.Label = "s:x=1"
	c.Params.Limit = 20
	if got := Summarise([]Run{a, b, c, a}); len(got) != 3 || got[0].Rounds != 2 {
		t.Errorf("%d groups, %d rounds in the first; want 3 and 2", len(got), got[0].Rounds)
	}
	d := round(2, 0, 1)
	d.Params.Subjects = 77
	d.Params.Stream = "other"
	if a.Key() != d.Key() {
		t.Error("what differs between rounds of one measurement is in the key")
	}
}

func TestSummariseVerdicts(t *testing.T) {
	with := func(verdicts ...string) []Run {
		var runs []Run
		for i, v := range verdicts {
			r := round(i+1, 0, 1)
			r.Guarantee = []Clause{{Property: "leak", Formula: "L", Certain: int64(i), Verdict: v}}
			runs = append(runs, r)
		}
		return runs
	}
	for _, c := range []struct {
		rounds []string
		want   string
	}{
		{[]string{Kept, Kept}, Kept},
		{[]string{Kept, NotExercised}, Kept},
		{[]string{NotExercised, NotExercised}, NotExercised},
		{[]string{Kept, Undecided, Kept}, Undecided},
		{[]string{Kept, Broken, Undecided}, Broken},
	} {
		s := one(t, with(c.rounds...)...)
		if s.Verdict != c.want || len(s.Guarantee) != 1 {
			t.Errorf("%v: %q with %d clauses, want %q", c.rounds, s.Verdict, len(s.Guarantee), c.want)
		}
	}
	// The worst round's amounts stand.
	if s := one(t, with(Broken, Broken)...); s.Guarantee[0].Certain != 1 {
		t.Errorf("worst certain amount %d, want 1", s.Guarantee[0].Certain)
	}
	if s := one(t, round(1, 0, 1)); s.Verdict != NoPromise || s.LeakVerdict != NoPromise {
		t.Errorf("nothing declared: %q", s.Verdict)
	}
	rejects := func(bound int64, verdict string) string {
		r := round(1, 0, 1)
		r.Guarantee = []Clause{{Property: string(quota.PropertyFalseReject), Formula: "0", Verdict: Kept},
			{Property: string(quota.PropertyLeak), Formula: "any", Bound: bound, Verdict: verdict}}
		return one(t, r).Verdict
	}
	if got := rejects(math.MaxInt64, NoPromise); got != NoPromise {
		t.Errorf("a leak without a bound beside kept rejections: %q", got)
	}
	if got := rejects(1, Kept); got != Kept {
		t.Errorf("both kept: %q", got)
	}
}

func TestSummariseDrift(t *testing.T) {
	a := round(1, 0, 1)
	b := round(2, 0, 1)
	a.Drift = &Drift{Units: 3, Tiers: []TierDrift{{Tier: "redis", At: "rest", Units: 3, Readings: 5, Total: 4}}}
	b.Drift = &Drift{Units: -8, Tiers: []TierDrift{
		{Tier: "redis", At: "rest", Units: -2, Readings: 5, Total: 2}, {Tier: "postgres", At: "rest", Units: -8, Readings: 5},
		{Tier: "postgres", At: "after-jobs", Readings: 5}}}
	s := one(t, a, b)
	if s.Drift.Units != -8 || len(s.Drift.Tiers) != 3 || s.Drift.Tiers[0].Units != 3 || s.Drift.Tiers[0].Total != 6 ||
		s.Drift.Tiers[0].Readings != 10 {
		t.Errorf("drift %+v", s.Drift)
	}
	if rest, ok := s.AtRest(); !ok || rest.Tier != "postgres" {
		t.Errorf("at rest: %+v, %v", rest, ok)
	}
	if after, ok := s.AfterJobs(); !ok || after.Units != 0 {
		t.Errorf("after jobs: %+v, %v", after, ok)
	}
	if a.Drift.Tiers[0].Total != 4 {
		t.Error("summarising changed the run")
	}
}

func TestSummarisePercentiles(t *testing.T) {
	latency := func(samples, stalls int) Run {
		h := NewHistogram()
		for i := range samples {
			h.Record(int64(i + 1))
		}
		r := round(1, 0, 1)
		r.Service = must[Latency](t)(h.Latency())
		r.Service.StallsP99 = stalls
		r.Service.StallsP999 = stalls
		return r
	}
	rounds := func(n, samples, stalls int) []Run {
		var out []Run
		for range n {
			out = append(out, latency(samples, stalls))
		}
		return out
	}
	stallsOf := func(runs []Run, p99 int) []Run {
		for i := range runs {
			runs[i].Service.StallsP99 = p99
		}
		return runs
	}
	for _, c := range []struct {
		name      string
		runs      []Run
		p99, p999 codes.Status
		value     float64 // of p99
	}{
		{"enough in each round", rounds(6, 4_000, 9), codes.Pooled, codes.Pooled, 3_960},
		{"enough together", rounds(4, 1_000, 9), codes.Pooled, codes.Pooled, 990},
		{"too few", rounds(3, 100, 9), codes.TooFew, codes.TooFew, 100},
		{"few, but enough together", rounds(4, 100, 9), codes.Pooled, codes.TooFew, 99},
		{"p99 never pauses, p99.9 does", stallsOf(rounds(2, 4_000, 9), 1), codes.Pooled, codes.Pooled, 3_960},
		{"one stall in all", append(rounds(1, 4_000, 1), rounds(3, 4_000, 0)...), codes.Pooled, codes.Pooled, 3_960},
		{"stalls add up over rounds", rounds(5, 4_000, 1), codes.Pooled, codes.Pooled, 3_960},
		{"stalls unknown", rounds(2, 4_000, -1), codes.Pooled, codes.Pooled, 3_960},
		{"nothing", []Run{round(1, 0, 1)}, codes.NoSamples, codes.NoSamples, 0},
	} {
		l := one(t, c.runs...).Service
		if l.P99.Status != c.p99 || l.P999.Status != c.p999 {
			t.Errorf("%s: p99 %s, p99.9 %s; want %s, %s", c.name, l.P99.Status, l.P999.Status, c.p99, c.p999)
		}
		if math.Abs(l.P99.Value-c.value) > 0.002*c.value {
			t.Errorf("%s: p99 is %g, want %g", c.name, l.P99.Value, c.value)
		}
	}
	// One round without its histogram must not let the others speak for it.
	runs := rounds(4, 100, 9)
	runs[2].Service.Histogram = ""
	if l := one(t, runs...).Service; l.P99.Status != codes.TooFew || l.Curve != nil {
		t.Errorf("a histogram is missing: %s", l.P99.Status)
	}
}

func TestRateBound(t *testing.T) {
	if got := stat.RateBound(1_000); got != 0.003 {
		t.Errorf("0 of 1000 is compatible with %g", got)
	}
	if got := stat.RateBound(2); got != 1 {
		t.Errorf("0 of 2 is compatible with %g", got)
	}
}

// TestSummariseWaitedRounds: waiting for a core is counted, and takes no round out.
func TestSummariseWaitedRounds(t *testing.T) {
	lat := func(p99 int64, share float64) *Latency {
		return &Latency{
			Distribution: Distribution{Samples: 1_000_000, P50: 10, P99: p99, Max: 9999, StallsP99: 100, StallsP999: 100},
			Waited:       &Waited{P90: -1, P99: share, P999: -1, P9999: -1},
		}
	}
	p := percentiles([]*Latency{lat(100, 0.1), lat(4000, 0.9), lat(120, 0.5), lat(140, -1), lat(5000, 0.7)})
	if p.P99.Value != 140 || p.P99.Rounds != 5 || p.P99.Waited != 2 || p.P50.Waited != 0 {
		t.Errorf("two of five rounds waited: %+v, %+v", p.P99, p.P50)
	}
}

// TestSummarisePaced: latency and the reference come from the open loops,
// throughput and leaks from the closed ones.
func TestSummarisePaced(t *testing.T) {
	with := func(label string, perS float64, p99 int64, saturated bool) Run {
		r := round(1, 3, perS)
		o := round(1, 0, 500)
		r.Params.Label = label
		r.Params.Loop = codes.ClosedLoop
		r.Paced = &o
		o.Params.Label = label
		o.Params.Loop = codes.OpenLoop
		o.Params.RatePerS = 500
		o.Response = &Latency{Distribution: Distribution{Samples: 1_000_000, P50: p99 / 4, P99: p99, Max: p99, StallsP99: -1,
			StallsP999: -1}}
		o.Reference = &Distribution{Samples: 1_000_000, P50: 7, P99: 8, Max: 9, StallsP99: -1, StallsP999: -1}
		o.Lateness = &Lateness{Saturated: saturated}
		return r
	}
	all := Summarise([]Run{with("busy", 9000, 800, false), with("prompt", 3000, 200, false),
		with("late", 9999, 100, true)})
	if g := (&File{Summaries: all}).Groups(); len(g) != 1 || len(g[0]) != 3 {
		t.Fatalf("one setting is %d", len(g))
	}
	s := all[1]
	if s.Latency().P99.Value != 200 || s.Throughput.Value != 3000 || s.Leak.Units != 3 ||
		s.AtRate().Params.RatePerS != 500 {
		t.Errorf("%+v", s)
	}
	if s.Reference != nil || s.AtRate().Reference == nil || s.AtRate().Reference.P99.Value != 8 {
		t.Errorf("what a bare client took: %+v", s.AtRate().Reference)
	}
	bad := with("x", 1, 1, false)
	bad.Paced.Audit.Discard("run-failed", codes.DiscardsCorrectness, "gone")
	if Invalid([]Run{bad}) == nil {
		t.Error("an open loop that failed is no error")
	}
}

// TestSummariseMeter: rounds of 6 and 8 retries for 10 and 4 admitted requests of 20
// and 8 decisions are 14 for 14 and 28. An invalid round counts for nothing.
func TestSummariseMeter(t *testing.T) {
	runs := []Run{round(1, 0, 1), round(2, 0, 1), round(3, 0, 1)}
	for i, n := range []int64{6, 8, 1000} {
		r := &runs[i]
		r.Meter = []Measure{{Name: "retries", Unit: "retries", Value: n},
			{Name: "depth", Unit: "charges", Kind: "most", Value: 10 * n}}
		r.Admitted = []int64{10, 4, 1}[i]
		r.Rejected = []int64{10, 4, 1}[i]
	}
	runs[2].Audit.Valid = false
	m := one(t, runs...).Meter
	if len(m) != 2 || m[0].Value.Value != 7 || m[0].PerDecision != 0.5 || m[0].PerAdmitted != 1 {
		t.Fatalf("%+v", m)
	}
	if m[1].Value.Value != 70 || m[1].PerDecision != 0 || m[1].PerAdmitted != 0 || m[1].Kind != "most" {
		t.Errorf("a largest value is divided by decisions: %+v", m[1])
	}
}
