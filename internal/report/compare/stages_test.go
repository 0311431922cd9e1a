package compare_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
)

// TestStages: what the first stage flags fails only if fresh rounds show it too.
func TestStages(t *testing.T) {
	slow := func(seed uint64, by float64) *results.File {
		f := measured(seed)
		for _, r := range of(f, "lua-reserve") {
			r.ThroughputPerS /= by
		}
		return f
	}
	o := compare.Options{Paired: true, Rule: compare.Screening}
	flagged := func() *compare.Comparison {
		c := files(t, measured(1), slow(2, 1.2), o)
		if !slices.Contains(c.Of(compare.Worse), "lua-reserve") {
			t.Fatalf("flagged: %q", c.Of(compare.Worse))
		}
		return c
	}
	o.Rule = compare.Confirmation(flagged().Gated())
	for name, x := range map[string]struct {
		head *results.File
		want []string
		why  string
	}{
		"again slower": {slow(4, 1.2), []string{"lua-reserve throughput"}, "twice"},
		"not again":    {slow(4, 1), nil, "fresh rounds do not show it"},
		"a leak in the fresh rounds": {func() *results.File {
			f := slow(4, 1)
			of(f, "lua-reserve")[3].Leak.Units = 1
			return f
		}(), []string{"lua-reserve leak"}, ""},
	} {
		c := flagged()
		c.Confirm(files(t, measured(3), x.head, o))
		if got := failing(c); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q fails, want %q", name, got, x.want)
		}
		i := slices.IndexFunc(c.Rows, func(r compare.Row) bool {
			return r.Strategy == "lua-reserve" && r.Figure == compare.Throughput
		})
		if !strings.Contains(c.Rows[i].Detail, x.why) {
			t.Errorf("%s: %s", name, c.Rows[i].Detail)
		}
	}
	// What was flagged and is not there again is no pass.
	c := flagged()
	fresh := slow(4, 1)
	fresh.Runs = slices.DeleteFunc(fresh.Runs, func(r results.Run) bool { return r.Strategy == "lua-reserve" })
	c.Confirm(files(t, measured(3), fresh, o))
	if i := slices.IndexFunc(c.Rows, func(r compare.Row) bool {
		return r.Verdict == compare.Inconclusive
	}); i < 0 || !c.Passes() {
		t.Errorf("%q fails", failing(c))
	}
}

// TestPairing: records whose rounds were made in pairs need no reference loop, and two files
// that merely lie next to each other do.
func TestPairing(t *testing.T) {
	for _, x := range []struct {
		base, head string
		want       compare.Verdict
	}{{"", "", compare.Inconclusive}, {"a", "b", compare.Inconclusive}, {"a", "a", compare.Worse}} {
		base := measured(1)
		head := measured(2)
		for _, f := range []*results.File{base, head} {
			for i := range f.Runs {
				f.Runs[i].ReferencePerS = 0
			}
		}
		for _, r := range of(head, "lua-reserve") {
			r.ThroughputPerS /= 2
		}
		base.Pairing, head.Pairing = x.base, x.head
		c := files(t, base, head, compare.Options{})
		i := slices.IndexFunc(c.Rows, func(r compare.Row) bool {
			return r.Strategy == "lua-reserve" && r.Figure == compare.Throughput
		})
		if i < 0 || c.Rows[i].Verdict != x.want {
			t.Errorf("pairings %q and %q: %+v, want %s", x.base, x.head, c.Rows[max(0, i)], x.want)
		}
	}
}

// TestConfirmationSharesTheError: by chance in both stages, no more comparisons fail than
// by the standard rule.
func TestConfirmationSharesTheError(t *testing.T) {
	for _, gated := range []int{1, 2, 5, 20, 100} {
		if p := float64(gated) * compare.Screening.Alpha * compare.Confirmation(gated).Alpha; p > compare.Standard.Alpha*(1+1e-9) || math.IsNaN(p) {
			t.Errorf("%d figures: %g", gated, p)
		}
	}
}

