package workloads

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/seed"
)

// mass is the exact probability of every subject of a table, to 2^-64.
func mass(a alias) []float64 {
	m := make([]float64, len(a))
	for i, c := range a {
		own := float64(c.cut) / (1 << 64)
		m[i] += own / float64(len(a))
		m[c.other] += (1 - own) / float64(len(a))
	}
	return m
}

func TestAliasIsExact(t *testing.T) {
	for _, c := range []struct {
		n int
		s float64
	}{{1, 1}, {2, 1}, {3, 0}, {7, 0.5}, {100, 1}, {1_000, 2.5}, {10_000, 1}} {
		weights := zipfWeights(c.n, c.s)
		var sum float64
		for r := range c.n {
			sum += math.Pow(float64(r+1), -c.s)
		}
		for i, got := range mass(newAlias(weights)) {
			// Weights are rounded to 2^-40 of the largest.
			want := math.Pow(float64(i+1), -c.s) / sum
			if math.Abs(got-want) > 2e-12 {
				t.Fatalf("n %d s %v: subject %d has %v, want %v", c.n, c.s, i, got, want)
			}
		}
	}
}

func TestAliasDrawsByColumn(t *testing.T) {
	a := newAlias([]uint64{3, 1}) // columns: 0 whole; 1 half its own, half 0's
	for x, want := range map[uint64]uint32{
		0: 0, 1<<63 - 1: 0, // column 0
		1 << 63: 1, 1<<63 + 1<<62 - 1: 1, // the lower half of column 1
		1<<63 + 1<<62: 0, math.MaxUint64: 0,
	} {
		if got := a.draw(x); got != want {
			t.Errorf("draw(%#x) = %d, want %d", x, got, want)
		}
	}
}

func TestSteadyPopularity(t *testing.T) {
	const n = 400_000
	s, _ := build(t, "steady", Params{Seed: 11, Policy: policy(t, "agent-spend")})
	if Subjects(s) != 10_000 {
		t.Fatalf("%d subjects", Subjects(s))
	}
	counts := make([]int, Subjects(s))
	costs := map[int64]int{}
	over := 0
	var op Op
	for i := range int64(n) {
		s.At(i, &op)
		counts[op.Subject]++
		costs[op.Units]++
		if Initial(s, op.Subject) > 0 {
			over++
		}
	}
	harmonic := 0.0
	for r := range counts {
		harmonic += 1 / float64(r+1)
	}
	for _, r := range []int{0, 1, 2, 9, 99} {
		closeTo(t, s.Name(uint32(r)), float64(counts[r])/n, 1/float64(r+1)/harmonic, n)
	}
	tail := 0
	for _, c := range counts[1000:] {
		tail += c
	}
	want := 0.0
	for r := 1000; r < len(counts); r++ {
		want += 1 / float64(r+1) / harmonic
	}
	closeTo(t, "the tail", float64(tail)/n, want, n)
	closeTo(t, "checks over quota", float64(over)/n, 0.05, n)
	for _, c := range []int64{1, 5, 25} {
		closeTo(t, "cost", float64(costs[c])/n, 1./3, n)
	}
}

func TestOverQuotaShare(t *testing.T) {
	weights := zipfWeights(10_000, 1)
	var sum uint64
	for _, w := range weights {
		sum += w
	}
	for _, share := range []float64{0, 0.001, 0.05, 0.4, 0.5, 0.95, 1} {
		var got uint64
		full := chooseFull(weights, share, newStream(5, seed.Full))
		for i, f := range full {
			if !f {
				continue
			}
			got += weights[i]
			if share < 0.45 && i < 100 { // what the other 99 % of subjects can give
				t.Errorf("share %v: subject %d, one of the hottest, is full", share, i)
			}
		}
		if d := float64(got)/float64(sum) - share; math.Abs(d) > 2e-5 {
			t.Errorf("share %v: the full ones have %v more", share, d)
		}
	}
	// A few subjects cannot give every share; the full ones never exceed it.
	for _, c := range []struct {
		share float64
		want  []bool
	}{
		{0.05, []bool{false}}, {1, []bool{true}},
		{0.5, []bool{false, true}}, {0.7, []bool{true, false}}, {0.3, []bool{false, false}},
	} {
		if got := chooseFull(zipfWeights(len(c.want), 1), c.share, newStream(5, seed.Full)); !slices.Equal(got, c.want) {
			t.Errorf("share %v of %d subjects: full %v, want %v", c.share, len(got), got, c.want)
		}
	}
	a := chooseFull(weights, 0.05, newStream(5, seed.Full))
	b := chooseFull(weights, 0.05, newStream(6, seed.Full))
	same := 0
	for i := range a {
		if a[i] && b[i] {
			same++
		}
	}
	if same > 250 { // about 5 % to 10 % of either by chance
		t.Errorf("%d subjects are full with both seeds", same)
	}
}

func TestInitialIsTheLimit(t *testing.T) {
	p := policy(t, "user-links")
	s, info := build(t, "steady", Params{Policy: p, Options: given("over-quota", 1.0, "subjects", 50)})
	for i := range uint32(50) {
		if Initial(s, i) != p.Limit {
			t.Errorf("subject %d starts with %d", i, Initial(s, i))
		}
	}
	if !strings.HasPrefix(info.Notes[1], "50 of 50 subjects, with 100.0 % of the checks,") {
		t.Errorf("note %q", info.Notes[0])
	}
}

// TestSteadyWarns compares the note's expectation with a count.
func TestSteadyWarns(t *testing.T) {
	p := policy(t, "user-links")
	const n = 100_000
	for _, c := range []struct {
		fill float64
		want string
		over int // counted, to 1 %
	}{
		{0, "about 64 % of 100000 checks over quota", 63_500},
		{0.5, "about 70 % of 100000 checks over quota", 70_200},
	} {
		s, info := build(t, "steady", Params{Seed: 1, Policy: p, Requests: n, Options: given("fill", c.fill)})
		used := make([]int64, Subjects(s))
		over := 0
		var op Op
		for i := range s.Len() {
			s.At(i, &op)
			if Initial(s, op.Subject)+used[op.Subject]+op.Units > p.Limit {
				over++
			} else {
				used[op.Subject] += op.Units
			}
		}
		if over < c.over-1_000 || over > c.over+1_000 {
			t.Errorf("fill %v: %d of %d checks are over quota, want %d", c.fill, over, n, c.over)
		}
		if !strings.Contains(info.Notes[len(info.Notes)-1], c.want) {
			t.Errorf("fill %v: counted %d; notes %q", c.fill, over, info.Notes)
		}
	}
	for fill, unneeded := range map[float64]string{0: "link-hits", 1: "user-links"} {
		_, info := build(t, "steady", Params{Policy: policy(t, unneeded), Requests: n, Options: given("fill", fill)})
		if strings.Contains(strings.Join(info.Notes, "\n"), "expect") {
			t.Errorf("a warning without reason: %q", info.Notes)
		}
	}
}
