package choose

import (
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// summary of 1,000 requests in 10 trials, whose p50 and p99 are given in milliseconds.
func summary(p50, p99 float64, change func(*results.Summary)) *results.Summary {
	at := func(ms float64) results.Percentile {
		return results.Percentile{Figure: results.Figure{Value: ms * 1e6, Rounds: 2}, Status: results.PerRound}
	}
	s := &results.Summary{
		Params: results.Params{Unit: "calls", Limit: 50, RatePerS: 1000}, Rounds: 2, Timed: 2, Issued: 1000, TimingsCount: true, ResponseCounts: true,
		Service:    results.Percentiles{P50: at(p50), P99: at(p99)},
		Throughput: results.Figure{Value: 1000, Rounds: 2}, Leak: results.LeakSummary{Leak: results.Leak{Trials: 10}},
	}
	if change != nil {
		change(s)
	}
	return s
}

func newContender() *contender {
	return &contender{sel: strategies.Selection{Meta: &strategies.Meta{Name: "mine"}}, crossing: summary(1, 2, nil)}
}

func TestTimed(t *testing.T) {
	steady, err := workloads.Lookup(steady)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &measure.Config{Plan: harness.Plan{Load: harness.OpenAt(1000), Workload: steady, Policy: quota.Policy{Limit: 50, Unit: "calls"}}}
	for name, x := range map[string]struct {
		s    *results.Summary
		out  string // a part of the reason; "" if it is left
		ok   bool   // its p99 counts
		says string // a part of what it shows
	}{
		"fast":                 {s: summary(1, 4, nil), ok: true},
		"slow":                 {s: summary(1, 6, nil), out: "takes 6.00 ms at p99"},
		"slow on a busy host":  {s: summary(1, 6, func(s *results.Summary) { s.TimingsCount = false })},
		"within, waited":       {s: summary(1, 4, func(s *results.Summary) { s.Service.P99.Waited = s.Service.P99.Rounds }), ok: true, says: "may be waiting for a core"},
		"above, waited":        {s: summary(1, 6, func(s *results.Summary) { s.Service.P99.Waited = s.Service.P99.Rounds }), out: "takes 6.00 ms at p99"},
		"not measurable":       {s: summary(1, 6, func(s *results.Summary) { s.Service.P99.Status = results.NotMeasurable }), says: "not measurable here"},
		"behind":               {s: summary(1, 4, func(s *results.Summary) { s.Saturated = 2 }), out: "does not keep up"},
		"behind on a busy one": {s: summary(1, 4, func(s *results.Summary) { s.Saturated, s.TimingsCount = 2, false })},
		"leaks":                {s: summary(1, 4, func(s *results.Summary) { s.Leak.Units, s.Leak.WorstUnits = 3, 3 }), out: "over-admits"},
		"rejects":              {s: summary(1, 4, func(s *results.Summary) { s.FalseRejects.Count, s.FalseRejects.PctOfValid = 20, 2 }), out: "rejects 2.00 %"},
		"not reached":          {s: nil},
	} {
		c := &chooser{cfg: &Config{P99: 5 * time.Millisecond}}
		m := newContender()
		c.timed(m, x.s, cfg)
		if (m.ruledOut != nil) != (x.out != "") || m.ruledOut != nil && !strings.Contains(m.ruledOut.Text, x.out) || m.p99Counts != x.ok {
			t.Errorf("%s: ruled out by %+v, p99 counts %v; want %q, %v", name, m.ruledOut, m.p99Counts, x.out, x.ok)
		}
		if n := len(m.evidence); x.says != "" && (n != 1 || !strings.Contains(m.evidence[0].Text, x.says)) {
			t.Errorf("%s: %+v, want %q", name, m.evidence, x.says)
		}
	}
}

func TestAfterOutage(t *testing.T) {
	errors := func(s *results.Summary) { s.Errors = 300 }
	rejects := func(s *results.Summary) { s.FalseRejects.Count, s.FalseRejects.PctOfValid = 300, 30 }
	leaks := func(s *results.Summary) { s.Leak.Units, s.Leak.WorstUnits = 40, 40 }
	for name, x := range map[string]struct {
		change func(*results.Summary)
		fits   map[Outage]bool
	}{
		"goes on":        {nil, map[Outage]bool{OutageOpen: true, OutageClosed: true, OutageSurvive: true}},
		"fails":          {errors, map[Outage]bool{OutageClosed: true}},
		"fails closed":   {rejects, map[Outage]bool{OutageClosed: true}},
		"fails open":     {leaks, map[Outage]bool{OutageOpen: true}},
		"does not count": {func(s *results.Summary) { s.Invalid = 2 }, nil},
	} {
		for _, o := range []Outage{OutageOpen, OutageClosed, OutageSurvive} {
			c := &chooser{cfg: &Config{Outage: o}}
			m := newContender()
			c.afterOutage(m, summary(1, 2, x.change), "")
			if m.in() != x.fits[o] {
				t.Errorf("%s where %s is asked for: ruled out by %+v, not tested for %+v", name, o, m.ruledOut, m.untested)
			}
		}
	}
}

// What counts more than the largest request that no caller holds leaves, and what counts
// less than the truth does not.
func TestStranded(t *testing.T) {
	for units, left := range map[int64]bool{-500: true, 0: true, 100: true, 101: false} {
		c := &chooser{cfg: &Config{Settles: true, Policy: quota.Policy{Costs: []int64{5, 100}}}}
		m := newContender()
		s := summary(1, 2, func(s *results.Summary) {
			s.Drift = &results.Drift{Tiers: []results.TierDrift{{Tier: "redis", At: "rest", Units: units, Readings: 4}}}
		})
		if c.judge(m, s, "", "under contention"); m.in() != left {
			t.Errorf("%d units: %+v", units, m.ruledOut)
		}
	}
}

// A rate that a bare client reaches twice over is measured, and no higher one.
func TestRate(t *testing.T) {
	for _, x := range []struct{ asked, reference, want float64 }{{1000, 0, 1000}, {1000, 2000, 1000}, {50_000, 13_686, 6_800}, {50_000, 120_000, 50_000}, {1000, 10, 1}} {
		c := &chooser{cfg: &Config{Rate: x.asked}, referencePerS: x.reference}
		if got := c.rate(); got != x.want {
			t.Errorf("%g where a bare client reaches %g: %g, want %g", x.asked, x.reference, got, x.want)
		}
	}
}

// Candidates that were measured apart cannot be told apart by time: the one with fewer
// commands comes first. Over regions the modelled p99 decides.
func TestRanked(t *testing.T) {
	enter := func(name string, commands float64) *contender {
		x := newContender()
		x.sel.Meta = &strategies.Meta{Name: name}
		label := func(s *results.Summary) { s.Label, s.Params.Loop, s.Cost.Commands = name, results.ClosedLoop, commands }
		x.crossing, x.p99Counts = summary(1, commands, label), true
		x.paced = summary(1, 10-commands, func(s *results.Summary) { s.Label, s.Params.Loop = name, results.OpenLoop })
		return x
	}
	c := &chooser{cfg: &Config{Stores: &stores.Set{}}}
	if got := c.ranked([]*contender{enter("a", 3), enter("b", 1), enter("c", 2)}); got[0].sel.Name+got[1].sel.Name+got[2].sel.Name != "bca" {
		t.Errorf("%s, %s, %s", got[0].sel.Name, got[1].sel.Name, got[2].sel.Name)
	}
	one, other, third := enter("a", 1), enter("b", 2), enter("c", 9)
	one.deployment, other.deployment, third.deployment = redisInOne, redisInOne, redisInEach
	one.modelled, other.modelled, third.modelled = 150, 150, 170
	if got := c.ranked([]*contender{third, other, one}); got[0] != one || got[1] != third || got[2] != other {
		t.Errorf("over regions: %s, %s, %s", got[0].sel.Name, got[1].sel.Name, got[2].sel.Name)
	}
}

// A candidate without a p99 comes behind the others, which their p99s put in order all the same.
func TestRankedByLatency(t *testing.T) {
	const commands = 9 // by which it would come last
	var runs []results.Run
	for round := 1; round <= rateRounds; round++ {
		for name, ms := range map[string]int64{"fast": 1, "slow": 4, "unknown": 1} {
			l := results.Latency{Distribution: results.Distribution{
				Samples: 1000, P50: ms * 1e6, P99: ms * 2e6, Max: ms * 3e6, StallsP99: -1, StallsP999: -1,
			}}
			runs = append(runs, results.Run{
				Strategy: name, Repetition: round, Params: results.Params{Label: name, Loop: results.OpenLoop, RatePerS: 1000}, ElapsedNS: 1,
				Service: l, Response: &l, Audit: results.Audit{Valid: true, TimingsValid: true},
			})
		}
	}
	all := results.Summarise(runs)
	var in []*contender
	for i := range all {
		x := newContender()
		x.sel.Meta = &strategies.Meta{Name: all[i].Label}
		x.crossing = summary(1, 2, func(s *results.Summary) {
			s.Label, s.Params.Loop, s.Cost.Commands = all[i].Label, results.ClosedLoop, 1
			if s.Label == "fast" {
				s.Cost.Commands = commands
			}
		})
		x.paced, x.p99Counts = &all[i], all[i].Label != "unknown"
		in = append(in, x)
	}
	c := &chooser{cfg: &Config{Stores: &stores.Set{}}}
	var got []string
	for _, x := range c.ranked(in) {
		got = append(got, x.sel.Name)
	}
	if strings.Join(got, " ") != "fast slow unknown" {
		t.Errorf("%q", got)
	}
	in[0].p99Counts = false
	if x := in[0].candidate(); x.P99 != 0 || x.P99Rounds != (results.Rounds{Kept: rateRounds, Run: rateRounds}) {
		t.Errorf("a p99 that is not measurable: %+v", x)
	}
}
