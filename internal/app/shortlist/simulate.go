package shortlist

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// What a simulation is made of.
const (
	simulatedSubjects = 100
	mostHalf          = 10 * time.Minute // of virtual time on either side of a window's end
	crossedRequests   = 50               // of a limit that is crossed often
	crossedUploads    = 10               // what is committed is soon deleted, so uploads need a lower limit
)

// simulate has the contenders decide across the end of a window. A strategy that has no virtual time goes on.
func (s *Shortlist) simulate(ctx context.Context, contenders []*contender) error {
	cfg, err := s.simulation()
	if err != nil {
		return err
	}
	var able []*contender
	for _, contender := range contenders {
		if cfg.CannotRun(contender.Selection) == nil {
			able = append(able, contender)
			cfg.Strategies = append(cfg.Strategies, contender.Selection)
		}
	}
	if len(able) == 0 {
		return nil
	}
	cfg.SoFar = func(runs []results.Run) { s.observer.Doing(runs[len(runs)-1].Params.Label) }
	var runs []results.Run
	report, err := sim.Run(ctx, cfg)
	if report != nil {
		runs = report.Runs
	} else if ctx.Err() == nil {
		return err
	}
	summaries := whole(runs)
	for _, contender := range able {
		s.judge(contender, summaries[contender.String()], codes.StageSimulation, simCommand(contender.Selection, &cfg))
	}
	return nil
}

// judge has a contender go on, or leave, by what a run of a stage shows of it.
func (s *Shortlist) judge(c *contender, summary *results.Summary, at codes.Stage, command string) {
	why := results.Considered{Stage: at, Command: command}
	if summary == nil {
		why.Cause = codes.OutOfTime
		c.untried(why)
		return
	}
	verdict := ranking.Classify(summary)
	switch verdict.Group {
	case ranking.Enforces:
		return
	case ranking.Bounded:
		c.bounded = true
		return
	case ranking.Unusable, ranking.Undecided:
		if summary.Counts() && summary.Leak.Trials == 0 && summary.FalseRejects.Count == 0 {
			return // nothing was asked beyond the limit: the run says nothing
		}
	}
	switch {
	case !summary.Counts():
		why.Cause = codes.Unsound
		why.Detail = summary.Audit.Discarded()
		c.untried(why)
		return
	case summary.Leak.Units > 0:
		why.Cause = codes.OverLimit
		why.Units = summary.Leak.WorstUnits
		why.Pct = stat.Percent(float64(summary.Leak.WorstUnits), float64(summary.Params.Limit))
	case summary.FalseRejects.Count > 0:
		why.Cause = codes.RejectsValid
		why.Pct = summary.FalseRejects.PctOfValid
	default:
		why.Cause = codes.Unsound
		why.Detail = verdict.Reason
	}
	c.excluded(why)
}

// whole are the summaries of strategies that had a run to its end, by label.
func whole(runs []results.Run) map[string]*results.Summary {
	out := map[string]*results.Summary{}
	all := results.Summarise(runs)
	for i := range all {
		if all[i].Partial < all[i].Rounds {
			out[all[i].Label] = &all[i]
		}
	}
	return out
}

// crossed is the policy with a limit that is crossed often in a short run.
func (s *Shortlist) crossed() quota.Policy {
	requests := int64(crossedRequests)
	if s.question.GivesBack {
		requests = crossedUploads
	}
	policy := s.question.Policy
	largest := int64(1)
	if len(policy.Costs) > 0 {
		largest = slices.Max(policy.Costs)
	}
	policy.Limit = min(policy.Limit, requests*largest)
	return policy
}

// simulation is over the end of a window. Every subject is asked for twice its limit per window.
func (s *Shortlist) simulation() (sim.Config, error) {
	policy := s.crossed()
	cfg := sim.Config{
		Plan: harness.Plan{
			Policy: policy, Seed: s.question.Seed, Instances: s.question.Instances,
			Quotas: harness.Quotas{Second: s.question.Second},
		},
		Every: -1,
	}
	workload, err := workloads.Lookup(s.workload())
	if err != nil {
		return cfg, err
	}
	cfg.Workload = workload
	perWindow := 2 * float64(policy.Limit) / meanCost(&policy)
	base := time.Date(2026, time.February, 15, 0, 0, 0, 0, time.UTC)
	var window time.Duration
	if kind := policy.Window.Kind; kind.Tumbling() {
		span := policy.Window.At(base)
		window = min(mostHalf, span.End.Sub(span.Start)/2)
		cfg.Start = span.End.Add(-window)
		cfg.Duration = 2 * window
	} else {
		if kind == quota.Bucket {
			perWindow = 2 * float64(max(policy.Limit, policy.Window.Refill)) / meanCost(&policy)
		}
		window = policy.Window.RealLength()
		cfg.Start = base
		cfg.Duration = 5 * window / 2
	}
	perSecond := perWindow * simulatedSubjects / window.Seconds()
	cfg.Load = harness.OpenAt(math.Max(1, math.Round(100*perSecond)/100))
	cfg.Stream.Set("subjects", simulatedSubjects)
	return cfg, nil
}

// workload is the name of the one that a stage runs.
func (s *Shortlist) workload() string {
	if s.question.GivesBack {
		return "uploads"
	}
	return "steady"
}

// meanCost of a request in units.
func meanCost(policy *quota.Policy) float64 {
	if len(policy.Costs) == 0 {
		return 1
	}
	var sum int64
	for _, cost := range policy.Costs {
		sum += cost
	}
	return float64(sum) / float64(len(policy.Costs))
}

// planText is the policy of a plan as the command line takes it, with both windows if there are two.
func planText(plan *harness.Plan) string {
	if plan.Second == nil {
		return plan.Policy.Text()
	}
	return plan.Policy.Text() + " and " + plan.Second.Text()
}

// simCommand makes the simulation of one strategy again.
func simCommand(sel strategies.Selection, cfg *sim.Config) string {
	words := []string{
		"quotabench", "sim", sel.String(), "--policy", planText(&cfg.Plan), "--workload", cfg.Workload.Name,
		"--instances", fmt.Sprint(cfg.Instances),
	}
	words = append(words, "--rate", fmt.Sprint(cfg.Load.PerSecond), "--duration", cfg.Duration.String(),
		"--start", cfg.Start.Format(time.RFC3339))
	return format.List(words, " ", format.Quoted)
}
