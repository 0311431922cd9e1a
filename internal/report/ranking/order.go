package ranking

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
)

func rank(group Group) int { return slices.Index(Groups(), group) }

// Level is the significance at which one look at the rounds puts two strategies in order: six
// rounds, the fewest behind a timing, reach it if all agree. A measurement looks at most twice:
// after [FirstLook] rounds, and after [LastLook] or those for which there was time.
const (
	Level     = 0.032
	FirstLook = 10
	LastLook  = 20
)

// Sort puts strategies in the order of [Groups], those that do not enforce by how much they
// leak, and those of the other groups by speed if byTime is set. Strategies that the paired
// rounds cannot tell apart share a place: among them
// those whose promise survives more faults come first, then those that send fewer commands
// and statements per decision, down to one: where callers share a command, a lost reply affects all of them.
func Sort(all []Strategy, byTime bool) {
	slices.SortStableFunc(all, func(a, b Strategy) int { return rank(a.Group) - rank(b.Group) })
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].Group == all[from].Group {
			to++
		}
		if all[from].Group == Fails {
			sortByDamage(all[from:to])
		} else {
			sortGroup(all[from:to], byTime)
		}
		from = to
	}
}

// sortByDamage puts those that do not enforce in the order of what they did wrong, and not
// of their speed.
func sortByDamage(all []Strategy) {
	damage := func(a, b Strategy) int {
		return cmp.Or(cmp.Compare(a.Judged.Leak.PctOfLimit, b.Judged.Leak.PctOfLimit),
			cmp.Compare(a.Judged.FalseRejects.PctOfValid, b.Judged.FalseRejects.PctOfValid))
	}
	slices.SortStableFunc(all, func(a, b Strategy) int { return cmp.Or(damage(a, b), strings.Compare(a.Label, b.Label)) })
	for i := range all {
		all[i].Place = i + 1
		if i > 0 && damage(all[i-1], all[i]) == 0 {
			all[i].Place = all[i-1].Place
		}
	}
}

// sortGroup finds one place after the other: that of the fastest of those left, which it
// shares with all that cannot be told apart from it. The fastest is the one with the lowest
// p99, unless another one can be told to be faster.
func sortGroup(left []Strategy, byTime bool) {
	for place := 1; len(left) > 0; place++ {
		n := len(left)
		if byTime {
			slices.SortStableFunc(left, func(a, b Strategy) int { return cmp.Compare(speed(a.Summary), speed(b.Summary)) })
			leader := left[0].Summary
			for i := range left {
				if slower(leader, left[i].Summary) > 0 { // by the median, if not by p99
					leader = left[i].Summary
				}
			}
			slices.SortStableFunc(left, func(a, b Strategy) int { return slower(a.Summary, leader) - slower(b.Summary, leader) })
			n = slices.IndexFunc(left, func(strategy Strategy) bool { return slower(strategy.Summary, leader) > 0 })
			if n < 0 {
				n = len(left)
			}
		}
		slices.SortStableFunc(left[:n], func(a, b Strategy) int {
			return cmp.Or(cmp.Compare(b.Survives, a.Survives), cmp.Compare(commands(&a), commands(&b)),
				compareShared(&a, &b), strings.Compare(a.Label, b.Label))
		})
		for i := range left[:n] {
			left[i].Place = place
		}
		left = left[n:]
	}
}

// commands and statements per decision, the mean of a whole run, and at least one.
func commands(strategy *Strategy) float64 {
	return max(1, math.Round(strategy.Summary.Cost.PerDecision()))
}

// SharesCommands reports whether most decisions share a command with others, or need none.
func (s *Strategy) SharesCommands() bool { return s.Summary.Cost.PerDecision() < 0.5 }

// compareShared puts strategies that share no commands first.
func compareShared(a, b *Strategy) int {
	switch {
	case a.SharesCommands() == b.SharesCommands():
		return 0
	case a.SharesCommands():
		return 1
	}
	return -1
}

// open reports whether strategies are compared by latency at a common rate.
// Otherwise it is throughput.
func open(summary *results.Summary) bool { return summary.AtRate().Params.Loop == codes.OpenLoop }

