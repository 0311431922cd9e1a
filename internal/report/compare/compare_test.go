package compare_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// made is a record without its histograms, as it is stored.
func made(rounds int, strategies ...fixture.Strategy) []byte {
	f := fixture.New(rounds, strategies...)
	for i := range f.Runs {
		f.Runs[i].Service.Histogram = ""
	}
	b, err := json.Marshal(&f)
	if err != nil {
		panic(err)
	}
	return b
}

var (
	ten = sync.OnceValue(func() []byte { return made(10, fixture.Strategies...) })
	one = sync.OnceValue(func() []byte { return made(10, fixture.Strategies[1]) })
)

// record is a copy of its own.
func record(stored []byte) *results.File {
	var f results.File
	if err := json.Unmarshal(stored, &f); err != nil {
		panic(err)
	}
	return &f
}

// measured are ten rounds of ten strategies whose speed varies by 2 % from seed to seed.
// Their clauses are as their strategies declare them.
func measured(seed uint64) *results.File {
	f := record(ten())
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range f.Runs {
		r := &f.Runs[i]
		r.ThroughputPerS = r.ReferencePerS * 0.5 * math.Exp(0.02*rng.NormFloat64())
		if r.Strategy == "incr-expire-atomic" || r.Strategy == "lua-reserve" {
			r.Guarantee = append(r.Guarantee,
				results.Clause{Property: string(quota.PropertyFalseReject), Formula: "0", Verdict: results.Kept})
		}
		if r.Strategy == "pg-check" {
			r.Guarantee[0].Bound = 49
			r.Guarantee[0].Verdict = results.Kept
		}
	}
	return f
}

func simulated() *results.File {
	f := record(ten())
	f.Runs = f.Runs[:len(fixture.Strategies)]
	f.Kind = results.Simulated
	f.Provenance = results.Provenance{}
	for i := range f.Runs {
		f.Runs[i].Guarantee = nil
		f.Runs[i].Placement = nil
	}
	return f
}

