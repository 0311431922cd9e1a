package measure

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

func hashOf(events []oracle.Event) uint64 {
	var a askedHash
	eachTake(a.take)(events)
	return a.hash
}

func TestAuditStreamsDiffer(t *testing.T) {
	a := newCrossRunAudit()
	events := []oracle.Event{{Subject: 1, Units: 2}, {Subject: 2, Units: 1}}
	first := results.Run{Repetition: 1, Requests: results.Requests{Issued: 2}}
	a.sameRequests(&first, hashOf(events))
	// Another order of the same requests is the same.
	same := results.Run{Repetition: 1, Requests: results.Requests{Issued: 2}}
	a.sameRequests(&same, hashOf([]oracle.Event{events[1], events[0]}))
	if len(first.Audit.Reasons)+len(same.Audit.Reasons) != 0 {
		t.Errorf("%+v, %+v", first.Audit, same.Audit)
	}
	other := results.Run{Repetition: 1, Requests: results.Requests{Issued: 2}}
	a.sameRequests(&other, hashOf([]oracle.Event{{Subject: 1, Units: 1}, {Subject: 2, Units: 2}}))
	if !hasReason(other, "streams-differ") {
		t.Errorf("%+v", other.Audit)
	}
}

func TestAuditStreamsCoincide(t *testing.T) {
	a := newCrossRunAudit()
	for round, want := range []bool{false, false, true} {
		r := results.Run{Repetition: round + 1, Params: results.Params{Stream: []string{"x", "y", "x"}[round]}}
		a.freshStream(&r, true)
		if hasReason(r, "streams-coincide") != want {
			t.Errorf("round %d: %+v", round+1, r.Audit)
		}
	}
	r := results.Run{Repetition: 9, Params: results.Params{Stream: "x"}}
	a.freshStream(&r, false) // a trace is the same in every round
	if len(r.Audit.Reasons) != 0 {
		t.Errorf("%+v", r.Audit)
	}
}

// Rounds that all slow down have not settled; rounds that merely scatter have.
func TestAuditNotStationary(t *testing.T) {
	events := func(first, last int) []oracle.Event {
		var e []oracle.Event
		for range first {
			e = append(e, oracle.Event{Reply: 10})
		}
		for range last {
			e = append(e, oracle.Event{Reply: 290})
		}
		return e
	}
	for _, c := range []struct {
		name string
		last []int
		want bool
	}{
		{"slows down", []int{80, 85, 70, 60, 88, 75}, true},
		{"scatters", []int{80, 120, 70, 130, 88, 110}, false},
		{"too few rounds", []int{80, 85, 70, 60, 88}, false},
	} {
		a := newCrossRunAudit()
		runs := make([]results.Run, len(c.last))
		for i, last := range c.last {
			runs[i] = results.Run{Rates: results.Rates{ElapsedNS: 300}, Repetition: i + 1, Audit: results.Audit{Valid: true}}
			parts := thirdsOf(&runs[i])
			eachTake(parts.take)(events(100, last))
			a.stationary(&runs[i], parts)
		}
		a.trends(runs)
		if got := hasReason(runs[0], "not-stationary"); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if runs[0].Audit.Disturbed() != c.want {
			t.Errorf("%s: disturbed %v", c.name, runs[0].Audit.Disturbed())
		}
	}
}

// TestOthersShareIsRecorded: what other programs used is in the record, much or little.
func TestOthersShareIsRecorded(t *testing.T) {
	for used, marks := range map[time.Duration]bool{550 * time.Millisecond: false, 100 * time.Millisecond: true} {
		p := auditPass()
		p.machine = machine.CPUTime{Busy: 0.6, Total: 1}
		p.own.used = used
		p.auditTimings()
		if want := 0.6 - used.Seconds(); math.Abs(p.run.OthersShare-want) > 1e-9 || p.run.Audit.Disturbed() != marks {
			t.Errorf("other programs used %g, want %g; disturbed %v", p.run.OthersShare, want, p.run.Audit.Disturbed())
		}
	}
}

