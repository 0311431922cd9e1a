package results

import (
	"cmp"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/quota"
)

// Summarise condenses runs into one summary per strategy and setting, in the
// order in which they first appear. Runs with the same [Run.Key] are rounds of
// one measurement.
func Summarise(runs []Run) []Summary {
	var rounds, settings collect.By[string, *Run]
	for i := range runs {
		settings.Add(runs[i].setting(), &runs[i])
		rounds.Add(runs[i].Key(), &runs[i])
	}
	out := make([]Summary, len(rounds.Keys))
	measured := new(byte)
	for i, k := range rounds.Keys {
		out[i] = summariseGroup(k, rounds.Of[k], settings.Of[rounds.Of[k][0].setting()], nil)
		for summary := &out[i]; summary != nil; summary = summary.Paced {
			summary.measured = measured
		}
	}
	return out
}

// paced are the runs' open loops at the common rate.
func paced(runs []*Run) []*Run {
	var out []*Run
	for _, run := range runs {
		if run.Paced != nil {
			out = append(out, run.Paced)
		}
	}
	return out
}

// summariseGroup condenses the rounds of one strategy. All are the runs of all strategies
// in the same setting. Busy are rounds whose other loops the machine disturbed.
func summariseGroup(key string, runs, all []*Run, busy map[int]bool) Summary {
	first := runs[0]
	disturbed := disturbedRounds(all)
	summary := Summary{
		Key: key, Label: first.Params.Label, Identity: first.Identity, Policy: first.Policy, Workload: first.Workload,
		Params: first.Params, setting: first.setting(),
		Placement: first.Placement, Rounds: len(runs),
	}
	summary.Label = cmp.Or(summary.Label, summary.Strategy)
	summary.audit(runs)
	var valid []*Run
	for _, run := range runs {
		if run.Audit.Valid {
			valid = append(valid, run)
		}
	}
	summary.Invalid = len(runs) - len(valid)
	summary.correctness(valid)
	for _, run := range valid {
		late := disturbed[run.Repetition] || busy[run.Repetition] || run.Audit.discards(codes.Disturbs)
		if late && run.ErrorKinds != nil {
			summary.BusyTimeOuts += run.ErrorKinds.TimeOuts
		}
	}
	summary.meter(valid)
	summary.poolWaits(valid)
	summary.timings(runs, leftOut(all))
	if own := paced(runs); own != nil {
		p := summariseGroup(key, own, paced(all), disturbed)
		summary.Paced = &p
	}
	return summary
}

// audit merges the findings of all rounds.
func (s *Summary) audit(runs []*Run) {
	s.Audit = Audit{Valid: true}
	s.Occurrences = map[string]int{}
	for _, run := range runs {
		s.Audit.Valid = s.Audit.Valid && run.Audit.Valid
		if run.Partial {
			s.Partial++
		}
		seen := map[string]bool{}
		for _, reason := range run.Audit.Reasons {
			if !seen[reason.Code] {
				seen[reason.Code] = true
				s.Occurrences[reason.Code]++
			}
			// The detail of the first round that has it stands for all: it
			// usually differs in a figure only.
			collect.In(&s.Audit.Reasons, reason, func(x Reason) bool {
				return x.Code == reason.Code && x.Discards == reason.Discards
			})
		}
	}
}

// correctness sums up what valid rounds say about decisions.
func (s *Summary) correctness(runs []*Run) {
	s.FalseRejects.Explained = len(runs) > 0
	for _, run := range runs {
		s.Add(&run.Requests)
		s.FalseRejects.merge(run.FalseRejects)
		s.Rolling = together(s.Rolling, run.Rolling)
		s.mergeDrift(run.Drift)
		s.Guarantee = mergeClauses(s.Guarantee, run.Guarantee)
		s.Record = mergeClauses(s.Record, run.Record)
		s.NotPromised = collect.Union(s.NotPromised, run.NotPromised...)
		s.mergeStored(run.Stored)
	}
	s.leaks(runs)
	valid := s.FalseRejects.Count + s.Admitted - s.Leak.Requests
	s.FalseRejects.PctOfValid = stat.Percent(s.FalseRejects.Count, valid)
	s.settlement(runs)
	s.verdicts()
}

// leaks adds up the leaks of all runs. Shares are those of all runs together, or of the worst run if a denominator was
// not recorded.
func (s *Summary) leaks(runs []*Run) {
	leak := &s.Leak
	var medians []float64
	for _, run := range runs {
		stat.AddFields(&leak.Leak, &run.Leak)
		for tier, units := range run.LeakTiers {
			if s.LeakTiers == nil {
				s.LeakTiers = map[string]int64{}
			}
			s.LeakTiers[tier] += units
		}
		medians = append(medians, run.Leak.MedianUnits)
	}
	leak.MedianUnits = stat.Median(medians)
	leak.PctOfLimit = 0
	leak.PctOfOverQuota = 0
	for _, run := range runs {
		leak.PctOfLimit = max(leak.PctOfLimit, run.Leak.PctOfLimit)
		leak.PctOfOverQuota = max(leak.PctOfOverQuota, run.Leak.PctOfOverQuota)
	}
	if limits := float64(s.Params.Limit) * float64(leak.Trials); limits > 0 {
		leak.PctOfLimit = stat.Percent(float64(leak.Units), limits)
		leak.PossiblePctOfLimit = stat.Percent(float64(leak.Possible), limits)
	}
	if leak.OverQuotaUnits > 0 {
		leak.PctOfOverQuota = stat.Percent(leak.Units, leak.OverQuotaUnits)
	}
}

