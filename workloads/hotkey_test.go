package workloads

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

func TestHotKeyCrossings(t *testing.T) {
	for _, p := range quota.Policies() {
		s, _ := build(t, "hot-key", Params{Seed: 3, Policy: &p})
		if s.Len() != 0 || Subjects(s) != 0 {
			t.Fatalf("%s: bounded: %d operations, %d subjects", p.Name, s.Len(), Subjects(s))
		}
		n := OpsPerCrossing(s)
		costs := max(1, len(p.Costs))
		largest := int64(1)
		for _, c := range p.Costs {
			largest = max(largest, c)
		}
		var op Op
		for c := range int64(4) {
			var sum int64
			count := map[int64]int64{}
			for i := c * n; i < (c+1)*n; i++ {
				s.At(i, &op)
				if int64(op.Subject) != c {
					t.Fatalf("%s: operation %d is on subject %d, want %d", p.Name, i, op.Subject, c)
				}
				sum += op.Units
				count[op.Units]++
			}
			if sum < 2*p.Limit || sum >= 2*p.Limit+largest*int64(costs) {
				t.Errorf("%s: crossing %d asks for %d units, limit %d", p.Name, c, sum, p.Limit)
			}
			for cost, k := range count {
				if k != n/int64(costs) {
					t.Errorf("%s: crossing %d has %d operations of cost %d, want %d", p.Name, c, k, cost, n/int64(costs))
				}
			}
		}
		if s.Name(0) == s.Name(1) {
			t.Errorf("%s: crossings share the name %s", p.Name, s.Name(0))
		}
	}
}

// TestHotKeyOrder checks that each of the six orders of three costs is as likely
// as the others.
func TestHotKeyOrder(t *testing.T) {
	s, _ := build(t, "hot-key", Params{Seed: 3, Policy: policy(t, "agent-spend")})
	const blocks = 30_000
	orders := map[[3]int64]int{}
	for b := range int64(blocks) {
		var order [3]int64
		for i := range order {
			var op Op
			s.At(3*b+int64(i), &op)
			order[i] = op.Units
		}
		orders[order]++
	}
	if len(orders) != 6 {
		t.Fatalf("%d orders, want 6: %v", len(orders), orders)
	}
	for order, n := range orders {
		closeTo(t, fmt.Sprint(order), float64(n)/blocks, 1./6, blocks)
	}
}

// TestHotKeyOfDistributions checks the two promises that a crossing makes with
// costs of a distribution: it always asks for at least twice the limit, and each
// of its operations by itself is drawn from the distribution.
func TestHotKeyOfDistributions(t *testing.T) {
	testenv.Sequential(t)
	for _, c := range []struct {
		cost  string
		limit int64
		waste float64 // what a crossing may ask for beyond the limit twice, on average
	}{
		{"uniform:1-9", 20, 1.5}, {"uniform:1-2", 1, 2}, {"uniform:90-110", 100_000, 1.1},
		{"lognormal:5:0.5", 1_000, 1.1}, {"lognormal:100:1", 1_000, 20}, {"lognormal:500:1.5", 50_000_000, 2},
	} {
		p := *policy(t, "agent-tokens")
		p.Limit = c.limit
		s, info := build(t, "hot-key", Params{Seed: 2, Policy: &p, Options: given("cost", c.cost)})
		x := s.(*crossings)
		n := OpsPerCrossing(s)
		if sure := n / x.block * x.leastOf(int(x.block)); sure < 2*c.limit {
			t.Errorf("%s: a crossing is only sure to ask for %d units, limit %d", c.cost, sure, c.limit)
		}
		crossings := 200_000/n + 3
		total := int64(0)
		firsts := 0
		var below [4]int // operations below the quartiles
		for k := range crossings {
			var sum int64
			for i := k * n; i < (k+1)*n; i++ {
				var op Op
				s.At(i, &op)
				if int64(op.Subject) != k {
					t.Fatalf("%s: operation %d is on subject %d, want %d", c.cost, i, op.Subject, k)
				}
				sum += op.Units
				for q := range below {
					if op.Units < x.draw(uint64(q)<<62) {
						below[q]++
					}
				}
				if i == k*n && op.Units > x.draw(1<<63) {
					firsts++
				}
			}
			if sum < 2*c.limit {
				t.Fatalf("%s: crossing %d asks for %d units, limit %d", c.cost, k, sum, c.limit)
			}
			total += sum
		}
		if mean := float64(total) / float64(crossings); mean > 2*c.waste*float64(c.limit) {
			t.Errorf("%s: a crossing asks for %.0f units on average, limit %d", c.cost, mean, c.limit)
		}
		for q := 1; q < 4; q++ { // costs are whole, so quartiles are not exact: compare with the quantile function
			want := float64(shareBelow(&x.prices, x.draw(uint64(q)<<62)))
			closeTo(t, fmt.Sprintf("%s: below quartile %d", c.cost, q), float64(below[q])/float64(crossings*n), want,
				int(crossings*n))
		}
		want := 1 - shareBelow(&x.prices, x.draw(1<<63)+1)
		closeTo(t, c.cost+": a crossing's first above the median", float64(firsts)/float64(crossings), want, int(crossings))
		if want := fmt.Sprintf("sends %d requests for ", n); len(info.Notes) != 2 || !strings.Contains(info.Notes[0], want) {
			t.Errorf("%s: notes %q", c.cost, info.Notes)
		}
	}
}