// TestProcessorTime: rounds of one simulation are compared by their processor time, in pairs alone, and by all else
// once.
func TestProcessorTime(t *testing.T) {
	rounds := func(by float64, leak int64) *results.File {
		all := simulated()
		all.Runs = slices.DeleteFunc(all.Runs, func(r results.Run) bool { return r.Strategy != "lua-reserve" })
		one := all.Runs[0]
		all.Runs = nil
		for i := range 12 {
			one.Repetition = i + 1
			one.Leak.Units = leak
			one.Cost.ClientCPU = 5_000 * by * (1 + 0.04*float64(i*5%12)/12)
			all.Runs = append(all.Runs, one)
		}
		return all
	}
	o := compare.Options{Paired: true, Rule: compare.Screening}
	for _, c := range []struct {
		by   float64
		leak int64
		want []string
	}{
		{1, 0, nil}, {1.02, 0, nil}, {0.8, 0, nil}, {1.2, 0, []string{"lua-reserve client-cpu"}},
		{1, 1, []string{"lua-reserve leak"}},
	} {
		got := files(t, rounds(1, 0), rounds(c.by, c.leak), o)
		if f := failing(got); !slices.Equal(f, c.want) {
			t.Errorf("by %g, leak %d: %q fails, want %q", c.by, c.leak, f, c.want)
		}
		i := slices.IndexFunc(got.Rows, func(r compare.Row) bool { return r.Figure == compare.ClientCPU })
		if i < 0 || got.Rows[i].Verdict == compare.Inconclusive || *got.Rows[i].Head < 4_900*c.by ||
			*got.Rows[i].Head > 5_300*c.by {
			t.Fatalf("by %g: %+v", c.by, got.Rows)
		}
	}
	apart := files(t, rounds(1, 0), rounds(2, 0), compare.Options{})
	if f := failing(apart); len(f) > 0 || slices.ContainsFunc(apart.Rows, func(r compare.Row) bool {
		return r.Figure == compare.ClientCPU
	}) {
		t.Errorf("not in pairs: %q fails", f)
	}
}

// TestLooksShareTheError: rounds that double while they are inconclusive fail unchanged code no more often than is
// promised, find 20 % more work, and leave less undecided than one look does.
func TestLooksShareTheError(t *testing.T) {
	few := testenv.Pick(10, 40)
	fails, open := staged(t, 1, 3, 10*few)
	_, once := staged(t, 1, 1, few)
	found, _ := staged(t, 1.2, 3, few)
	t.Logf("unchanged: %.4f fail, %.3f inconclusive, and %.3f by one look; 20 %% more: %.3f fail", fails, open, once,
		found)
	if fails > compare.Standard.Alpha || open > once/2 || found < 0.95 {
		t.Errorf("unchanged: %.4f fail, %.3f inconclusive, and %.3f by one look; 20 %% more: %.3f fail", fails, open, once,
			found)
	}
}

// staged is the share of comparisons that fail, and that cannot tell, if the first of four strategies takes by times
// the processor time of its base, to which other programs add.
func staged(t *testing.T, by float64, looks, comparisons int) (fails, open float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	for range comparisons {
		var made [3][2]results.File
		measure := func(stage, from, to int, names []string) (sides [2]compare.Side, _ error) {
			for i := range sides {
				f := &made[stage][i]
				f.Kind = results.Simulated
				for _, name := range names {
					r := results.Run{Identity: results.Identity{Strategy: name}, Params: results.Params{Label: name},
						Audit: results.Audit{Valid: true}}
					for r.Repetition = from; r.Repetition <= to; r.Repetition++ {
						r.Cost.ClientCPU = 2_500 * (1 + 0.06*rng.ExpFloat64())
						if i == 1 && name == "a" {
							r.Cost.ClientCPU *= by
						}
						f.Runs = append(f.Runs, r)
					}
				}
				sides[i] = compare.Side{Name: "side", File: f}
			}
			return sides, nil
		}
		c, err := compare.Staged(compare.Options{Paired: true}, 6, looks, []string{"a", "b", "c", "d"}, measure)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Failed()) > 0 {
			fails += 1 / float64(comparisons)
		}
		if len(c.Of(compare.Inconclusive)) > 0 {
			open += 1 / float64(comparisons)
		}
	}
	return fails, open
}
