package results

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/format"
)

// HistoryName is the name of the file that keeps the run's history, without the directory:
// the strategy's label and the round.
func (r *Run) HistoryName() string {
	safe := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("-_.=", c):
			return c
		}
		return '_'
	}, r.Params.Label)
	return fmt.Sprintf("%s-%d.history", safe, r.Repetition)
}

// codePart is the finding that a run has one generator's part of the requests.
const codePart = "generator-part"

// Part adds the finding that the run is one generator's part, whose leak and false rejects
// say nothing without the others'.
func (a *Audit) Part(of string) {
	a.Discard(codePart, DiscardsCorrectness, "generator "+of+" has a part of the requests: quotabench merge judges all together")
}

// Sound reports whether nothing takes the correctness figures back, but that they may be
// of one generator's part.
func (a *Audit) Sound() bool {
	return !slices.ContainsFunc(a.Reasons, func(r Reason) bool {
		return r.Discards == DiscardsCorrectness && r.Code != codePart
	})
}

// ofGenerator reports whether the record is one generator's, which may be the only one left.
func (f *File) ofGenerator() bool { return len(f.Runs) > 0 && f.Runs[0].Params.Generator != "" }

// part is which part of a load the run has: a shard or a generator; "" is all of it.
func (p *Params) part() string { return p.Shard + p.Generator }

// othersLimit is the share of processor time that programs which are no generator of the run
// may use on a machine.
const othersLimit = 0.1

// untimed is why the timings of a generator do not count; "" if they do. What other
// generators used on the same machine is the run's own load.
func (n *numbered) untimed(all []numbered) string {
	for _, r := range n.Audit.Reasons {
		if r.Discards == DiscardsRound || r.Discards == DiscardsTimings {
			return r.Detail
		}
	}
	host := n.from.File.Provenance.Host
	share := n.OthersShare
	for i := range all {
		if o := &all[i]; o.from != n.from && o.from.File.Provenance.Host == host {
			share -= o.Cost.ClientCPU * float64(o.Issued) / float64(max(n.ElapsedNS, 1)) / float64(max(host.CPUs, 1))
		}
	}
	if share > othersLimit {
		return fmt.Sprintf("other programs used %.0f %% of the processor time during the run", 100*share)
	}
	return ""
}

// joinGenerators makes one run of those of generators, which had the subjects in common.
// Their verdicts say nothing together, so the run has none: it is undecided until all
// histories are judged, see [Audit.Decide].
func joinGenerators(parts []numbered) (Run, error) {
	runs, timed := make([]*Run, len(parts)), []*Run(nil)
	audit := Audit{Valid: true, TimingsValid: true, Reasons: []Reason{}}
	add := func(p *numbered, code, discards, detail string) {
		audit.Discard(code, discards, "generator "+p.Params.Generator+": "+detail)
	}
	for i := range parts {
		p := &parts[i]
		runs[i] = &p.Run
		for _, r := range p.Audit.Reasons {
			if discards := r.Discards; r.Code != codePart {
				if discards == DiscardsRound || discards == DiscardsTimings {
					discards = DiscardsNothing // of all others they count
				}
				add(p, r.Code, discards, r.Detail)
			}
		}
		if why := p.untimed(parts); why != "" {
			add(p, "generator-untimed", DiscardsNothing, "its latencies are left out: "+why)
			continue
		}
		timed = append(timed, &p.Run)
	}
	out, err := join(runs)
	if err != nil {
		return out, err
	}
	if len(timed) == 0 {
		audit.Discard("generators-untimed", DiscardsRound, "no generator was undisturbed")
		timed = runs
	}
	err = out.joinLatencies(timed)
	first, p := runs[0].Params, &out.Params
	p.Shards, p.Generators = 0, len(runs)
	p.Subjects, p.RatePerS = first.Subjects, first.RatePerS
	n := float64(len(runs)) // each saw what the servers did for all
	out.Cost.RedisCPU, out.Cost.PostgresCPU = out.Cost.RedisCPU/n, out.Cost.PostgresCPU/n
	out.Leak, out.FalseRejects, out.LeakTiers = Leak{}, FalseRejects{}, nil
	out.Drift, out.Rolling = nil, nil
	out.Readings, out.SyncPeriodNS = nil, 0
	out.OthersShare, out.Audit = 0, audit
	out.Audit.Discard(codeUndecided, DiscardsCorrectness, "the histories of the generators were not judged together")
	return out, err
}

// codeUndecided is the finding that a run of several generators has no verdict.
const codeUndecided = "generators-undecided"

// Undecided says why a run of several generators has no verdict.
func (a *Audit) Undecided(why string) {
	for i := range a.Reasons {
		if a.Reasons[i].Code == codeUndecided {
			a.Reasons[i].Detail = format.OneLine(why)
		}
	}
}

// Decide gives a run of several generators the verdict on all their histories, that of judged, and says what clocks cost:
// each may be wrong by so much. Promises that judged has no verdict on stay undecided; why says why that is.
func (r *Run) Decide(judged *Run, wrong time.Duration, why string) {
	r.Audit.Reasons = slices.DeleteFunc(r.Audit.Reasons, func(x Reason) bool { return x.Code == codeUndecided })
	r.Audit.Valid = !r.Audit.discards(DiscardsCorrectness)
	r.Leak, r.LeakTiers, r.FalseRejects = judged.Leak, judged.LeakTiers, judged.FalseRejects
	r.Rolling, r.Drift = judged.Rolling, judged.Drift
	r.FalseRejects.LongestNS = max(0, r.FalseRejects.LongestNS-2*int64(wrong))
	r.ClockErrorNS = int64(wrong)
	r.settle(r.Guarantee, judged.Guarantee, why)
	r.settle(r.Record, judged.Record, why)
	for _, x := range judged.Audit.Reasons {
		if x.Discards != DiscardsNothing { // notes are the generators' own
			r.Audit.Discard(x.Code, x.Discards, x.Detail)
		}
	}
	r.Audit.Discard("clocks", DiscardsNothing, r.ClockText())
}

// settle gives clauses of the run the verdicts on all histories, and says which have none.
func (r *Run) settle(clauses, judged []Clause, why string) {
	for i := range clauses {
		c := &clauses[i]
		k := slices.IndexFunc(judged, func(x Clause) bool {
			return x.Property == c.Property && x.Formula == c.Formula && x.Source == c.Source
		})
		if k >= 0 {
			*c = judged[k]
		} else if c.Verdict != NoPromise {
			r.Audit.Discard("generators-not-judged", DiscardsNothing,
				fmt.Sprintf("the %s of %s is undecided: not judged over several generators%s", c.Property, c.Formula, why))
		}
	}
}

// ClockText says what the leak of several generators is, and what their clocks cost.
func (r *Run) ClockText() string {
	return fmt.Sprintf("leak: certain %d, possible %d, clock error ±%v", r.Leak.Units, r.Leak.Possible,
		time.Duration(r.ClockErrorNS).Round(time.Microsecond))
}