// auditPass is a pass with nothing wrong in it, to plant one thing in.
func auditPass() *pass {
	return &pass{
		measurement: &measurement{cfg: &Config{}, across: newCrossRunAudit()},
		site: &site{Session: &harness.Session{Selection: strategies.Selection{Meta: &strategies.Meta{
			Needs: []strategies.Need{strategies.NeedRedis, strategies.NeedPostgres}}}}},
		drive: &drive{subjects: newSubjects(nameless{}, 0, 0)},
		run: &results.Run{Audit: results.Audit{Valid: true},
			Latencies: results.Latencies{Service: results.Latency{Distribution: results.Distribution{P50: 1_000_000}}}},
	}
}

func TestAuditStores(t *testing.T) {
	healthy := stores.Stats{Known: true, Incarnation: "a", Commands: 100}
	for _, c := range []struct {
		code     string
		discards string
		plant    func(p *pass, st *siteStore)
	}{
		{"keys-under-prefix", codes.DiscardsCorrectness, func(p *pass, _ *siteStore) { p.site.strays = 1 }},
		{"store-restarted", codes.DiscardsCorrectness, func(_ *pass, st *siteStore) { st.after.Incarnation = "b" }},
		{"", "", func(_ *pass, st *siteStore) {
			st.before.Incarnation = "a,b"
			st.before.Commands = 1000
		}}, // one did not answer
		{"store-evicted", codes.DiscardsCorrectness, func(_ *pass, st *siteStore) { st.after.Evicted = 1 }},
		{"store-forked", codes.Disturbs, func(_ *pass, st *siteStore) { st.after.Forks = 1 }},
		{"store-counts-less", codes.DiscardsNothing, func(_ *pass, st *siteStore) { st.traffic.Commands = 1 }},
		{"meter-lost", codes.DiscardsNothing, func(_ *pass, st *siteStore) { st.traffic.Unparsed = 1 }},
	} {
		p := auditPass()
		st := &siteStore{Store: storetest.EmbeddedRedis(t), name: "redis", before: healthy, after: healthy}
		p.site.stores = map[string]*siteStore{"redis": st}
		p.audit()
		if len(p.run.Audit.Reasons) != 0 {
			t.Fatalf("healthy stores: %+v", p.run.Audit)
		}
		c.plant(p, st)
		for _, n := range p.noticed() { // as the judge does
			if n.Code != "" {
				p.discard(n.Code, codes.DiscardsCorrectness, "%s", n.Detail)
			}
		}
		p.audit()
		requireDiscard(t, p.run, c.code, c.discards)
	}
}

func TestAuditTimings(t *testing.T) {
	for _, c := range []struct {
		code     string
		discards string
		plant    func(p *pass)
	}{
		{"cpu-steal", codes.Disturbs, func(p *pass) { p.machine = machine.CPUTime{Stolen: 2, Total: 100} }},
		{"machine-busy", codes.Disturbs, func(p *pass) {
			p.machine = machine.CPUTime{Busy: 0.6, Total: 1}
			p.own.used = 400 * time.Millisecond
		}},
		{"other-measurements", codes.DisturbsTimings, func(p *pass) { // whose servers keep the machine busy
			p.machine = machine.CPUTime{Busy: 0.6, Total: 1}
			p.accompanied = true
		}},
		{"histogram-overflow", codes.DisturbsTimings, func(p *pass) { p.run.Service.OutOfRange = 1 }},
		{"pacer-late", codes.DisturbsResponse, func(p *pass) { p.run.Lateness = &results.Lateness{PacerP50: 60_000} }},
		{"stood-still", codes.DiscardsRound, func(p *pass) { p.run.Waiting = &results.Waiting{HiccupMax: 1_100_000_000} }},
		{"saturated", codes.DiscardsNothing, func(p *pass) { p.run.Lateness = &results.Lateness{Saturated: true} }},
	} {
		p := auditPass()
		p.auditTimings()
		if len(p.run.Audit.Reasons) != 0 {
			t.Fatalf("healthy timings: %+v", p.run.Audit)
		}
		c.plant(p)
		p.auditTimings()
		requireDiscard(t, p.run, c.code, c.discards)
	}
}

