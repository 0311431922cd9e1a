package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
)

func explored(searches ...*results.Search) *results.Exploration {
	x := results.NewExploration()
	x.Searches = searches
	return &x
}

// searched is a search that found the properties broken, each in so many steps.
func searched(strategy string, found map[results.Property]int) *results.Search {
	s := &results.Search{Strategy: strategy, Policy: "agent-api", Limit: 1, Clients: 2, Runs: 1,
		Properties: []results.Property{"leak", "drift"}}
	for _, p := range s.Properties {
		if n := found[p]; n > 0 {
			s.Findings = append(s.Findings,
				results.Finding{Property: p, Units: 1, Detail: "planted", Steps: make([]results.Step, n)})
		}
	}
	return s
}

func TestExplorations(t *testing.T) {
	withheld := searched("a", nil)
	capped := searched("a", map[results.Property]int{"leak": 9})
	withheld.Withheld = []results.Withheld{{Code: "context-lost", Detail: "a command came without its context"}}
	capped.Capped = "the bound on states"
	untried := searched("a", nil)
	untried.Runs = 0
	untried.Capped = "its time was up"
	more := searched("a", map[results.Property]int{"leak": 9})
	more.Findings[0].Units = -2
	failed := explored(searched("b", nil))
	failed.Failed = []results.FailedExplore{{Strategy: "a", Error: "it panics"}}
	found := func(leak, drift int) *results.Exploration {
		return explored(searched("a", map[results.Property]int{"leak": leak, "drift": drift}))
	}
	for _, c := range []struct {
		name       string
		base, head *results.Exploration
		want       []string
	}{
		{"the same", found(9, 0), found(9, 0), nil},
		{"longer", found(9, 0), found(10, 0), nil},
		{"mended", found(9, 5), found(9, 0), nil},
		{"shorter", found(9, 0), found(8, 0), []string{"a steps of a broken leak: worse"}},
		{"new", found(9, 0), found(9, 12), []string{"a counterexamples of a broken drift: worse"}},
		{"more units", found(9, 0), explored(more), []string{"a units of a broken leak: worse"}},
		{"withheld", found(9, 0), explored(withheld), []string{"a validity: invalid"}},
		{"untried", explored(untried), explored(untried), []string{"a validity: invalid"}},
		{"failed", explored(searched("a", nil), searched("b", nil)), failed, []string{"a validity: invalid"}},
	} {
		got, err := compare.Compare(compare.Side{Name: "base", Exploration: c.base},
			compare.Side{Name: "head", Exploration: c.head}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var fails []string
		for _, r := range got.Failed() {
			fails = append(fails, r.Strategy+" "+r.Name()+": "+string(r.Verdict))
		}
		if !slices.Equal(fails, c.want) {
			t.Errorf("%s: %q fails, want %q", c.name, fails, c.want)
		}
	}
	// A search that ended early has not shown that anything was mended.
	got, err := compare.Compare(compare.Side{Exploration: found(9, 5)}, compare.Side{Exploration: explored(capped)},
		compare.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if rows := got.Failed(); len(rows) != 1 || rows[0].Verdict != compare.Inconclusive ||
		!strings.Contains(rows[0].Detail, "the bound on states") {
		t.Errorf("%+v", rows)
	}
	// Other bounds are another search.
	other := searched("a", nil)
	other.Clients = 3
	if _, err := compare.Compare(compare.Side{Name: "base", Exploration: found(9, 0)},
		compare.Side{Exploration: explored(other)}, compare.Options{}); err == nil ||
		!strings.Contains(err.Error(), "within other bounds") {
		t.Errorf("%v", err)
	}
}

func TestCensuses(t *testing.T) {
	count := func(leaking int64, steps int, complete bool) *results.Exploration {
		x := results.NewExploration()
		x.Censuses = []*results.Census{{Strategy: "a", Schedules: 20, Leaking: leaking, Worst: 1, Complete: complete,
			Shortest: &results.Finding{Steps: make([]results.Step, steps)}}}
		return &x
	}
	for _, c := range []struct {
		head *results.Exploration
		want int
	}{{count(5, 4, true), 0}, {count(6, 4, true), 1}, {count(5, 3, true), 1}, {count(9, 1, false), 0}} {
		got, err := compare.Compare(compare.Side{Exploration: count(5, 4, true)}, compare.Side{Exploration: c.head},
			compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got.Failed()); n != c.want {
			t.Errorf("%+v: %d fail, want %d", c.head.Censuses[0], n, c.want)
		}
	}
}

func TestSearchGates(t *testing.T) {
	properties := []results.Property{"leak", "drift", "stuck"}
	x := explored(searched("a", map[results.Property]int{"leak": 4}), searched("b", nil))
	for text, want := range map[string]string{"leak=none": "a", "leak<=1": "undecided", "steps>=5": "a", "steps>=4": "",
		"counterexamples < 1": "a", "drift=none": "", "stuck=none": "undecided"} {
		g, err := compare.ParseSearchGate(text, properties)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range compare.CheckSearches(x, []compare.Gate{g}) {
			switch r.Verdict {
			case compare.Worse:
				got += r.Strategy
			case compare.Invalid:
				got = "undecided"
			}
		}
		for _, r := range compare.CheckSearches(x, []compare.Gate{g.Lenient()}) {
			if r.Fails(false) != (r.Verdict == compare.Worse) {
				t.Errorf("%s: a lenient gate fails for %s: %s", text, r.Strategy, r.Detail)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestFindingOfAGate: a condition on several properties says what breaks the first of them.
func TestFindingOfAGate(t *testing.T) {
	both := explored(searched("a", map[results.Property]int{"leak": 4, "drift": 7}))
	for text, want := range map[string]string{"leak=none && drift=none": "4 steps", "drift=none && leak=none": "7 steps"} {
		gate, err := compare.ParseSearchGate(text, []results.Property{"leak", "drift"})
		if err != nil {
			t.Fatal(err)
		}
		row := compare.CheckSearches(both, []compare.Gate{gate})[0]
		if row.Verdict != compare.Worse || !strings.HasSuffix(row.Detail, want) {
			t.Errorf("%s: %s, %q, want %s", text, row.Verdict, row.Detail, want)
		}
	}
}
