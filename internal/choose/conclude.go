package choose

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// mostCandidates is how many strategies an answer names.
const mostCandidates = 3

// timed has a contender go on, or leave, by what it did at the rate.
func (c *chooser) timed(x *contender, s *results.Summary, cfg *measure.Config) {
	where := fmt.Sprintf("at %s requests per second", format.Count(int64(cfg.Load.PerSecond)))
	e := results.Evidence{Kind: results.EvidenceMeasured, Text: where, Command: runText(x.sel, cfg)}
	if !x.ran(s, where) {
		return
	}
	p99, against := s.Latency().P99, c.breaks(s)
	counts := s.TimingsCount && s.ResponseCounts && p99.Shown()
	bound := float64(c.cfg.P99)
	switch {
	case against != "":
	case s.TimingsCount && s.Saturated > 0 && s.Saturated == s.Timed:
		against = fmt.Sprintf("does not keep up; it decides %s per second there, and %s under contention",
			format.Count(int64(s.Throughput.Value)), format.Count(int64(x.crossing.Throughput.Value)))
	case counts && bound > 0 && p99.Value > bound:
		against = fmt.Sprintf("takes %s at p99", format.NS(p99.Value))
	}
	if against != "" {
		x.ruleOut(e, against)
		return
	}
	x.paced, x.p99Counts = s, counts
	switch {
	case !counts:
		x.shows(e, "its p99 is not measurable here: the machine was too busy, or the run too short")
	case 2*p99.Waited > p99.Rounds:
		x.shows(e, fmt.Sprintf("p99 %s, part of which may be waiting for a core", format.NS(p99.Value)))
	default:
		x.shows(e, "p99 "+format.NS(p99.Value))
	}
}

// conclude puts the answer together.
func (c *chooser) conclude() {
	var fit []*contender
	for _, x := range c.all {
		switch {
		case x.ruledOut != nil:
			c.res.RuledOut = append(c.res.RuledOut, results.RuledOut{Strategy: x.sel.String(), Reason: *x.ruledOut})
		case x.untested != nil:
			c.res.NotTested = append(c.res.NotTested, *x.untested)
		case x.crossing == nil:
			reason := "the budget was up before it was measured" + longer
			c.res.NotTested = append(c.res.NotTested, results.Untested{Strategy: x.sel.String(), Reason: reason})
		default:
			fit = append(fit, x)
		}
	}
	for i, x := range c.ranked(fit) {
		to := &c.res.Candidates
		if i >= mostCandidates {
			to = &c.res.Others
		}
		*to = append(*to, x.candidate())
	}
}

// ranked puts the best first: those that were tested whole before those that were not,
// over regions the lower modelled p99, and else the order in which package answer
// would name them as the cheapest. Over regions the best of each deployment comes before
// the second of any: where the stores have to be is what one decides first.
func (c *chooser) ranked(fit []*contender) []*contender {
	fit = c.cheapestFirst(fit)
	slices.SortStableFunc(fit, func(a, b *contender) int {
		return cmp.Or(cmp.Compare(a.standing(), b.standing()), cmp.Compare(a.modelled, b.modelled))
	})
	seen := map[string]bool{}
	var first, again []*contender
	for _, x := range fit {
		if x.deployment != "" && seen[x.deployment] {
			again = append(again, x)
		} else {
			first = append(first, x)
		}
		seen[x.deployment] = true
	}
	return append(first, again...)
}

// standing is 0 for what was tested whole, and more for what was not simulated, searched or
// measured at the rate.
func (x *contender) standing() (n int) {
	if x.unsearched {
		n += 2
	}
	if x.deployment != "" && x.modelled == 0 {
		n++
	}
	if x.paced == nil {
		n++
	}
	return n
}

// cheapestFirst asks for the cheapest over and over. What enforces within a bound comes
// behind what enforces, and in each what has no p99 at the rate behind what has one: it is
// put in order by throughput under contention.
func (c *chooser) cheapestFirst(fit []*contender) (out []*contender) {
	of := map[string]*contender{}
	var settings [4]answer.Setting
	for _, x := range fit {
		a := answer.Classify(x.crossing)
		whole, at := *x.crossing, 0
		if x.p99Counts {
			whole.Paced = x.paced
		} else {
			at++
		}
		if a.Group != answer.Enforces {
			at += 2
		}
		a.Summary, a.Group = &whole, answer.Enforces // among themselves
		of[a.Label] = x
		settings[at].Strategies = append(settings[at].Strategies, a)
	}
	for i := range settings {
		s := &settings[i]
		answer.Sort(s.Strategies, c.byTime())
		for next := s.Cheapest(); next != nil; next = s.Cheapest() {
			label := next.Label
			out = append(out, of[label])
			s.Strategies = slices.DeleteFunc(s.Strategies, func(a answer.Strategy) bool { return a.Label == label })
		}
	}
	return out
}

// byTime reports whether timings put candidates in order: not on stores that stand in for
// real ones.
func (c *chooser) byTime() bool {
	return !slices.ContainsFunc(c.cfg.Stores.Names(), func(name string) bool {
		s, _ := c.cfg.Stores.Get(name)
		return s.Info().Kind == stores.KindEmbedded
	})
}

func (x *contender) candidate() results.Candidate {
	out := results.Candidate{
		Strategy: x.sel.String(), Doc: x.sel.Doc, Stores: format.Strings(x.sel.Needs), Deployment: x.deployment, ModelledP99: x.modelled,
		ThroughputPerS: x.crossing.Throughput.Value, ThroughputRounds: roundsOf(x.crossing), RoundTrips: x.crossing.Cost.RoundTrips,
		Bounded: answer.Classify(x.crossing).Group == answer.Bounded, Evidence: x.evidence, Caveats: append([]string{}, x.caveats...),
	}
	if x.paced != nil {
		out.RatePerS, out.P99Counts, out.P99Rounds = x.paced.Params.RatePerS, x.p99Counts, roundsOf(x.paced)
		if x.p99Counts {
			out.P99 = int64(x.paced.Latency().P99.Value)
		}
	}
	return out
}

// roundsOf are the rounds behind the timings of a summary.
func roundsOf(s *results.Summary) results.Rounds { return results.Rounds{Kept: s.Timed, Run: s.Rounds} }
