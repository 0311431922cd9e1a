package choose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// mostCandidates is how many strategies an answer names.
const mostCandidates = 3

// timed has a contender go on, or leave, by what it did at the rate.
func (c *chooser) timed(x *contender, s *results.Summary, cfg *measure.Config) {
	command := runText(x.sel, cfg)
	e := results.Evidence{Kind: results.EvidenceMeasured, Command: command}
	where := fmt.Sprintf("at %s requests per second", format.Count(int64(cfg.Rate)))
	switch {
	case s == nil:
		x.caveats = append(x.caveats, "not measured "+where+": the time for that was up")
		return
	case !s.Counts():
		x.caveats = append(x.caveats, "its run "+where+" does not count: "+firstStruck(s))
		return
	}
	if against := c.breaks(s); against != "" {
		e.Text = against + " " + where
		x.ruleOut(e)
		return
	}
	p99 := s.Latency().P99
	counts := s.TimingsCount && s.ResponseCounts && p99.Shown() && !p99.Struck
	bound := float64(c.cfg.P99)
	switch {
	case s.TimingsCount && s.Saturated == s.Rounds:
		e.Text = fmt.Sprintf("does not keep up %s: it decides %s per second under contention", where, format.Count(int64(x.crossing.Throughput.Value)))
		x.ruleOut(e)
		return
	case counts && bound > 0 && p99.Value > bound:
		e.Text = fmt.Sprintf("takes %s at p99 %s", format.NS(p99.Value), where)
		x.ruleOut(e)
		return
	case s.TimingsCount && bound > 0 && s.Latency().P50.Value > bound: // a busy machine explains a p99, and no median
		e.Text = fmt.Sprintf("takes %s at p50 %s", format.NS(s.Latency().P50.Value), where)
		x.ruleOut(e)
		return
	}
	x.paced = s
	if !counts {
		x.caveats = append(x.caveats, fmt.Sprintf("its p99 %s does not count: this machine was too busy, or the run too short", where))
	}
	e.Text = fmt.Sprintf("p99 %s %s", format.NS(p99.Value), where)
	x.shows(e)
}

// conclude puts the answer together.
func (c *chooser) conclude() {
	var fit []results.Candidate
	for _, x := range c.all {
		switch {
		case x.ruledOut != nil:
			c.res.RuledOut = append(c.res.RuledOut, results.RuledOut{Strategy: x.sel.String(), Reason: *x.ruledOut})
		case x.untested != nil:
			c.res.NotTested = append(c.res.NotTested, *x.untested)
		case x.crossing == nil:
			c.res.NotTested = append(c.res.NotTested, results.Untested{Strategy: x.sel.String(), Reason: "the budget was up before it was measured"})
		default:
			fit = append(fit, x.candidate())
		}
	}
	slices.SortStableFunc(fit, better)
	n := min(mostCandidates, len(fit))
	c.res.Candidates, c.res.Others = append(c.res.Candidates, fit[:n]...), append(c.res.Others, fit[n:]...)
}

func (x *contender) candidate() results.Candidate {
	out := results.Candidate{
		Strategy: x.sel.String(), Doc: x.sel.Doc, Stores: x.stores(), Deployment: x.deployment, ModelledP99: x.modelled,
		ThroughputPerS: x.crossing.Throughput.Value, RoundTrips: x.crossing.Cost.RoundTrips,
		Evidence: x.evidence, Caveats: append([]string{}, x.caveats...),
	}
	if x.paced != nil {
		p99 := x.paced.Latency().P99
		out.P99, out.P99Counts = int64(p99.Value), x.paced.TimingsCount && x.paced.ResponseCounts && p99.Shown() && !p99.Struck
		out.RatePerS = x.paced.Params.RatePerS
	}
	return out
}

func better(a, b results.Candidate) int {
	return cmp.Or(cmp.Compare(b.ThroughputPerS, a.ThroughputPerS), strings.Compare(a.Strategy, b.Strategy))
}
