package main

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// meta is a strategy that declares something of everything.
func meta(name string) *strategies.Meta {
	return &strategies.Meta{
		Name: name, Doc: "reads a | and writes",
		About: strategies.About{
			Source: "ADR-RM-3",
			Notes: strategies.Notes{How: []string{"It reads.", "It writes."}, Deviations: []string{"Keys are shorter."},
				Use: "Use it alone.", Avoid: "Not with two."},
			Record: []quota.Clause{quota.Exactly().From("ADR-RM-3", "always")},
		},
		Form:  strategies.Documented,
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.Fixed}, Counts: quota.CountsAdmitted,
		Excluded: map[strategies.Mode]string{strategies.ModeExplore: "its client cannot be parked"},
		Options:  []quota.Option{{Name: "write", Doc: "when to write", Values: []string{"now", "later"}, Default: "now"}},
		Guarantee: []quota.Clause{{
			Property: quota.PropertyLeak, Formula: "L while alone", Tolerates: []quota.Fault{quota.FaultCrash},
			Bound: func(quota.Params) int64 {
				return 0
			},
		}},
	}
}

func rendered(t *testing.T, e *Evidence, all ...*strategies.Meta) map[string]string {
	t.Helper()
	list, err := Render(all, e)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range list {
		out[p.Name] = string(p.Bytes)
	}
	return out
}

func requireAll(t *testing.T, page string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(page, w) {
			t.Errorf("the page lacks %q:\n%s", w, page)
		}
	}
}

// TestSweepsAreDrawn: a plot is on the pages of the strategies in it, and its figures are in no table.
func TestSweepsAreDrawn(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[3])
	f.Sweep = &results.Sweep{Parameters: []results.Swept{{Name: "period", Values: []string{"1s"}}}}
	f.Runs[0].Params.Point = map[string]string{"period": "1s"}
	if _, err := newSweep("nameless", f); err == nil {
		t.Error("a sweep of which nothing is said has a page")
	}
	s, err := newSweep("sweep-period", f)
	if err != nil {
		t.Fatal(err)
	}
	name := f.Runs[0].Strategy
	pages := rendered(t, &Evidence{Sweeps: []Sweep{s}}, meta(name), meta("other"))
	requireAll(t, pages[name+".md"], "## Sweeps\n\n"+s.About, "![Leak against period](../images/sweep-period-leak.svg)")
	if strings.Contains(pages["other.md"], "sweep") || strings.Contains(pages[name+".md"], "## Measured") {
		t.Errorf("a page has what it should not have:\n%s", pages["other.md"])
	}
}

// TestPageQuotesItsEvidence plants figures and requires them back.
func TestPageQuotesItsEvidence(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[3])
	r := &f.Runs[0]
	r.Leak.Units = 7
	r.Leak.Possible = 7
	r.Leak.Trials = 1_234
	r.Leak.LeakedTrials = 5
	r.Leak.WorstUnits = 3
	r.Leak.Requests = 7
	r.Drift = &results.Drift{Units: -3, Tiers: []results.TierDrift{{Tier: "redis", At: "rest", Units: -3, Readings: 1}}}
	r.FalseRejects.PctOfValid = 2
	r.FalseRejects.Count = 400
	r.FalseRejects.Possible = 400
	r.Admitted = 400*49 + 7
	r.ThroughputPerS = 43_210
	r.Record = []results.Clause{{Property: "leak", Formula: "L", Source: "ADR-RM-3", Says: "always", Certain: 3,
		Verdict: results.Broken}}
	x := results.NewExploration()
	x.Searches = append(x.Searches, &results.Search{
		Strategy: "check-then-set", Policy: "user-links", Limit: 1, Clients: 2, Instances: 2, Scripts: []string{"take"},
		Claim: "stranded: no violation found",
		Findings: []results.Finding{
			{Property: "drift", Faults: []quota.Fault{quota.FaultCrash}, Token: "long", Steps: make([]results.Step, 2)},
			{Property: "leak", Detail: "2 of 1 admitted", Token: "qb2.token", Columns: []results.Column{{}},
				Steps: make([]results.Step, 3)},
		},
	})
	all := rendered(t, &Evidence{Runs: []results.File{f}, Names: []string{"first"},
		Explorations: []results.Exploration{x}}, meta("check-then-set"))
	p := all["check-then-set.md"]
	requireAll(t, all[Index], "Measured on 2 cores, Intel Xeon Platinum 8370C of linux/amd64; redis 7.0.15 (process); "+
		"postgres 15.18 (process). Compare", "|first|hot-key|user-links: ")
	requireAll(t, p,
		"# check-then-set\n\nReads a | and writes.\n\n- Use it alone.\n- Not with two.\n",
		"[Form](README.md#how-to-read-a-page): documented (ADR-RM-3). Stores: redis. Windows: fixed. [Not "+
			"in](../limits.md#modes-that-a-strategy-lacks): explore.\n",
		"1. It reads.\n2. It writes.\n", "## Different from ADR-RM-3\n\n- Keys are shorter.\n", "|admits at most L while alone|all|crash|\n",
		"|first|43,210|", "|7|5 of 1,234|2.00 %|-3 redis|",
		"|`take`|1|none|0|drift 2 (crash); leak 3|\n", "The leak, faults: none:\n", "`quotabench explore --replay qb2.token`",
	)
	if strings.Contains(p, "long") {
		t.Errorf("the schedule with a fault is quoted beside the one without:\n%s", p)
	}
}

