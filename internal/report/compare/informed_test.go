package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
)

// row of a strategy, or nil.
func row(c *compare.Comparison, strategy, name string) *compare.Row {
	i := slices.IndexFunc(c.Rows, func(r compare.Row) bool { return r.Strategy == strategy && r.Name() == name })
	if i < 0 {
		return nil
	}
	return &c.Rows[i]
}

// TestStaleness: older counters are shown, and fail nothing.
func TestStaleness(t *testing.T) {
	series := func(most int64) []results.Series {
		return []results.Series{{
			Strategy: "lua-reserve", Counters: []string{"redis"},
			Samples: []results.Sample{{AtNS: 1, Counters: []results.Counter{{StalenessNS: most}}},
				{AtNS: 2, Counters: []results.Counter{{StalenessNS: 1e6}}}},
		}}
	}
	for _, x := range []struct {
		base, head []results.Series
		want       compare.Verdict // empty if there is no row
	}{
		{series(5e6), series(5e6), compare.Same}, {series(5e6), series(7e6), compare.Worse},
		{series(7e6), series(5e6), compare.Better}, {nil, series(7e6), ""}, {series(5e6), nil, ""},
	} {
		c, err := compare.Compare(compare.Side{File: simulated(), Series: x.base},
			compare.Side{File: simulated(), Series: x.head}, compare.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		r := row(c, "lua-reserve", "staleness of redis")
		switch {
		case r == nil && x.want == "":
		case r == nil || r.Verdict != x.want || !c.Passes():
			t.Errorf("%+v, want %q; fails %q", r, x.want, failing(c))
		case x.want == compare.Worse &&
			(*r.Base != 5 || *r.Head != 7 || !slices.ContainsFunc(c.Read().Changed, func(s compare.Row) bool {
				return s.Figure == compare.Staleness
			})):
			t.Errorf("%v to %v ms, shown: %+v", *r.Base, *r.Head, c.Read().Changed)
		}
	}
}

// TestAllocations: more of them are shown, but not those that come and go by themselves.
func TestAllocations(t *testing.T) {
	with := func(allocs float64) *results.File {
		f := measured(1)
		of(f, "lua-reserve")[0].Cost.Probe = &results.Probe{Admitted: &results.ProbeCost{Commands: 1, Allocs: allocs}}
		for _, r := range of(f, "lua-reserve")[1:] {
			r.Cost.Probe = nil
		}
		return f
	}
	for _, x := range []struct {
		head float64
		want compare.Verdict
	}{{100, compare.Same}, {104, compare.Same}, {106, compare.Worse}, {90, compare.Better}} {
		c := files(t, with(100), with(x.head), compare.Options{})
		r := row(c, "lua-reserve", "allocs of a later admission")
		if r == nil || r.Verdict != x.want || !r.Advisory || slices.ContainsFunc(failing(c), func(s string) bool {
			return strings.Contains(s, "allocs")
		}) {
			t.Errorf("%g: %+v, want %s; fails %q", x.head, r, x.want, failing(c))
		}
	}
}

// TestReplays: a schedule that breaks its property again, or other replies, are shown, and
// fail nothing.
func TestReplays(t *testing.T) {
	repeated := func(broken, same bool) *results.Exploration {
		x := explored()
		x.Replays = []*results.Replay{{Strategy: "a", Policy: "p", Property: "leak", Broken: broken, Same: same,
			Store: "redis 7", Finding: &results.Finding{Token: "token-1"}}}
		return x
	}
	for _, x := range []struct {
		base, head        *results.Exploration
		broken, otherwise compare.Verdict
	}{
		{repeated(true, true), repeated(true, true), compare.Same, compare.Same},
		{repeated(false, true), repeated(true, false), compare.Worse, compare.Worse},
		{repeated(true, true), repeated(false, true), compare.Better, compare.Same},
	} {
		c, err := compare.Compare(compare.Side{Exploration: x.base}, compare.Side{Exploration: x.head}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := row(c, "a", "broken-again of a repeated leak")
		o := row(c, "a", "other-replies of a repeated leak")
		if b == nil || o == nil || b.Verdict != x.broken || o.Verdict != x.otherwise || !c.Passes() {
			t.Errorf("%+v, %+v", b, o)
		}
	}
	other := repeated(true, true)
	other.Replays[0].Finding.Token = "token-2"
	if _, err := compare.Compare(compare.Side{Exploration: repeated(true, true)}, compare.Side{Exploration: other},
		compare.Options{}); err == nil {
		t.Error("another schedule was compared")
	}
}