func files(t *testing.T, base, head *results.File, o compare.Options) *compare.Comparison {
	t.Helper()
	c, err := compare.Compare(compare.Side{Name: "base", File: base}, compare.Side{Name: "head", File: head}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// of returns the runs of a strategy.
func of(f *results.File, strategy string) (out []*results.Run) {
	for i := range f.Runs {
		if f.Runs[i].Strategy == strategy {
			out = append(out, &f.Runs[i])
		}
	}
	return out
}

// failing are what fails, as "strategy figure".
func failing(c *compare.Comparison) (out []string) {
	for _, r := range c.Failed() {
		out = append(out, r.Strategy+" "+r.Name())
	}
	return out
}

// TestPlantedRegressions plants what a change of code can make worse. Exactly that fails.
func TestPlantedRegressions(t *testing.T) {
	for _, c := range []struct {
		name  string
		base  *results.File
		plant func(*results.File)
		want  []string
	}{
		{"nothing", measured(1), func(*results.File) {}, nil},
		{"one unit leaked in one round", measured(1), func(f *results.File) {
			of(f, "lua-reserve")[6].Leak.Units++
		}, []string{"lua-reserve leak"}},
		{"one false reject", measured(1), func(f *results.File) {
			of(f, "incr-expire-atomic")[2].FalseRejects.Count++
		}, []string{"incr-expire-atomic false-rejects"}},
		{"a counter that drifts", measured(1), func(f *results.File) {
			of(f, "lua-reserve")[3].Drift.Tiers[0].Units = -1
		}, []string{"lua-reserve drift"}},
		{"a broken clause", measured(1), func(f *results.File) {
			g := &of(f, "pg-check")[4].Guarantee[0]
			g.Certain = 50
			g.Verdict = results.Broken
		}, []string{"pg-check violations of the leak guarantee"}},
		{"one command per decision", measured(1), func(f *results.File) {
			of(f, "lua-reserve")[0].Cost.Probe.Admitted.Commands++
		}, []string{"lua-reserve commands of a later admission"}},
		{"more bytes", measured(1), func(f *results.File) {
			of(f, "lua-reserve")[0].Cost.Probe.First.Bytes += 16
		}, []string{"lua-reserve bytes of the first decision"}},
		{"20 % slower", measured(1), func(f *results.File) {
			for _, r := range of(f, "three-tier") {
				r.ThroughputPerS /= 1.2
			}
		}, []string{"three-tier throughput"}},
		{"a racy leak that doubles", measured(1), func(f *results.File) {
			for _, r := range of(f, "three-tier") {
				r.Leak.PctOfOverQuota *= 2
			}
		}, []string{"three-tier leak"}},
		{"a round that is invalid", measured(1), func(f *results.File) {
			of(f, "incr-expire")[5].Audit.Discard("history-overflow", codes.DiscardsCorrectness, "it was full")
		}, []string{"incr-expire validity"}},
		{"simulated: one unit leaked", simulated(), func(f *results.File) {
			of(f, "check-then-set")[0].Leak.Units++
		}, []string{"check-then-set leak"}},
		{"simulated: one false reject", simulated(), func(f *results.File) {
			of(f, "exact")[0].FalseRejects.Count++
		}, []string{"exact false-rejects"}},
		{"simulated: one command", simulated(), func(f *results.File) {
			of(f, "exact")[0].Cost.Commands += 1e-6
		}, []string{"exact commands of a decision"}},
		{"simulated: drift", simulated(), func(f *results.File) {
			of(f, "lua-reserve")[0].Drift.Tiers[0].Total++
		}, []string{"lua-reserve drift of all readings of redis at rest"}},
	} {
		seed := uint64(2)
		head := simulated()
		if c.base.Kind == results.Measured {
			head = measured(seed)
		}
		c.plant(head)
		got := files(t, c.base, head, compare.Options{})
		if !slices.Equal(failing(got), c.want) {
			t.Errorf("%s: %q fails, want %q", c.name, failing(got), c.want)
		}
		if got.Passes() != (c.want == nil) {
			t.Errorf("%s: passes: %v", c.name, got.Passes())
		}
		// The other way round it is better, and nothing fails but what is invalid.
		if back := failing(files(t, head, c.base, compare.Options{})); len(back) > 0 &&
			!strings.HasSuffix(back[0], "validity") {
			t.Errorf("%s: the other way round %q fails", c.name, back)
		}
	}
}

// TestUnchangedPairsPass compares 100 records with themselves, and some with another of
// unchanged code.
func TestUnchangedPairsPass(t *testing.T) {
	few := func(seed uint64) *results.File {
		f := measured(seed)
		f.Runs = slices.DeleteFunc(f.Runs, func(r results.Run) bool {
			return r.Strategy != "incr-expire-atomic" && r.Strategy != "three-tier"
		})
		return f
	}
	base := few(0)
	for seed := range uint64(100) {
		head := few(seed)
		if c := files(t, head, head, compare.Options{}); !c.Passes() {
			t.Errorf("seed %d, itself: %q", seed, failing(c))
		}
		if seed%4 > 0 {
			continue
		}
		if c := files(t, base, head, compare.Options{}); !c.Passes() {
			t.Errorf("seed %d, another: %q", seed, failing(c))
		}
	}
}

func TestRefused(t *testing.T) {
	change := func(f func(*results.File)) *results.File {
		file := measured(1)
		f(file)
		return file
	}
	for want, head := range map[string]*results.File{
		"head has seed 7": change(func(f *results.File) { f.Seed = 7 }),
		"the store redis differs: process 7.0.15, no snapshots, no AOF in base, process 8.0.0": change(func(f *results.File) {
			s := f.Stores["redis"]
			s.Version = "8.0.0"
			f.Stores["redis"] = s
		}),
		"base is measured and head is simulated": simulated(),
		"incr-expire: asked for otherwise in base: workers 50 and not 7": change(func(f *results.File) {
			for i := range f.Runs {
				f.Runs[i].Params.Workers = 7
			}
		}),
	} {
		_, err := compare.Compare(compare.Side{Name: "base", File: measured(1)}, compare.Side{Name: "head", File: head},
			compare.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := compare.Compare(compare.Side{Name: "a"}, compare.Side{Name: "b"}, compare.Options{}); err == nil {
		t.Error("compared nothing with nothing")
	}
}

// TestUnmatched: what differs is left out, with the reason, and the rest is compared.
func TestUnmatched(t *testing.T) {
	base := measured(1)
	head := measured(2)
	for _, r := range of(head, "exact") {
		r.Params.DurationNS = 5
	}
	for _, r := range of(head, "three-tier") {
		r.Params.Stream = "other"
	}
	head.Runs = slices.DeleteFunc(head.Runs, func(r results.Run) bool {
		return r.Strategy == "decr-literal" || r.Strategy == "redis-hash"
	})
	base.Runs = slices.DeleteFunc(base.Runs, func(r results.Run) bool { return r.Strategy == "unlimited" })
	head.Skipped = append(head.Skipped, results.Skipped{Strategy: "redis-hash", Reason: "it panicked"})
	c := files(t, base, head, compare.Options{})
	want := map[string]string{
		"exact": "asked for otherwise: duration ns unset and not 5", "three-tier": "its requests of round 1 differ",
		"decr-literal": "is not in head",
		"redis-hash":   "took no part in head: it panicked", "unlimited": "is not in base",
	}
	for _, u := range c.Unmatched {
		if !strings.HasPrefix(u.Reason, want[u.Strategy]) {
			t.Errorf("%s: %s", u.Strategy, u.Reason)
		}
		delete(want, u.Strategy)
	}
	if len(want) > 0 || c.Pairs != 5 || !c.Passes() {
		t.Errorf("not named: %v; %d pairs", want, c.Pairs)
	}
	if c := files(t, base, head, compare.Options{Strict: true}); c.Passes() {
		t.Error("a strict comparison passes without five of the strategies")
	}
}

// TestOtherHosts: what depends on the machine is refused, and exact figures are compared.
func TestOtherHosts(t *testing.T) {
	head := measured(2)
	head.Provenance.Host.Name = "bench-2"
	for _, r := range of(head, "three-tier") {
		r.ThroughputPerS /= 2
	}
	of(head, "exact")[1].Leak.Units = 1
	c := files(t, measured(1), head, compare.Options{})
	if got := failing(c); !slices.Equal(got, []string{"exact leak"}) || !strings.Contains(c.TimingsRefused, "bench-2") {
		t.Errorf("%q fails; %s", got, c.TimingsRefused)
	}
	if slices.ContainsFunc(c.Rows, func(r compare.Row) bool { return r.Kind == compare.Sample }) {
		t.Error("a sample was compared")
	}
}

// TestNeverAPassWithoutEvidence: if the rounds cannot tell, the answer is not that
// nothing became worse, and a strict comparison fails.
func TestNeverAPassWithoutEvidence(t *testing.T) {
	one := func() *results.File { return record(one()) }
	scale := func(f *results.File, by func(i int) (throughput, reference float64)) *results.File {
		for i := range f.Runs {
			a, b := by(i)
			f.Runs[i].ThroughputPerS *= a
			f.Runs[i].ReferencePerS *= b
		}
		return f
	}
	for name, c := range map[string]struct {
		head *results.File
		want compare.Verdict
		why  string
	}{
		"few rounds": {func() *results.File {
			f := one()
			f.Runs = f.Runs[:2]
			return f
		}(), compare.Inconclusive, "too few"},
		"noise": {scale(one(), func(i int) (float64, float64) {
			return 1 + 0.6*float64(i%2), 1
		}), compare.Inconclusive, "would not show a worsening"},
		"another machine": {scale(one(), func(int) (float64, float64) {
			return 0.5, 0.8
		}), compare.Inconclusive, "the reference loop itself went from"},
		"no reference": {scale(one(), func(int) (float64, float64) {
			return 0.5, 0
		}), compare.Inconclusive, "no reference loop"},
		"disturbed": {func() *results.File {
			f := scale(one(), func(int) (float64, float64) { return 0.5, 1 })
			for i := range f.Runs {
				f.Runs[i].Audit.Discard("cpu-steal", codes.Disturbs, "stolen")
			}
			return f
		}(), compare.Inconclusive, "the machine was disturbed"},
		"not as planned": {func() *results.File {
			f := one()
			for i := range f.Runs {
				f.Runs[i].Audit.Discard("stood-still", codes.DiscardsRound, "suspended")
			}
			return f
		}(), compare.Discarded, "no round of one side happened as planned"},
		"other cores": {func() *results.File {
			f := one()
			for i := range f.Runs {
				f.Runs[i].Placement = &results.Placement{Mode: codes.PlacedApart}
			}
			return f
		}(), compare.Discarded, "placed otherwise"},
	} {
		base := one()
		for i := range base.Runs {
			base.Runs[i].Placement = &results.Placement{Mode: codes.PlacedShared}
			if name != "other cores" {
				base.Runs[i].Placement = nil
			}
		}
		got := files(t, base, c.head, compare.Options{})
		i := slices.IndexFunc(got.Rows, func(r compare.Row) bool { return r.Figure == compare.Throughput })
		if i < 0 || got.Rows[i].Verdict != c.want || !strings.Contains(got.Rows[i].Detail, c.why) {
			t.Errorf("%s: %+v", name, got.Rows)
		}
		if !got.Passes() || files(t, base, c.head, compare.Options{Strict: true}).Passes() {
			t.Errorf("%s: it should pass unless the comparison is strict", name)
		}
	}
}

func TestTolerances(t *testing.T) {
	head := simulated()
	of(head, "check-then-set")[0].Leak.Units += 3
	leak := of(simulated(), "check-then-set")[0].Leak.Units
	for _, c := range []struct {
		t      compare.Tolerance
		passes bool
	}{
		{compare.Tolerance{}, false}, {compare.Tolerance{By: 2}, false}, {compare.Tolerance{By: 3}, true},
		{compare.Tolerance{By: 300 / float64(leak), Percent: true}, true},
		{compare.Tolerance{By: 299 / float64(leak), Percent: true}, false},
	} {
		got := files(t, simulated(), head, compare.Options{Tolerances: map[string]compare.Tolerance{compare.Leak: c.t}})
		if got.Passes() != c.passes {
			t.Errorf("%v: %q", c.t, failing(got))
		}
	}
}

// TestErrorIsShared: twenty gated timings have a twentieth of the error each.
func TestErrorIsShared(t *testing.T) {
	f := record(one())
	runs := f.Runs
	f.Runs = nil
	for i := range 20 {
		for _, r := range runs {
			r.Params.Label = fmt.Sprint(i)
			f.Runs = append(f.Runs, r)
		}
	}
	for i := range f.Runs {
		f.Runs[i].Guarantee = []results.Clause{{Property: string(quota.PropertyLeak), Formula: "L"}}
		f.Runs[i].Leak = results.Leak{}
	}
	c := files(t, f, f, compare.Options{})
	n := 0
	for _, r := range c.Rows {
		if r.Figure != compare.Throughput {
			continue
		}
		n++
		if math.Abs(r.Test.Alpha-compare.Standard.Alpha/20) > 1e-12 {
			t.Fatalf("%s: alpha %g", r.Strategy, r.Test.Alpha)
		}
	}
	if n != 20 {
		t.Errorf("%d timings", n)
	}
}

// TestPercentiles: p99 is advisory unless it is asked for, and is compared at one rate.
func TestPercentiles(t *testing.T) {
	slower := func(rate float64) *results.File {
		f := record(one())
		for i := range f.Runs {
			r := &f.Runs[i]
			r.Reference = &results.Distribution{P99: 1_000_000}
			p := *r
			p.Params.RatePerS = rate
			p.Service.P99 = int64(1_000_000 * (1 + rate/1000))
			r.Paced = &p
		}
		return f
	}
	base := slower(100)
	head := slower(100)
	for i := range head.Runs {
		head.Runs[i].Paced.Service.P99 *= 2
	}
	find := func(c *compare.Comparison) *compare.Row {
		for i := range c.Rows {
			if c.Rows[i].Figure == "p99" {
				return &c.Rows[i]
			}
		}
		return nil
	}
	c := files(t, base, head, compare.Options{})
	if r := find(c); r == nil || r.Verdict != compare.Worse || !r.Advisory || !c.Passes() {
		t.Errorf("%+v", r)
	}
	upTo := func(percent float64, lenient bool) compare.Options {
		tolerances := map[string]compare.Tolerance{"p99": {By: percent, Percent: true}}
		return compare.Options{Tolerances: tolerances, Lenient: lenient}
	}
	// It is twice as long.
	worse := []string{"incr-expire-atomic p99"}
	for percent, want := range map[float64][]string{20: worse, 90: worse, 110: nil} {
		c = files(t, base, head, upTo(percent, false))
		if got := failing(c); !slices.Equal(got, want) {
			t.Errorf("up to %g %%: %q, want %q", percent, got, want)
		}
	}
	// What could not be compared is no pass, unless that was asked for.
	for _, lenient := range []bool{false, true} {
		c = files(t, base, slower(200), upTo(20, lenient))
		if r := find(c); r == nil || r.Verdict != compare.Discarded || !strings.Contains(r.Detail, "--rate") ||
			c.Passes() != lenient {
			t.Errorf("lenient %t: %+v", lenient, r)
		}
		few := slower(100)
		few.Runs = few.Runs[:2]
		c = files(t, few, few, upTo(20, lenient))
		if r := find(c); r == nil || r.Verdict != compare.Inconclusive || c.Passes() != lenient {
			t.Errorf("few rounds, lenient %t: %+v", lenient, r)
		}
	}
	head.Provenance.Host.Name += "-2"
	c = files(t, base, head, upTo(20, false))
	if r := find(c); r == nil || r.Verdict != compare.Discarded || c.Passes() {
		t.Errorf("on another machine: %+v", r)
	}
}

func ExampleCompare() {
	base := record(one())
	head := record(one())
	head.Runs[0].Leak.Units = 1
	c, err := compare.Compare(compare.Side{Name: "main", File: base}, compare.Side{Name: "branch", File: head},
		compare.Options{})
	if err != nil {
		panic(err)
	}
	for _, r := range c.Failed() {
		fmt.Println(r.Strategy, r.Figure, *r.Base, *r.Head, r.Verdict)
	}
	// Output: incr-expire-atomic leak 0 1 worse
}