// TestPageWithoutEvidence: what is not known is left out, and a strategy that was
// skipped says why.
func TestPageWithoutEvidence(t *testing.T) {
	all := rendered(t, &Evidence{Runs: []results.File{fixture.New(1, fixture.Strategies[0])}}, meta("etcd-counter"),
		meta("another"))
	requireAll(t, all["etcd-counter.md"], "Not part of the recorded runs: Needs etcd, which was not built in.")
	for _, heading := range []string{"## Measured", "## Explored"} {
		if strings.Contains(all["another.md"], heading) {
			t.Errorf("%s without evidence:\n%s", heading, all["another.md"])
		}
	}
	requireAll(t, all[Index], "|[another](another.md)|documented|reads a \\| and writes|\n|[etcd-counter]")
}

// TestPagesLinkBack: a page written by hand is linked from the pages that it links to.
func TestPagesLinkBack(t *testing.T) {
	study := Page{Name: "leaks.md", Bytes: []byte("# Leaks of one\n\n[one](one.md) leaks.\n")}
	all := rendered(t, &Evidence{Others: []Page{study}}, meta("one"), meta("two"))
	requireAll(t, all["one.md"], " More: [Leaks of one](leaks.md).\n")
	requireAll(t, all[Index], "- [Leaks of one](leaks.md)\n")
	if strings.Contains(all["two.md"], "leaks.md") {
		t.Errorf("a page is linked that does not speak of the strategy:\n%s", all["two.md"])
	}
	for name, page := range all {
		if !Generated([]byte(page)) {
			t.Errorf("%s does not say that it was generated", name)
		}
	}
	if Generated(study.Bytes) {
		t.Error("a page written by hand passes for a generated one")
	}
}

// TestPageMarksWhatTheAuditFinds: disturbed timings are marked, and invalid figures are left
// out and said to be.
func TestPageMarksWhatTheAuditFinds(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[3])
	f.Runs[0].Audit.Discard("machine-busy", codes.Disturbs, "other programs ran")
	f.Runs[0].ThroughputPerS = 43_210
	f.Runs[0].Guarantee = nil
	p := rendered(t, &Evidence{Runs: []results.File{f}}, meta("check-then-set"))["check-then-set.md"]
	requireAll(t, p, "|record 1|~43,210|~625 µs|~1.77 ms|", "|not judged|")
	f.Runs[0].Audit.Valid = false
	p = rendered(t, &Evidence{Runs: []results.File{f}}, meta("check-then-set"))["check-then-set.md"]
	requireAll(t, p, "|invalid|-|-|-|-|")
}

// TestPageOfASimulation has no throughput, and says what was modelled.
func TestPageOfASimulation(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[3])
	f.Kind = results.Simulated
	p := rendered(t, &Evidence{Runs: []results.File{f}}, meta("check-then-set"))["check-then-set.md"]
	requireAll(t, p, "## Simulated\n", "|[run](README.md#runs)|leak|")
	if strings.Contains(p, "decisions/s") || strings.Contains(p, "## Measured") {
		t.Errorf("a simulation passes for a measurement:\n%s", p)
	}
}

// TestFiguresBesideEachOther: figures on a page that was written by hand are those of the
// records, and the rest of it stays.
func TestFiguresBesideEachOther(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[2:4]...)
	for i := range f.Runs {
		r := &f.Runs[i]
		r.ThroughputPerS = 43_210 + float64(i)
		r.Cost.Commands = 3.25
		r.Cost.SQL = 0.5
		r.Cost.RoundTrips = 4.75
	}
	const from, to = "<!-- make pages: figures of check-then-set one-more -->\n", "<!-- /figures -->"
	names := strings.Replace(from, "one-more", f.Runs[0].Strategy, 1)
	e := &Evidence{Runs: []results.File{f}, Others: []Page{
		{Name: "leaks.md", Bytes: []byte("# Leaks\n\nbefore\n" + names + "typed: 12 per second\n" + to + "\nafter\n")},
		{Name: "plain.md", Bytes: []byte("# Plain\n")},
	}}
	all := rendered(t, e, meta("check-then-set"))
	p := all["leaks.md"]
	requireAll(t, p, "# Leaks\n\nbefore\n"+names, to+"\nafter\n", "|check-then-set|", "|"+f.Runs[0].Strategy+
		"|", "43,21", "|3.25, 0.50, 4.75|")
	if strings.Contains(p, "typed") {
		t.Errorf("what was typed is still there:\n%s", p)
	}
	if _, ok := all["plain.md"]; ok {
		t.Error("a page without figures is written")
	}
	e.Others[0].Bytes = []byte(p)
	if again := rendered(t, e, meta("check-then-set"))["leaks.md"]; again != p {
		t.Errorf("the second time it is\n%s", again)
	}
	e.Names = []string{"first"}
	named := strings.Replace(names, " -->", " in first -->", 1)
	e.Others[0].Bytes = []byte("# Leaks\n" + named + to)
	requireAll(t, rendered(t, e, meta("check-then-set"))["leaks.md"], "From [first](README.md#runs):")
	e.Others[0].Bytes = []byte("# Leaks\n" + strings.Replace(named, "first", "second", 1) + to)
	if _, err := Render(nil, e); err == nil {
		t.Error("figures of a record that is not there")
	}
	for _, bad := range []string{from, names, strings.TrimSuffix(names, "\n") + to} {
		e.Others[0].Bytes = []byte("# Leaks\n" + bad)
		if _, err := Render(nil, e); err == nil || !strings.Contains(err.Error(), "leaks.md") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	e.Others[0].Bytes = []byte("# Leaks\n" + from + to)
	if _, err := Render(nil, e); err == nil || !strings.Contains(err.Error(), "no measured record") {
		t.Errorf("without figures: %v", err)
	}
}
