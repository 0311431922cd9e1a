package results

import (
	"cmp"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
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
		for s := &out[i]; s != nil; s = s.Paced {
			s.measured = measured
		}
	}
	return out
}

// paced are the runs' open loops at the common rate.
func paced(runs []*Run) []*Run {
	var out []*Run
	for _, r := range runs {
		if r.Paced != nil {
			out = append(out, r.Paced)
		}
	}
	return out
}

// summariseGroup condenses the rounds of one strategy. All are the runs of all strategies
// in the same setting. Busy are rounds whose other loops the machine disturbed.
func summariseGroup(key string, runs, all []*Run, busy map[int]bool) Summary {
	first := runs[0]
	disturbed := disturbedRounds(all)
	s := Summary{
		Key: key, Label: first.Params.Label, Strategy: first.Strategy, Form: first.Form,
		PerProcess: first.PerProcess, Outside: first.Outside, Avoid: first.Avoid, NotExplored: first.NotExplored,
		Policy: first.Policy, Workload: first.Workload, Params: first.Params, setting: first.setting(),
		Placement: first.Placement, Rounds: len(runs),
	}
	s.Label = cmp.Or(s.Label, s.Strategy)
	s.audit(runs)
	var valid []*Run
	for _, r := range runs {
		if r.Audit.Valid {
			valid = append(valid, r)
		}
	}
	s.Invalid = len(runs) - len(valid)
	s.correctness(valid)
	for _, r := range valid {
		if r.ErrorKinds != nil && (disturbed[r.Repetition] || busy[r.Repetition] || r.Audit.discards(Disturbs)) {
			s.BusyTimeOuts += r.ErrorKinds.TimeOuts
		}
	}
	s.meter(valid)
	s.poolWaits(valid)
	s.timings(runs, leftOut(all))
	if own := paced(runs); own != nil {
		p := summariseGroup(key, own, paced(all), disturbed)
		s.Paced = &p
	}
	return s
}

// audit merges the findings of all rounds.
func (s *Summary) audit(runs []*Run) {
	s.Audit = Audit{Valid: true}
	s.Occurrences = map[string]int{}
	for _, r := range runs {
		s.Audit.Valid = s.Audit.Valid && r.Audit.Valid
		if r.Partial {
			s.Partial++
		}
		seen := map[string]bool{}
		for _, f := range r.Audit.Reasons {
			if !seen[f.Code] {
				seen[f.Code] = true
				s.Occurrences[f.Code]++
			}
			// The detail of the first round that has it stands for all: it
			// usually differs in a figure only.
			collect.In(&s.Audit.Reasons, f, func(x Reason) bool { return x.Code == f.Code && x.Discards == f.Discards })
		}
	}
}

// correctness sums up what valid rounds say about decisions.
func (s *Summary) correctness(runs []*Run) {
	var medians []float64
	var leakPct, overPct float64
	l := &s.Leak
	fr := &s.FalseRejects
	fr.Explained = len(runs) > 0
	for _, r := range runs {
		s.Issued += r.Issued
		s.Admitted += r.Admitted
		s.Rejected += r.Rejected
		s.Errors += r.Errors
		s.ErrorKinds = together(s.ErrorKinds, r.ErrorKinds)
		s.Degraded += r.Degraded
		s.RecoveredNS = max(s.RecoveredNS, r.RecoveredNS)
		s.FirstError = cmp.Or(s.FirstError, r.FirstError)
		Add(&l.Leak, &r.Leak)
		for tier, n := range r.LeakTiers {
			if s.LeakTiers == nil {
				s.LeakTiers = map[string]int64{}
			}
			s.LeakTiers[tier] += n
		}
		medians = append(medians, r.Leak.MedianUnits)
		leakPct = max(leakPct, r.Leak.PctOfLimit)
		overPct = max(overPct, r.Leak.PctOfOverQuota)

		fr.merge(r.FalseRejects)
		s.Rolling = together(s.Rolling, r.Rolling)
		s.mergeDrift(r.Drift)
		s.Guarantee, s.Record = mergeClauses(s.Guarantee, r.Guarantee), mergeClauses(s.Record, r.Record)
		s.NotPromised = collect.Union(s.NotPromised, r.NotPromised...)
		s.mergeStored(r.Stored)
	}
	l.MedianUnits = stat.Median(medians)
	// If a denominator was not recorded the worst round speaks for all.
	l.PctOfLimit = leakPct
	l.PctOfOverQuota = overPct
	if base := float64(s.Params.Limit) * float64(l.Trials); base > 0 {
		l.PctOfLimit, l.PossiblePctOfLimit = Percent(float64(l.Units), base), Percent(float64(l.Possible), base)
	}
	if l.OverQuotaUnits > 0 {
		l.PctOfOverQuota = Percent(l.Units, l.OverQuotaUnits)
	}
	fr.PctOfValid = Percent(fr.Count, fr.Count+s.Admitted-l.Requests)
	s.settlement(runs)
	s.Verdict = overall(s.Guarantee)
	s.LeakVerdict = cmp.Or(overall(slices.DeleteFunc(slices.Clone(s.Guarantee), func(c Clause) bool { return c.Property != LeakProperty })),
		NoPromise)
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
	Add(f, &round)
}