func requireDiscard(t *testing.T, r *results.Run, code, discards string) {
	t.Helper()
	if code == "" {
		if len(r.Audit.Reasons) > 0 {
			t.Errorf("%+v", r.Audit.Reasons)
		}
		return
	}
	if len(r.Audit.Reasons) != 1 || r.Audit.Reasons[0].Code != code || r.Audit.Reasons[0].Discards != discards {
		t.Errorf("%s: %+v", code, r.Audit.Reasons)
	}
	if r.Audit.Valid == (discards == codes.DiscardsCorrectness) ||
		r.Audit.Disturbed() != (discards == codes.DisturbsTimings || discards == codes.Disturbs) ||
		r.Audit.Planned() == (discards == codes.DiscardsRound || code == codes.StoreRestarted) {
		t.Errorf("%s: valid %v, disturbed %v, as planned %v", code, r.Audit.Valid, r.Audit.Disturbed(), r.Audit.Planned())
	}
}

func TestAuditReference(t *testing.T) {
	redis := storetest.Redis(t)
	cfg := Config{Plan: harness.Plan{Workers: 4, Surroundings: harness.Surroundings{Stores: setOf(t, redis)}},
		ReferenceLength: defaultReferenceLength}
	m := &measurement{cfg: &cfg, timebase: wallTime, id: "audit", leftOut: &leftOut{why: map[string]string{}}}
	reference := func() loop {
		l, err := m.reference(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	honest := reference()
	if honest.perS <= 0 || honest.foreign > maxForeign {
		t.Errorf("a loop alone on its server: %+v", honest)
	}
	// Another program works on the same server, for a tenth of what the loop sends at least.
	ctx, cancel := context.WithCancel(t.Context())
	var sent atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			redis.Admin().Incr(ctx, "quotabench:audit:foreign")
			sent.Add(1)
		}
	}()
	share := 0.0
	shared := longer(t, defaultReferenceLength, func(d time.Duration) loop {
		cfg.ReferenceLength = d
		before := sent.Load()
		l := reference()
		share = float64(sent.Load()-before) / (l.perS * d.Seconds())
		return l
	}, func(loop) bool { return share > 0.1 })
	cancel()
	<-done
	if shared.foreign <= maxForeign {
		t.Errorf("foreign commands were not noticed: %+v", shared)
	}
	redis.Admin().Del(t.Context(), "quotabench:audit:foreign")

	run := func(before, after loop) results.Run {
		r := results.Run{Audit: results.Audit{Valid: true}}
		between(&r, before, after, nil)
		runs := []results.Run{r}
		drifted(runs)
		return runs[0]
	}
	r := run(loop{perS: 1000, foreign: 0.5}, loop{perS: 899})
	if !hasReason(r, "reference-drift") || !hasReason(r, "redis-shared") || !r.Audit.Disturbed() ||
		r.ReferencePerS != 949.5 || r.ReferenceChange != 0.899 {
		t.Errorf("%+v", r)
	}
	r = run(loop{perS: 1000}, loop{perS: 1100})
	if len(r.Audit.Reasons) != 0 || r.ReferencePerS != 1050 {
		t.Errorf("loops that differ by less than a tenth: %+v", r)
	}
	r = run(loop{perS: 1000}, loop{}) // Ctrl-C
	if len(r.Audit.Reasons) != 0 || r.ReferencePerS != 1000 || r.ReferenceChange != 0 {
		t.Errorf("a loop before and none after: %+v", r)
	}
}

