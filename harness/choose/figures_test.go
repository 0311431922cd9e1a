package choose

import (
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// summary of 1,000 requests in 10 trials, whose p50 and p99 are given in milliseconds.
func summary(p50, p99 float64, change func(*results.Summary)) *results.Summary {
	at := func(ms float64) results.Percentile {
		return results.Percentile{Figure: results.Figure{Value: ms * 1e6, Rounds: 2}, Status: results.PerRound}
	}
	s := &results.Summary{
		Params: results.Params{Unit: "calls", Limit: 50, RatePerS: 1000}, Rounds: 2, Issued: 1000, TimingsCount: true, ResponseCounts: true,
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
	cfg := &measure.Config{Plan: harness.Plan{Rate: 1000, Workload: steady, Policy: quota.Policy{Limit: 50, Unit: "calls"}}}
	for name, x := range map[string]struct {
		s    *results.Summary
		out  string // a part of the reason; "" where it is left
		ok   bool   // its p99 counts
		says string // a part of what it shows
	}{
		"fast":                 {s: summary(1, 4, nil), ok: true},
		"slow":                 {s: summary(1, 6, nil), out: "takes 6.00 ms at p99"},
		"slow on a busy host":  {s: summary(1, 6, func(s *results.Summary) { s.TimingsCount = false })},
		"slow at the median":   {s: summary(7, 8, func(s *results.Summary) { s.Service.P99.Struck = true }), out: "takes 7.00 ms at p50"},
		"within, struck":       {s: summary(1, 4, func(s *results.Summary) { s.Service.P99.Struck = true }), says: "p99 4.00 ms at most"},
		"above, struck":        {s: summary(1, 6, func(s *results.Summary) { s.Service.P99.Struck = true }), says: "which does not count"},
		"behind":               {s: summary(1, 4, func(s *results.Summary) { s.Saturated = 2 }), out: "does not keep up"},
		"behind on a busy one": {s: summary(1, 4, func(s *results.Summary) { s.Saturated, s.TimingsCount = 2, false })},
		"far behind":           {s: summary(1, 4, func(s *results.Summary) { s.Saturated, s.TimingsCount, s.Throughput.Value = 2, false, 200 }), out: "does not keep up"},
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

// A p99 that does not count decides nothing: then what was seen under contention does.
func TestRanked(t *testing.T) {
	enter := func(name string, crossing, paced float64, counts bool) *contender {
		x := newContender()
		x.sel.Meta = &strategies.Meta{Name: name}
		label := func(s *results.Summary) { s.Label, s.Params.Loop = name, results.ClosedLoop }
		x.crossing, x.p99Counts = summary(1, crossing, label), counts
		x.crossing.Service.P99.Lo, x.crossing.Service.P99.Hi = crossing*1e6, crossing*1e6
		x.paced = summary(1, paced, func(s *results.Summary) { s.Label, s.Params.Loop = name, results.OpenLoop })
		x.paced.Service.P99.Lo, x.paced.Service.P99.Hi = paced*1e6, paced*1e6
		return x
	}
	for name, x := range map[string]struct {
		counts bool
		want   string
	}{"all count": {true, "a b"}, "one does not": {false, "b a"}} {
		got := ranked([]*contender{enter("b", 1, 9, true), enter("a", 2, 3, x.counts)})
		if order := got[0].sel.Name + " " + got[1].sel.Name; order != x.want {
			t.Errorf("%s: %s, want %s", name, order, x.want)
		}
	}
	one, other := enter("a", 1, 1, true), enter("b", 2, 2, true)
	third := enter("c", 9, 9, true)
	one.deployment, other.deployment, third.deployment = redisInOne, redisInOne, redisInEach
	one.modelled, other.modelled, third.modelled = 150, 150, 170
	if got := ranked([]*contender{third, other, one}); got[0] != one || got[1] != third || got[2] != other {
		t.Errorf("over regions: %s, %s, %s", got[0].sel.Name, got[1].sel.Name, got[2].sel.Name)
	}
}
