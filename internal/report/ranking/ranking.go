// Package ranking says what a record means for somebody who must choose: which
// strategies enforce the policy, the cheapest of them, what is wrong with the others,
// and what was not tested. It is computed from the record alone. All that ranks or
// colours strategies goes by it, so tables, plots and pages agree.
package ranking

import (
	"slices"

	"github.com/quotabench/quotabench/results"
)

// Group is what a strategy is good for under one policy and load.
type Group string

// The groups, the best first. docs/reading-a-report.md has the rules.
const (
	// Enforces: no leak and no false reject was found, no declared guarantee is
	// broken, and none allows for either.
	Enforces Group = "enforces"
	// Bounded: it leaks or rejects wrongly, or may do so, within what it declares, and the
	// declared leak is at most [MaxBound] of the limit.
	Bounded Group = "enforces with a bound"
	// Undecided: many requests timed out while the machine was busy, and nothing else speaks
	// against it.
	Undecided Group = "undecided"
	// Loose: no leak was found, and the declared one is larger.
	Loose Group = "bound too large"
	// Fails: it leaks or rejects wrongly beyond what it declares, or declares nothing, or
	// leaks within a declared bound that is too large, or a search broke it without any fault.
	Fails Group = "does not enforce"
	// Unusable: it rejects nearly all that it must admit, many requests end in errors,
	// or its figures do not count.
	Unusable Group = "unusable"
	// Baseline marks the floor or the ceiling of the measurement, and is no candidate.
	Baseline Group = "baseline"
)

// Groups returns all groups in the order of reports.
func Groups() []Group { return []Group{Enforces, Bounded, Undecided, Loose, Fails, Unusable, Baseline} }

// Verdict is the group in one word, for columns and badges.
func (g Group) Verdict() string { return verdicts[g] }

var verdicts = map[Group]string{
	Enforces: "PASS", Bounded: "BOUNDED", Undecided: "UNDECIDED", Loose: "BOUNDED", Fails: "FAIL", Unusable: "ERROR",
	Baseline: "BASELINE",
}

// Strategy is what the record says of one strategy in one setting.
type Strategy struct {
	// Label is the strategy as the command line takes it, options included.
	Label string
	// Group that it belongs to.
	Group Group
	// Reason is one clause with figures, e.g. "over-admits 84.8 % of the limit".
	Reason string
	// PerProcess is set if each instance counts for itself.
	PerProcess bool
	// Declares is set if a bound on its leak was declared and judged.
	Declares bool
	// Survives counts the faults that the strictest bound on its leak tolerates.
	Survives int
	// Conditions are what its promise depends on, and what drift was measured, e.g. "while no
	// sync round has run", "it promises nothing under crash or eviction". They are given for
	// strategies that enforce the policy, with a bound or without, with what searches found of
	// their default options: "with eviction, a search found a leak (7 steps)".
	Conditions []string
	// Known are findings of searches, of strategies that have conditions.
	Known []Known
	// Broken is the first promise of the design record that the run broke, if any.
	Broken string
	// Place within the group, from 1, by speed. Strategies that cannot be told apart share
	// one.
	Place int
	// Summary holds all figures.
	Summary *results.Summary
	// Judged is the loop that the group follows from: Summary, or the open loop next
	// to it.
	Judged *results.Summary
}

// Leaks reports whether it is not bounded enough because of what it admitted.
func (s *Strategy) Leaks() bool { return s.Group == Fails && s.Judged.Leak.Units > 0 }

// Rejects reports whether it is not good enough because of what it rejected.
func (s *Strategy) Rejects() bool {
	return (s.Group == Fails || s.Group == Unusable) && !s.Leaks() && s.Judged.Counts() && s.Judged.FalseRejects.Count > 0
}

// Setting is what may stand in one table: strategies under the same policy, workload
// and load.
type Setting struct {
	// Strategies in the order of [Sort].
	Strategies []Strategy
	// Untested is what the setting leaves open, with the commands that test it.
	Untested []Untested

	// ByTime is set if timings put strategies in order: not in a simulation, whose latencies
	// are modelled, and not on stores that stand in for real ones.
	ByTime bool

	file *results.File
}

// Of answers from a record: its settings in the order in which they first appear. It keeps no
// part of the file that a caller may change later: summaries are copied.
func Of(file results.File) (settings []Setting) {
	for _, group := range file.Groups() {
		var all []Strategy
		for i := range group {
			all = append(all, Classify(&group[i]))
		}
		settings = append(settings, Among(&file, all))
	}
	return settings
}

// Among is a setting of strategies to choose from, e.g. of the points of a sweep.
func Among(file *results.File, all []Strategy) Setting {
	setting := Setting{Strategies: all, ByTime: ByTime(file), file: file}
	Sort(setting.Strategies, setting.ByTime)
	setting.Untested = setting.untested()
	return setting
}

// ByTime reports whether the timings of a file put strategies in order. A model of PostgreSQL that no strategy asked
// does not matter.
func ByTime(file *results.File) bool {
	modelled := slices.ContainsFunc(file.Runs, func(run results.Run) bool { return run.Cost.ModelSQL > 0 })
	for _, store := range file.Stores {
		if store.Kind == "embedded" || store.Kind == "model" && modelled {
			return false
		}
	}
	return file.Kind != results.Simulated
}

// Summaries returns those of all strategies in their order.
func (s *Setting) Summaries() []results.Summary {
	out := make([]results.Summary, len(s.Strategies))
	for i, strategy := range s.Strategies {
		out[i] = *strategy.Summary
	}
	return out
}

// HasCandidates reports whether there is anything to choose from: not only baselines.
func (s *Setting) HasCandidates() bool {
	return slices.ContainsFunc(s.Strategies, func(strategy Strategy) bool { return strategy.Group != Baseline })
}
