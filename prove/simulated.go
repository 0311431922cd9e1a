package prove

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

const (
	// simulatedSubjects ask in a simulation, each of them for twice its limit.
	simulatedSubjects = 3
	overLimit         = 2
	// mostRequests are about as many as a simulation has: if they are too few for the
	// whole time, they come in rushes.
	mostRequests = 100_000
	rushWindows  = 5
	mostRushes   = 60
	// fewestWindows are simulated, however long they are.
	fewestWindows = 4
)

// simulated is a month of virtual time.
func (o *Options) simulated(t *testing.T, sel strategies.Selection) {
	t.Helper()
	cfg, err := o.month(sel)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Second == nil { // of two windows no history is kept
		cfg.Archive = t.TempDir()
	}
	report, err := sim.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) == 0 {
		t.Skip("not simulated: no run was made")
	}
	run := &report.Runs[0]
	what := fmt.Sprintf("%.0f days of virtual time, %d requests of %d subjects on %s, seed %d",
		cfg.Duration.Hours()/24, run.Issued, simulatedSubjects, format.Plural(int64(cfg.Instances), "instance", "instances"),
		o.Seed)
	if wrong := o.wrongOfMonth(sel, &cfg, run); wrong != "" {
		first, err := firstOfMonth(&cfg, run)
		if err != nil {
			t.Log(err) // what was found stands without its first moment
		}
		t.Errorf("\n%s%sIn %s: the same in every run. Again: go test -run '^%s$'\n", wrong, first, what, t.Name())
		return
	}
	if o.unnamed(sel) {
		what += ", whose rejections are not judged, since nobody says which of the two windows they are of"
	}
	t.Logf("claimed: nothing beyond what is guaranteed in %s; %d were admitted, %d rejected", what, run.Admitted,
		run.Rejected)
}

// wrongOfMonth is what breaks a clause, and what was rejected falsely if no clause allows any; empty for nothing.
func (o *Options) wrongOfMonth(sel strategies.Selection, cfg *sim.Config, run *results.Run) string {
	unit := cfg.Policy.Unit
	var builder strings.Builder
	for _, clause := range run.Guarantee {
		if clause.Verdict != results.Broken || o.unnamed(sel) && clause.Property == string(quota.PropertyFalseReject) {
			continue
		}
		fmt.Fprintf(&builder, "%s: %s beyond the limit of %d in the worst window, %d promised; %s in %d of %d windows of "+
			"which more was asked\n",
			strings.ToUpper(clause.Property), format.Units(clause.Certain, unit), cfg.Policy.Limit, clause.Bound,
			format.Units(run.Leak.Units, unit),
			run.Leak.LeakedTrials, run.Leak.Trials)
	}
	declared := o.unnamed(sel) || slices.ContainsFunc(sel.Guarantee, func(clause quota.Clause) bool {
		return clause.Property == quota.PropertyFalseReject
	})
	if n := run.FalseRejects.Count; n > 0 && !declared {
		fmt.Fprintf(&builder, "FALSE-REJECT: %d of %d requests were rejected although there was room for them all the time\n",
			n, run.Issued)
	}
	return builder.String()
}

// firstOfMonth tells the first moment at which something is wrong; empty if no history was kept, or none shows it.
func firstOfMonth(cfg *sim.Config, run *results.Run) (string, error) {
	if cfg.Archive == "" {
		return "", nil
	}
	wrong := func(verdict *oracle.Verdict) bool { return verdict.LeakUnits > 0 }
	if run.Leak.Units == 0 {
		wrong = func(verdict *oracle.Verdict) bool { return verdict.FalseRejects > 0 }
	}
	first, epoch, err := firstWrong(cfg.Archive, run, wrong)
	if err != nil || first == nil {
		return "", err
	}
	return first.text(epoch, &cfg.Policy), nil
}

// unnamed reports whether there is a second window that requests do not name.
func (o *Options) unnamed(sel strategies.Selection) bool { return o.Second.Limit > 0 && !sel.TwoQuotas }

// month is what is simulated: subjects that ask for twice their limit all the time, or in
// rushes.
func (o *Options) month(sel strategies.Selection) (cfg sim.Config, err error) {
	steady, err := workloads.Lookup("steady")
	if err != nil {
		return cfg, err
	}
	policy := o.served
	instances := o.Instances
	if instances == 0 {
		instances = 2
		if len(sel.Needs) == 0 {
			instances = 1
		}
	}
	length := policy.Window.RealLength()
	if policy.Window.Kind.Tumbling() {
		span := policy.Window.At(began)
		length = span.End.Sub(span.Start)
	}
	if policy.Window.Kind == quota.Bucket {
		length = time.Duration(policy.Window.Flow().Until(quota.Level{Units: policy.Limit}))
	}
	if length <= 0 {
		length = time.Hour // a standing policy has no window
	}
	duration := max(time.Duration(o.Days)*24*time.Hour, fewestWindows*length)
	perWindow := float64(overLimit * simulatedSubjects * policy.Limit)
	rate := perWindow / length.Seconds()
	cfg = sim.Config{Start: began, Plan: harness.Plan{
		Policy: policy, Traffic: harness.Traffic{Workload: steady, Load: harness.OpenAt(rate), Duration: duration},
		Strategies: []strategies.Selection{sel}, Seed: o.Seed,
		Instances: instances,
	}}
	if o.Second.Limit > 0 && sel.TwoQuotas {
		cfg.Second = &o.Second
	}
	cfg.Stream.Set("subjects", simulatedSubjects)
	if rate*duration.Seconds() <= mostRequests {
		return cfg, nil
	}
	cfg.Load = harness.OpenAt(mostRequests / 4 / duration.Seconds())
	// No two begin in the same hour.
	rushes := min(max(int(mostRequests/(rushWindows*perWindow)), 2), mostRushes, int(duration.Hours())-1)
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
