package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/prometheus"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/shortlist"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
)

func runCommand() *cobra.Command {
	s := group.New(group.Run)
	var several session.Measurer
	var further []settings.Setting
	if session.Several != nil {
		several = session.Several()
		further = several.Settings()
	}
	cmd := described("run", &cobra.Command{
		RunE:              func(cmd *cobra.Command, args []string) error { return measureOrCompare(cmd, s, several, args) },
		ValidArgsFunction: group.CompleteStrategies,
	})
	registerRun(cmd, s, further)
	return cmd
}

// registerRun makes the flags of run, and further ones.
func registerRun(cmd *cobra.Command, s *group.Settings, further []settings.Setting) {
	s.Register(cmd, s.Subject(), s.Stream(), s.Load(), s.Varied(completeParameters), s.Repeated(), s.Budgeted(),
		s.Seeded(), s.Shared(),
		further, s.Trouble(), s.Connected(), s.Stores(), s.Conditions(), s.Survived(), s.IfUndecided(), s.Other(), s.Kept(),
		s.Verbosity(), s.Output(), s.ConfigFile(), s.PrintConfig("measure"))
}

func measureOrCompare(cmd *cobra.Command, s *group.Settings, several session.Measurer, args []string) error {
	together := false
	j, err := workedOut(cmd, s, args, func() (*job, error) {
		if several != nil {
			var err error
			together, err = several.Prepare(s)
			if err != nil {
				return nil, err
			}
		}
		return asked(s)
	})
	if err != nil {
		return err
	}
	cfg := j.points[0]
	switch {
	case s.PrintOnly:
		return printConfig(cmd, s, cfg.Policy.Unit)
	case s.Against != "":
		return runAgainst(cmd, s, &cfg)
	}
	if together {
		return several.Run(cmd, s, &cfg)
	}
	return carryOut(cmd, s, j)
}

// asked turns the settings into what is measured: one setting, or those of a sweep.
func asked(s *group.Settings) (*job, error) {
	if err := mustName(s); err != nil {
		return nil, err
	}
	if s.Sweeps() {
		v := sweeping{s}
		return v.job()
	}
	cfg, err := s.Measurement()
	if err != nil {
		return nil, err
	}
	j := &job{points: []measure.Config{cfg}, measure: alone}
	if s.Considers() {
		j.short, err = considered(s, &cfg)
	}
	return j, err
}

// alone measures a job of one point.
func alone(ctx context.Context, points []measure.Config) (*measure.Report, error) {
	return measure.Measure(ctx, points[0])
}

// printConfig writes the settings in force; unit is that of the policy's limit.
func printConfig(cmd *cobra.Command, s *group.Settings, unit string) error {
	return s.Print(cmd.OutOrStdout(), cmd.Name(), map[string]string{"limit": unit})
}

// job is what a command measures.
type job struct {
	// points are the configurations, which differ in what sweep says; nil for one alone.
	points []measure.Config
	sweep  *results.Sweep
	// measure measures them once they have their stores.
	measure func(ctx context.Context, points []measure.Config) (*measure.Report, error)
	// short finds the strategies of the only point; nil if the command names them.
	short *shortlist.Shortlist
}