// The properties that clauses bound.
const (
	LeakProperty        = "leak"
	FalseRejectProperty = "false-reject"
)

func (s *Summary) settlement(runs []*Run) {
	var latency []*Latency
	for _, r := range runs {
		x := r.Settlement
		if x == nil {
			continue
		}
		if s.Settled == nil {
			s.Settled = &SettlementSummary{}
		}
		Add(s.Settled, x)
		latency = append(latency, &x.Service)
	}
	if s.Settled != nil {
		s.Settled.Service = percentiles(latency)
	}
}

// mergeDrift keeps the worst reading of each tier and moment.
func (s *Summary) mergeDrift(d *Drift) {
	if d == nil {
		return
	}
	if s.Drift == nil {
		s.Drift = &Drift{}
	}
	if format.Magnitude(d.Units) > format.Magnitude(s.Drift.Units) {
		s.Drift.Units = d.Units
		s.Drift.PctOfLimit = d.PctOfLimit
		s.Drift.PctOfUsage = d.PctOfUsage
	}
	for _, t := range d.Tiers {
		m, known := collect.In(&s.Drift.Tiers, t, func(x TierDrift) bool { return x.Tier == t.Tier && x.At == t.At })
		if !known {
			continue
		}
		if format.Magnitude(t.Units) > format.Magnitude(m.Units) {
			m.Units = t.Units
			m.PctOfLimit = t.PctOfLimit
			m.PctOfUsage = t.PctOfUsage
			m.Width = t.Width
		}
		Add(m, &t)
	}
}

// severity orders verdicts: over several rounds the highest one stands. A clause
// that some round kept was exercised, so kept outranks not exercised.
var severity = map[string]int{NoPromise: 1, NotExercised: 2, Kept: 3, Undecided: 4, Broken: 5}

// mergeClauses keeps each clause once, with the amounts of its worst round.
func mergeClauses(all, clauses []Clause) []Clause {
	for _, c := range clauses {
		m, _ := collect.In(&all, c, func(x Clause) bool { return x.Property == c.Property && x.Formula == c.Formula })
		worse := severity[c.Verdict] - severity[m.Verdict]
		// Bound and amounts belong together: the bound is evaluated with what that
		// round measured.
		if worse > 0 || worse == 0 && c.Certain-c.Bound > m.Certain-m.Bound {
			*m = c
		}
	}
	return all
}

// overall is the verdict over all clauses: the worst, except that nothing
// exercised keeps nothing.
func overall(clauses []Clause) string {
	verdict := ""
	for _, c := range clauses {
		if severity[c.Verdict] > severity[verdict] {
			verdict = c.Verdict
		}
	}
	return verdict
}

// meter condenses the strategy's own figures.
func (s *Summary) meter(runs []*Run) {
	values := map[string][]float64{}
	totals := map[string]int64{}
	for _, r := range runs {
		for _, m := range r.Meter {
			if values[m.Name] == nil {
				s.Meter = append(s.Meter, MeasureSummary{Name: m.Name, Unit: m.Unit, Kind: m.Kind})
			}
			values[m.Name] = append(values[m.Name], float64(m.Value))
			totals[m.Name] += m.Value
		}
	}
	for i := range s.Meter {
		m := &s.Meter[i]
		m.Value = OverRounds(values[m.Name])
		if m.Kind != "" {
			continue
		}
		if n := s.Admitted + s.Rejected; n > 0 {
			m.PerDecision = float64(totals[m.Name]) / float64(n)
		}
		if s.Admitted > 0 {
			m.PerAdmitted = float64(totals[m.Name]) / float64(s.Admitted)
		}
	}
}