// verdicts follow from the clauses of the guarantee.
func (s *Summary) verdicts() {
	s.Verdict = overall(s.Guarantee)
	onLeaks := slices.DeleteFunc(slices.Clone(s.Guarantee), func(clause Clause) bool {
		return clause.Property != string(quota.PropertyLeak)
	})
	s.LeakVerdict = cmp.Or(overall(onLeaks), NoPromise)
	if s.LeakVerdict == NoPromise && severity[s.Verdict] < severity[Undecided] {
		s.Verdict = NoPromise // what it promises of rejections is no promise about the limit
	}
}

// merge adds those of a round.
func (f *FalseRejects) merge(round FalseRejects) {
	if round.Explained {
		round.Possible = round.Count
	}
	f.Explained = f.Explained && round.Explained
	if round.LongestNS > f.LongestNS {
		f.LongestTier = round.LongestTier
	}
	stat.AddFields(f, &round)
}

func (s *Summary) settlement(runs []*Run) {
	var latency []*Latency
	for _, run := range runs {
		settlement := run.Settlement
		if settlement == nil {
			continue
		}
		if s.Settled == nil {
			s.Settled = &SettlementSummary{}
		}
		stat.AddFields(s.Settled, settlement)
		latency = append(latency, &settlement.Service)
	}
	if s.Settled != nil {
		s.Settled.Service = percentiles(latency)
	}
}

// mergeDrift keeps the worst reading of each tier and moment.
func (s *Summary) mergeDrift(drift *Drift) {
	if drift == nil {
		return
	}
	if s.Drift == nil {
		s.Drift = &Drift{}
	}
	if format.Magnitude(drift.Units) > format.Magnitude(s.Drift.Units) {
		s.Drift.Units = drift.Units
		s.Drift.PctOfLimit = drift.PctOfLimit
		s.Drift.PctOfUsage = drift.PctOfUsage
	}
	for _, tierDrift := range drift.Tiers {
		m, known := collect.In(&s.Drift.Tiers, tierDrift, func(x TierDrift) bool {
			return x.Tier == tierDrift.Tier && x.At == tierDrift.At
		})
		if !known {
			continue
		}
		if format.Magnitude(tierDrift.Units) > format.Magnitude(m.Units) {
			m.Units = tierDrift.Units
			m.PctOfLimit = tierDrift.PctOfLimit
			m.PctOfUsage = tierDrift.PctOfUsage
			m.Width = tierDrift.Width
		}
		stat.AddFields(m, &tierDrift)
	}
}

// severity orders verdicts: over several rounds the highest one stands. A clause
// that some round kept was exercised, so kept outranks not exercised.
var severity = map[string]int{NoPromise: 1, NotExercised: 2, Kept: 3, Undecided: 4, Broken: 5}

// mergeClauses keeps each clause once, with the amounts of its worst round.
func mergeClauses(all, clauses []Clause) []Clause {
	for _, clause := range clauses {
		m, _ := collect.In(&all, clause, func(x Clause) bool {
			return x.Property == clause.Property && x.Formula == clause.Formula
		})
		worse := severity[clause.Verdict] - severity[m.Verdict]
		// Bound and amounts belong together: the bound is evaluated with what that
		// round measured.
		if worse > 0 || worse == 0 && clause.Certain-clause.Bound > m.Certain-m.Bound {
			*m = clause
		}
	}
	return all
}

// overall is the verdict over all clauses: the worst, except that nothing
// exercised keeps nothing.
func overall(clauses []Clause) string {
	verdict := ""
	for _, clause := range clauses {
		if severity[clause.Verdict] > severity[verdict] {
			verdict = clause.Verdict
		}
	}
	return verdict
}

// meter condenses the strategy's own figures.
func (s *Summary) meter(runs []*Run) {
	values := map[string][]float64{}
	totals := map[string]int64{}
	for _, run := range runs {
		for _, measure := range run.Meter {
			if values[measure.Name] == nil {
				s.Meter = append(s.Meter, MeasureSummary{Name: measure.Name, Unit: measure.Unit, Kind: measure.Kind})
			}
			values[measure.Name] = append(values[measure.Name], float64(measure.Value))
			totals[measure.Name] += measure.Value
		}
	}
	for i := range s.Meter {
		summary := &s.Meter[i]
		summary.Value = OverRounds(values[summary.Name])
		if summary.Kind != "" {
			continue
		}
		if n := s.Admitted + s.Rejected; n > 0 {
			summary.PerDecision = float64(totals[summary.Name]) / float64(n)
		}
		if s.Admitted > 0 {
			summary.PerAdmitted = float64(totals[summary.Name]) / float64(s.Admitted)
		}
	}
}