// speed is a cost by which the fastest of a group is found: those that cannot keep up with
// the rate come last, and those without a figure before them.
func speed(summary *results.Summary) float64 {
	r := summary.AtRate()
	switch {
	case !open(summary) && summary.Throughput.Rounds > 0:
		return 1 / max(summary.Throughput.Value, math.SmallestNonzeroFloat64)
	case !open(summary):
		return math.MaxFloat64
	case summary.Overloaded():
		return math.Inf(1)
	case r.Latency().P99.Shown():
		return r.Latency().P99.Value
	}
	return math.MaxFloat64
}

// slower is 1 if s is slower than the leader in their common rounds, and 0 if the two
// cannot be told apart: by p99, and if that does not tell, by the median.
func slower(s, leader *results.Summary) int {
	summary := s.AtRate()
	b := leader.AtRate()
	if !open(s) || !open(leader) {
		return max(0, leader.Compare(s, func(timing results.Timing) float64 { return timing.PerS }).Ordered(Level))
	}
	if saturated := always(summary) - always(b); saturated != 0 && min(summary.Saturated, b.Saturated) == 0 {
		return max(0, saturated)
	}
	if summary.Params.RatePerS != b.Params.RatePerS { // each at the highest that holds
		return max(0, cmp.Compare(b.Params.RatePerS, summary.Params.RatePerS))
	}
	order := summary.Compare(b, func(timing results.Timing) float64 { return timing.P99 }).Ordered(Level)
	if order == 0 {
		order = summary.Compare(b, func(timing results.Timing) float64 { return timing.P50 }).Ordered(Level)
	}
	return max(0, order)
}

// always is 1 if the strategy could not keep up with the rate in any round.
func always(summary *results.Summary) int {
	if summary.Saturated > 0 && summary.Saturated == summary.Timed {
		return 1
	}
	return 0
}

// Cheapest is the first strategy in order that enforces the policy, or nil if none does. Those that count per process
// or send no command, and those that declare no bound, are taken only if there is no other. Those that do not meet a
// condition are never taken.
func (s *Setting) Cheapest() *Strategy {
	var first *Strategy
	best := math.MaxInt
	for i := range s.Strategies {
		strategy := &s.Strategies[i]
		if strategy.Group != Enforces || s.Unmet(strategy) != nil {
			continue
		}
		second := 0
		if strategy.PerProcess || strategy.Summary.Cost.PerDecision() == 0 {
			second += 2
		}
		if !strategy.Declares {
			second++
		}
		if second < best {
			first = strategy
			best = second
		}
	}
	return first
}

// Unmet is the condition that a strategy does not meet, if the run ruled it out for one, or nil.
func (s *Setting) Unmet(strategy *Strategy) *results.Considered {
	return s.considered(strategy, codes.StageRequirement)
}

// WhileAway is what a strategy does while Redis is away, if the run tried that and a reader must know of it, or nil.
func (s *Setting) WhileAway(strategy *Strategy) *results.Considered {
	return s.considered(strategy, codes.StageOutage)
}

// considered is what a stage says of a strategy, or nil.
func (s *Setting) considered(strategy *Strategy, stage codes.Stage) *results.Considered {
	if s.file == nil { // it was not made from a record
		return nil
	}
	for i := range s.file.Considered {
		considered := &s.file.Considered[i]
		if considered.Strategy == strategy.Label && considered.Stage == stage {
			return considered
		}
	}
	return nil
}

// Tied are the strategies that cannot be told apart from strategy in speed: they share its group
// and place.
func (s *Setting) Tied(strategy *Strategy) (out []*Strategy) {
	for i := range s.Strategies {
		if y := &s.Strategies[i]; y.Label != strategy.Label && y.Group == strategy.Group && y.Place == strategy.Place {
			out = append(out, y)
		}
	}
	return out
}

// Decided reports whether more rounds could tell nothing more: every strategy that may be
// chosen has a place of its own, and no verdict on a guarantee is open.
func (s *Setting) Decided() bool {
	for i := range s.Strategies {
		strategy := &s.Strategies[i]
		if strategy.Group != Enforces && strategy.Group != Bounded && strategy.Group != Undecided {
			continue
		}
		if strategy.Group == Undecided || strategy.Summary.Verdict == results.Undecided || s.ByTime &&
			len(s.Tied(strategy)) > 0 {
			return false
		}
	}
	return true
}
