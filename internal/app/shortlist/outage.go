package shortlist

import (
	"context"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// What a run with an outage is made of.
const (
	outageFor     = 600 * time.Millisecond
	outageWorkers = 50
	outageFrom    = 0.3 // of the run
	outageTo      = 0.6
)

// mostUnanswered is the share of requests in percent that may end in errors if decisions are to go on, or be rejected
// although there is room without a word of it: what is on its way when the connection breaks is lost.
const mostUnanswered = 1

// outage runs the contenders that need a Redis while it is away for a third of the time.
func (s *Shortlist) outage(ctx context.Context, contenders []*contender, open *stores.Set) error {
	workload, err := workloads.Lookup("hot-key")
	if err != nil {
		return err
	}
	for _, contender := range contenders {
		if len(contender.RedisNeeds()) == 0 {
			continue
		}
		cfg := measure.Config{
			Plan: harness.Plan{
				Strategies: []strategies.Selection{contender.Selection}, Policy: s.crossed(),
				Quotas:    harness.Quotas{Second: s.question.Second},
				Traffic:   harness.Traffic{Workload: workload, Load: harness.Closed(), Duration: outageFor},
				Instances: s.question.Instances, Workers: outageWorkers, Seed: s.question.Seed,
				Surroundings: harness.Surroundings{Stores: open},
			},
			Rounds:      1,
			NoReference: true,
		}
		for _, need := range contender.RedisNeeds() {
			cfg.Trouble = append(cfg.Trouble, trouble.Event{
				Where: trouble.Where{Name: need.Store(), Instance: trouble.All},
				What:  trouble.What{Word: trouble.Away},
				When:  trouble.When{From: outageFrom, To: outageTo},
			})
		}
		s.observer.Doing(contender.String())
		var runs []results.Run
		report, err := measure.Measure(ctx, cfg)
		if report != nil {
			runs = report.Runs
		} else if ctx.Err() == nil {
			return err
		}
		s.afterOutage(contender, whole(runs)[contender.String()], outageCommand(contender.Selection, &cfg))
	}
	return nil
}

// afterOutage has a contender go on, or leave, by what it did while Redis was away.
func (s *Shortlist) afterOutage(c *contender, summary *results.Summary, command string) {
	s.judge(c, summary, codes.StageOutage, command)
	if c.left != nil {
		return
	}
	failed := stat.Percent(summary.Errors, summary.Issued)
	rejected := summary.FalseRejects.PctOfValid
	why := results.Considered{Stage: codes.StageOutage, Command: command}
	switch {
	case failed > mostUnanswered:
		why.Cause = codes.EndsInErrors
		why.Pct = failed
		c.excluded(why)
	case rejected > mostUnanswered:
		why.Cause = codes.RejectsValid
		why.Pct = rejected
		c.taken = &why
	}
}

// outageCommand makes the run of one strategy again.
func outageCommand(sel strategies.Selection, cfg *measure.Config) string {
	words := []string{
		"quotabench", "run", sel.String(), "--policy", planText(&cfg.Plan), "--instances", fmt.Sprint(cfg.Instances),
		"--loop", "closed", "--duration", cfg.Duration.String(), "--rounds", "1",
	}
	for _, event := range cfg.Trouble {
		words = append(words, "--trouble", event.String())
	}
	return format.List(words, " ", format.Quoted)
}