// TestReferenceDriftBeyondTheUsual: a change is discarded if it is more than a tenth
// and more than twice the usual one.
func TestReferenceDriftBeyondTheUsual(t *testing.T) {
	for _, c := range []struct {
		name      string
		usual     float64 // of every change but the last, up and down in turns
		n         int
		planted   float64
		discarded bool
	}{
		{"a quiet machine, and a change above a tenth", 1.01, 11, 1.12, true},
		{"the same down", 1.01, 11, 0.89, true},
		{"a quiet machine, and a change below a tenth", 1.01, 11, 1.10, false},
		{"a machine that scatters, and a change as usual", 1.2, 11, 1.2, false},
		// 3.5 x 1.4826 x ln 1.2 is ln 2.576.
		{"a machine that scatters, and a change below the limit", 1.2, 11, 2.55, false},
		{"a machine that scatters, and a change above the limit", 1.2, 11, 2.60, true},
		{"the same down", 1.2, 11, 1 / 2.60, true},
		{"too few changes to know the usual one", 1.2, 4, 1.12, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var runs []results.Run
			for i := range c.n + 1 {
				change := c.usual
				if i%2 == 1 {
					change = 1 / change
				}
				if i == c.n {
					change = c.planted
				}
				r := results.Run{Audit: results.Audit{Valid: true}}
				between(&r, loop{perS: 1000}, loop{perS: 1000 * change}, nil)
				runs = append(runs, r)
			}
			drifted(runs)
			if got := hasReason(runs[c.n], "reference-drift"); got != c.discarded {
				t.Errorf("discarded: %t, want %t: %+v", got, c.discarded, runs[c.n].Audit)
			}
			for i := range c.n {
				if got, want := hasReason(runs[i], "reference-drift"), c.n+1 < minChanges; got != want {
					t.Errorf("change %d of the usual size discarded: %t", i, got)
				}
			}
		})
	}
}

func TestAuditSubjectsCollapsed(t *testing.T) {
	p := auditPass()
	p.drive.subjects = newSubjects(nameless{}, 2, 0)
	for i := range uint32(2) {
		p.drive.subjects.at(i).cell(0).Begin(1)
	}
	p.auditRecording()
	requireDiscard(t, p.run, "subjects-collapsed", codes.DiscardsCorrectness)
}

// nameless is a stream whose subjects all have the same name.
type nameless struct{ workloads.Stream }

func (nameless) Name(uint32) string { return "" }

func TestAuditSampleMismatch(t *testing.T) {
	p := auditPass()
	p.run.Issued = 3
	p.run.Service.Samples = 2
	p.auditRecording()
	requireDiscard(t, p.run, "sample-mismatch", codes.DiscardsCorrectness)
}

// TestAuditReferenceFailed ends the server between the two loops of a round.
func TestAuditReferenceFailed(t *testing.T) {
	redis := storetest.EmbeddedRedis(t)
	m := &measurement{cfg: &Config{Plan: harness.Plan{Workers: 2,
		Surroundings: harness.Surroundings{Stores: setOf(t, redis)}}}, timebase: wallTime,
		id: "audit", leftOut: &leftOut{why: map[string]string{}}}
	before, err := m.reference(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := redis.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := m.reference(t.Context())
	r := &results.Run{Audit: results.Audit{Valid: true}}
	between(r, before, after, err)
	requireDiscard(t, r, "reference-failed", codes.DiscardsRound)
}

// TestCrossedElsewhere: a round that asked no subject for more than its limit takes nothing back
// if another round of the strategy did, and all of a strategy take everything back.
func TestCrossedElsewhere(t *testing.T) {
	short := func(label string, trials int64) results.Run {
		r := results.Run{Params: results.Params{Label: label}, Audit: results.Audit{Valid: true}}
		r.Leak.Trials = trials
		if trials == 0 {
			r.Audit.Discard(codes.NeverCrossed, codes.DiscardsCorrectness, "planted")
		}
		return r
	}
	runs := []results.Run{short("a", 0), short("a", 3), short("b", 0), short("b", 0), short("a", 0)}
	runs[4].Audit.Discard("another", codes.DiscardsCorrectness, "planted")
	paced := short("a", 0)
	runs[1].Paced = &paced
	CrossedElsewhere(runs)
	for i, want := range []bool{true, true, false, false, false} {
		if runs[i].Audit.Valid != want {
			t.Errorf("run %d: %+v, want valid %v", i, runs[i].Audit, want)
		}
	}
	if !runs[1].Paced.Audit.Valid {
		t.Errorf("the open loop: %+v", runs[1].Paced.Audit)
	}
	if !runs[0].Audit.Has(codes.NeverCrossed) {
		t.Error("the finding is gone")
	}
}