// needed are the stores that some point needs.
func (j *job) needed() (names []string) {
	if j.short != nil {
		cfg := j.points[0]
		cfg.Strategies = j.short.Measure()
		return cfg.StoresNeeded()
	}
	for i := range j.points {
		names = append(names, j.points[i].StoresNeeded()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// check refuses what cannot be measured here, and returns what is left out with the
// reason.
func (j *job) check(x *session.Session) (skipped map[string]string, err error) {
	skipped = map[string]string{}
	for i := range j.points {
		cfg := &j.points[i]
		cfg.Stores = x.Stores
		_, without := cfg.Split()
		err := session.LeaveOut(x.Settings, &cfg.Plan, without, func(sel strategies.Selection, plan *harness.Plan) error {
			other := *cfg
			other.Plan = *plan
			return other.CannotRun(sel)
		})
		if err != nil {
			return nil, err
		}
		err = cfg.Complete()
		if err == nil { // the stores are known now
			err = cfg.CheckRoom(x.Ctx)
		}
		if err != nil {
			return nil, fail(ExitUsage, err)
		}
		maps.Copy(skipped, without)
	}
	return skipped, nil
}

// notes are those that hold for all points.
func (j *job) notes() []string {
	notes := j.points[0].Notes()
	for i := range j.points {
		own := j.points[i].Notes()
		notes = slices.DeleteFunc(notes, func(n string) bool { return !slices.Contains(own, n) })
	}
	return notes
}

// carryOut measures, reports, and turns the outcome into an exit code. Nothing is
// written before all that can be wrong with the command line has been found.
func carryOut(cmd *cobra.Command, s *group.Settings, j *job) (err error) {
	x, err := session.Open(cmd, s, j.needed())
	if err != nil {
		return err
	}
	defer func() { err = x.Close(err) }()
	var skipped map[string]string
	if j.short != nil {
		err = j.narrow(x)
	} else {
		skipped, err = j.check(x)
	}
	if err != nil {
		return err
	}
	live := new(measure.Live)
	if s.Metrics != "" {
		if err := x.Serve(prometheus.Measured(live)); err != nil {
			return err
		}
	}
	quick := ""
	if s.Quick {
		quick = fmt.Sprintf("--quick: %s of %v, %s loop", format.Number(s.Rounds, "round"), s.Duration, s.Loop)
	}
	if err := x.Begin(s.Chose, quick); err != nil {
		return err
	}
	first := &j.points[0]
	file := x.Measured(first.Workload.Name, skipped)
	file.Sweep = j.sweep
	budget := first.Budget
	if j.short != nil {
		if err := j.finish(x); err != nil {
			return err
		}
		file.Considered = j.short.Considered()
		if len(first.Strategies) == 0 || x.Ctx.Err() != nil {
			return j.nothingLeft(x, &file)
		}
	}
	for i := range j.points {
		j.points[i].Live = live
		j.points[i].Observer = &session.Keeper{Dir: x.Dir, File: &file, Progress: x.Progress}
	}
	x.Progress.Within(first.Budget)
	if s.Looking { // the measurement ends after the first look if all is decided then
		first.Enough = func(round int, runs []results.Run) bool { return round == ranking.FirstLook && decided(file, runs) }
	}
	report, err := j.measure(x.Ctx, j.points)
	x.Progress.End()
	if err != nil {
		return session.InterruptedOr(x.Ctx, err, ExitFailed)
	}
	if report.Interrupted && len(report.Runs) == 0 {
		return fail(ExitInterrupted, session.ErrNothing)
	}
	file.Runs = report.Runs
	file.Interrupted = report.Interrupted
	file.Workload = session.WorkloadRecord(first.Workload.Name, report.Info, j.notes())
	file.Skipped, file.Ended = append(file.Skipped, report.Skipped...), ended(s, first, budget, report, &file)
	rows := required(&file, s.Gates)
	if err := x.WriteBundle(&render.Bundle{File: &file}); err != nil {
		return err
	}
	err = session.Gated(x.Stderr, session.Verdict(&file), rows)
	err = answered(&file, err)
	if err != nil || len(report.Skipped) == 0 {
		return err
	}
	return fail(ExitFailed, fmt.Errorf("%s: %s", report.Skipped[0].Strategy, report.Skipped[0].Reason))
}

func decided(file results.File, runs []results.Run) bool {
	file.Runs = runs
	file.Summaries = nil
	return !slices.ContainsFunc(ranking.Of(file), func(setting ranking.Setting) bool { return !setting.Decided() })
}

// ended says when the measurement ended and why, if no number of rounds was given or there
// was no time for it. The budget is that of the whole run.
func ended(s *group.Settings, config *measure.Config, budget time.Duration, report *measure.Report,
	file *results.File) string {
	rounds := 0
	for i := range report.Runs {
		rounds = max(rounds, report.Runs[i].Repetition-config.Earlier)
	}
	text := "stopped after " + format.Number(rounds, "round") + ": "
	switch {
	case report.Interrupted || !s.Looking && !report.OutOfTime:
		return ""
	case report.OutOfTime && rounds < results.LeastRounds:
		return fmt.Sprintf("%sthe budget of %g s is spent; intervals of timings need %d rounds, so give a longer --budget",
			text, budget.Seconds(), results.LeastRounds)
	case report.OutOfTime:
		return fmt.Sprintf("%sthe budget of %g s is spent", text, budget.Seconds())
	case decided(*file, report.Runs):
		return text + "order and verdicts are decided"
	}
	return format.Number(rounds, "round") + ", all that were planned: order or verdicts are not all decided"
}