// shareBelow is the share of costs below c, by bisection of the quantile function.
func shareBelow(p *prices, c int64) float64 {
	lo := uint64(0)
	hi := uint64(math.MaxUint64)
	for lo < hi {
		if mid := lo + (hi-lo)/2; p.draw(mid) >= c {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return float64(lo) / (1 << 64)
}

func TestShuffledRange(t *testing.T) {
	order := newStream(3, seed.Order)
	for _, n := range []uint64{1, 2, 3, 7, 64, 1000, 1024} {
		for block := range uint64(20) {
			seen := make([]bool, n)
			for pos := range n {
				r := shuffledRange(order, block, pos, n)
				if r >= n || seen[r] {
					t.Fatalf("n %d, block %d: %d comes twice or is too large", n, block, r)
				}
				seen[r] = true
			}
		}
	}
	const blocks = 30_000
	orders := map[[4]uint64]int{}
	for b := range uint64(blocks) {
		orders[[4]uint64{shuffledRange(order, b, 0, 4), shuffledRange(order, b, 1, 4), shuffledRange(order, b, 2, 4),
			shuffledRange(order, b, 3, 4)}]++
	}
	if len(orders) != 24 {
		t.Fatalf("%d orders of 4, want 24", len(orders))
	}
	for o, n := range orders {
		closeTo(t, fmt.Sprint(o), float64(n)/blocks, 1./24, blocks)
	}
	// Neighbours of a large block must not stay neighbours.
	near := 0
	for b := range uint64(blocks) {
		d, borrow := bits.Sub64(shuffledRange(order, b, 501, 1024), shuffledRange(order, b, 500, 1024), 0)
		if d == 1 && borrow == 0 {
			near++
		}
	}
	closeTo(t, "neighbours that follow each other", float64(near)/blocks, 1./1024, blocks)
}

func TestHotKeyFill(t *testing.T) {
	p := policy(t, "user-links")
	s, info := build(t, "hot-key", Params{Policy: p, Options: given("fill", 0.5)})
	if Initial(s, 0) != 10 || Initial(s, 123_456) != 10 || OpsPerCrossing(s) != 40 {
		t.Errorf("starts with %d, %d operations", Initial(s, 0), OpsPerCrossing(s))
	}
	if n := info.Notes[len(info.Notes)-1]; n != "every subject starts with 10 of 20 links used" {
		t.Errorf("note %q", n)
	}
}
