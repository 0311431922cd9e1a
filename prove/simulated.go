package prove

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

const (
	// simulatedSubjects ask in a simulation, each of them for twice its limit.
	simulatedSubjects = 3
	overLimit         = 2
	// mostRequests are about as many as a simulation has: where they are too few for the
	// whole time, they come in rushes.
	mostRequests = 100_000
	rushWindows  = 5
	mostRushes   = 60
)

// simulated is a month of virtual time.
func (o *Options) simulated(ctx context.Context, sel strategies.Selection) (claim, wrong string, err error) {
	cfg, err := o.month(sel)
	if err != nil {
		return "", "", err
	}
	report, err := sim.Run(ctx, cfg)
	if err != nil {
		return "", "", err
	}
	r := &report.Runs[0]
	unit := o.Policy.Unit
	var b strings.Builder
	for _, c := range r.Guarantee {
		if c.Verdict == results.Broken {
			fmt.Fprintf(&b, "%s: %d %s beyond the limit of %d in the worst window, %d promised; %d %s in %d of %d windows of which more was asked\n",
				strings.ToUpper(c.Property), c.Certain, unit, o.Policy.Limit, c.Bound, r.Leak.Units, unit, r.Leak.LeakedTrials, r.Leak.Trials)
		}
	}
	declared := false
	for _, c := range sel.Guarantee {
		declared = declared || c.Property == quota.PropertyFalseReject
	}
	if n := r.FalseRejects.Count; n > 0 && !declared {
		fmt.Fprintf(&b, "FALSE-REJECT: %d of %d requests were rejected although there was room for them all the time\n", n, r.Issued)
	}
	what := fmt.Sprintf("%d days of virtual time, %d requests of %d subjects on %d instances, seed %d", o.Days, r.Issued, simulatedSubjects, o.Instances, o.Seed)
	if b.Len() > 0 {
		return "", b.String() + "in " + what + ": the same in every run\n", nil
	}
	return fmt.Sprintf("nothing beyond what is guaranteed in %s; %d were admitted, %d rejected", what, r.Admitted, r.Rejected), "", nil
}

// month is what is simulated: subjects that ask for twice their limit all the time, or in
// rushes.
func (o *Options) month(sel strategies.Selection) (cfg sim.Config, err error) {
	steady, err := workloads.Lookup("steady")
	if err != nil {
		return cfg, err
	}
	length := o.Policy.Window.RealLength()
	if o.Policy.Window.Kind.Tumbling() {
		s := o.Policy.Window.At(began)
		length = s.End.Sub(s.Start)
	}
	if o.Policy.Window.Kind == quota.Bucket {
		length = time.Duration(o.Policy.Window.Flow().Until(quota.Level{Units: o.Policy.Limit}))
	}
	if length <= 0 {
		length = time.Hour // a standing policy has no window
	}
	duration := time.Duration(o.Days) * 24 * time.Hour
	perWindow := float64(overLimit * simulatedSubjects * o.Policy.Limit)
	rate := perWindow / length.Seconds()
	cfg = sim.Config{Start: began, Plan: harness.Plan{
		Policy: o.Policy, Workload: steady, Strategies: []strategies.Selection{sel}, Seed: o.Seed,
		Instances: o.Instances, Rate: rate, Duration: duration,
	}}
	cfg.Stream.Set("subjects", simulatedSubjects)
	if rate*duration.Seconds() <= mostRequests {
		return cfg, nil
	}
	cfg.Rate = mostRequests / 4 / duration.Seconds()
	rushes := min(max(int(mostRequests/(rushWindows*perWindow)), 2), mostRushes)
	each := duration / time.Duration(rushes+1)
	for i := range rushes {
		// Windows begin at whole hours, and a rush crosses their ends.
		from := began.Add(time.Duration(i+1) * each).Truncate(time.Hour).Add(-length / 2)
		cfg.Rushes = append(cfg.Rushes, sim.Rush{Rate: rate, From: from, For: min(rushWindows*length, each/2)})
	}
	return cfg, nil
}

// began is the first moment of a simulation.
var began = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
