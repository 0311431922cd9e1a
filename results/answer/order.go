package answer

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/results"
)

func rank(g Group) int { return slices.Index(Groups(), g) }

// sortByGroup puts strategies in the order of [Groups], and in each the faster one
// first.
func sortByGroup(all []Strategy) {
	slices.SortStableFunc(all, func(a, b Strategy) int {
		if d := rank(a.Group) - rank(b.Group); d != 0 {
			return d
		}
		return cmp.Or(faster(a.Summary, b.Summary), strings.Compare(a.Label, b.Label))
	})
}

// faster compares by what callers wait for at the common rate of an open loop, first
// where both keep up with it, and by throughput where there is only a closed loop.
func faster(a, b *results.Summary) int {
	x, y := a.AtRate(), b.AtRate()
	if x.Params.Loop != results.OpenLoop || y.Params.Loop != results.OpenLoop {
		return cmp.Compare(b.Throughput.Value, a.Throughput.Value)
	}
	return cmp.Or(cmp.Compare(min(x.Saturated, 1), min(y.Saturated, 1)), cmp.Compare(x.Latency().P99.Value, y.Latency().P99.Value))
}

// Cheapest is the strategy that enforces the policy at the least cost, or nil where
// none does. Those that count per process or send no command, and those that declare no bound, are taken
// only where there is no other. Of those whose p99 cannot be told from the lowest one,
// since their intervals over rounds overlap or the machine may have made it what it is,
// it is the one with the fewest commands and statements per decision; among equals the
// one with the lower p99.
func (s *Setting) Cheapest() *Strategy {
	var candidates []*Strategy
	best := math.MaxInt
	for i := range s.Strategies {
		x := &s.Strategies[i]
		if x.Group != Enforces {
			continue
		}
		second := 0
		if x.PerProcess || PerDecision(x.Summary) == 0 {
			second += 2
		}
		if !x.Declares {
			second++
		}
		if second < best {
			best, candidates = second, nil
		}
		if second == best {
			candidates = append(candidates, x)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	keepsUp := slices.DeleteFunc(slices.Clone(candidates), func(x *Strategy) bool { return x.Summary.AtRate().Saturated > 0 })
	if len(keepsUp) > 0 {
		candidates = keepsUp
	}
	p99 := func(x *Strategy) results.Figure { return x.Summary.Latency().P99.Figure }
	lowest := p99(slices.MinFunc(candidates, func(a, b *Strategy) int { return cmp.Compare(p99(a).Value, p99(b).Value) }))
	candidates = slices.DeleteFunc(candidates, func(x *Strategy) bool {
		inDoubt := !x.Summary.AtRate().ResponseCounts || x.Summary.Latency().P99.Struck
		return !inDoubt && p99(x).Lo > lowest.Hi
	})
	return slices.MinFunc(candidates, func(a, b *Strategy) int {
		return cmp.Or(cmp.Compare(math.Round(PerDecision(a.Summary)), math.Round(PerDecision(b.Summary))), cmp.Compare(p99(a).Value, p99(b).Value), strings.Compare(a.Label, b.Label))
	})
}

// PerDecision is how many commands and statements a decision takes, the mean of a
// whole run.
func PerDecision(s *results.Summary) float64 { return s.Cost.Commands + s.Cost.SQL + s.Cost.ModelSQL }
