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
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
)

func runCommand() *cobra.Command {
	flags := group.New(group.Run)
	var several session.Measurer
	var further []settings.Setting
	if session.Several != nil {
		several = session.Several()
		further = several.Settings()
	}
	cmd := described("run", &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error {
			return measureOrCompare(cmd, flags, several, args)
		},
		ValidArgsFunction: group.CompleteStrategies,
	})
	registerRun(cmd, flags, further)
	return cmd
}

// registerRun makes the flags of run, and further ones.
func registerRun(cmd *cobra.Command, flags *group.Settings, further []settings.Setting) {
	flags.Register(cmd,
		flags.Subject(), flags.Stream(), flags.Load(), flags.Varied(completeParameters),
		flags.Repeated(), flags.Budgeted(), flags.Seeded(), flags.Shared(), further,
		flags.Trouble(), flags.Connected(), flags.Stores(), flags.Conditions(), flags.Survived(), flags.IfUndecided(),
		flags.Other(), flags.Tolerated(), flags.Kept(), flags.Verbosity(), flags.Output(), flags.ConfigFile(),
		flags.PrintConfig("measure"))
}

func measureOrCompare(cmd *cobra.Command, flags *group.Settings, several session.Measurer, args []string) error {
	together := false
	job, err := workedOut(cmd, flags, args, func() (*job, error) {
		if several != nil {
			var err error
			together, err = several.Prepare(flags)
			if err != nil {
				return nil, err
			}
		}
		return asked(flags)
	})
	if err != nil {
		return err
	}
	cfg := job.points[0]
	switch {
	case flags.PrintOnly:
		return printConfig(cmd, flags, cfg.Policy.Unit)
	case flags.Against != "":
		return runAgainst(cmd, flags, &cfg)
	}
	if together {
		return several.Run(cmd, flags, &cfg)
	}
	return carryOut(cmd, flags, job)
}

// carryOut opens the stores of a job, and takes its steps one after the other. The error of the first that fails is
// the outcome of the command, with its exit code.
func carryOut(cmd *cobra.Command, flags *group.Settings, job *job) (err error) {
	opened, err := session.Open(cmd, flags, job.needed())
	if err != nil {
		return err
	}
	defer func() { err = opened.Close(err) }()
	run := &measuredRun{Session: opened, job: job, live: new(measure.Live)}
	steps := []func() error{
		run.check, // before anything is written
		run.serve,
		run.begin,
		run.shortlist,
		run.measure,
		run.record,
		run.report,
		run.gate,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// measuredRun is a job under way, with its stores open.
type measuredRun struct {
	*session.Session
	job  *job
	live *measure.Live
	// skipped are the strategies that cannot be measured here, with the reasons.
	skipped map[string]string
	file    results.File
	// budget is the time of the whole run.
	budget   time.Duration
	measured *measure.Report
	// rows are the gates, as they were decided.
	rows []compare.Row
}

// first is the configuration of the first point, or of the only one.
func (r *measuredRun) first() *measure.Config { return &r.job.points[0] }

// check refuses what cannot be measured here. A shortlist leaves it out.
func (r *measuredRun) check() (err error) {
	if r.job.short != nil {
		return r.job.narrow(r.Session)
	}
	r.skipped, err = r.job.check(r.Session)
	return err
}

// serve serves figures to Prometheus while the run lasts, if they were asked for.
func (r *measuredRun) serve() error {
	if r.Metrics == "" {
		return nil
	}
	return r.Serve(prometheus.Measured(r.live))
}

// begin makes the directory, and starts the record.
func (r *measuredRun) begin() error {
	quick := ""
	if r.Quick {
		quick = fmt.Sprintf("--quick: %s of %v, %s loop", format.Number(r.Rounds, "round"), r.Duration, r.Loop)
	}
	if err := r.Begin(r.Chose, quick); err != nil {
		return err
	}
	r.file = r.Measured(r.first().Workload.Name, r.skipped)
	r.file.Sweep = r.job.sweep
	r.budget = r.first().Budget
	return nil
}

// shortlist takes the strategies through the stages before the measurement, if the command names none.
func (r *measuredRun) shortlist() error {
	if r.job.short == nil {
		return nil
	}
	if err := r.job.finish(r.Session); err != nil {
		return err
	}
	r.file.Considered = r.job.short.Considered()
	if len(r.first().Strategies) == 0 || r.Ctx.Err() != nil {
		return r.job.nothingLeft(r.Session, &r.file)
	}
	return nil
}

// measure measures all points. The record is kept up to date meanwhile.
func (r *measuredRun) measure() error {
	for i := range r.job.points {
		point := &r.job.points[i]
		point.Live = r.live
		point.Observer = &session.Keeper{Dir: r.Dir, File: &r.file, Progress: r.Progress}
	}
	r.Progress.Within(r.first().Budget)
	if r.Looking { // the measurement ends after the first look if all is decided then
		r.first().Enough = func(round int, runs []results.Run) bool {
			return round == ranking.FirstLook && decided(r.file, runs)
		}
	}
	measured, err := r.job.measure(r.Ctx, r.job.points)
	r.Progress.End()
	if err != nil {
		return session.InterruptedOr(r.Ctx, err, exit.Failed)
	}
	if measured.Interrupted && len(measured.Runs) == 0 {
		return fail(exit.Interrupted, session.ErrNothing)
	}
	r.measured = measured
	return nil
}

// record completes the record, with the conditions that the strategies had to meet.
func (r *measuredRun) record() error {
	r.file.Runs = r.measured.Runs
	r.file.Interrupted = r.measured.Interrupted
	r.file.Workload = session.WorkloadRecord(r.first().Workload.Name, r.measured.Info, r.job.notes())
	r.file.Ended = ended(r.Settings, r.first(), r.budget, r.measured, &r.file)
	r.file.Skipped = append(r.file.Skipped, r.measured.Skipped...)
	r.rows = required(&r.file, r.Gates)
	return nil
}

// report writes the record and everything that is made of it.
func (r *measuredRun) report() error { return r.WriteBundle(&render.Bundle{File: &r.file}) }

// gate turns the result into the outcome of the command.
func (r *measuredRun) gate() error {
	err := session.Gated(r.Stderr, session.Verdict(&r.file), r.rows)
	err = answered(&r.file, err)
	if err != nil || len(r.measured.Skipped) == 0 {
		return err
	}
	skipped := r.measured.Skipped[0]
	return fail(exit.Failed, fmt.Errorf("%s: %s", skipped.Strategy, skipped.Reason))
}

// asked turns the settings into what is measured: one setting, or those of a sweep.
func asked(flags *group.Settings) (*job, error) {
	if err := mustName(flags); err != nil {
		return nil, err
	}
	if flags.Sweeps() {
		v := sweeping{flags}
		return v.job()
	}
	cfg, err := flags.Measurement()
	if err != nil {
		return nil, err
	}
	job := &job{points: []measure.Config{cfg}, measure: alone}
	if flags.Considers() {
		job.short, err = considered(flags, &cfg)
	}
	return job, err
}

// alone measures a job of one point.
func alone(ctx context.Context, points []measure.Config) (*measure.Report, error) {
	return measure.Measure(ctx, points[0])
}

// printConfig writes the settings in force; unit is that of the policy's limit.
func printConfig(cmd *cobra.Command, flags *group.Settings, unit string) error {
	return flags.Print(cmd.OutOrStdout(), cmd.Name(), map[string]string{"limit": unit})
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
func (j *job) check(opened *session.Session) (skipped map[string]string, err error) {
	skipped = map[string]string{}
	for i := range j.points {
		without, err := checkPoint(opened, &j.points[i])
		if err != nil {
			return nil, err
		}
		maps.Copy(skipped, without)
	}
	return skipped, nil
}

func checkPoint(opened *session.Session, cfg *measure.Config) (skipped map[string]string, err error) {
	cfg.Stores = opened.Stores
	_, skipped = cfg.Split()
	cannot := func(sel strategies.Selection, plan *harness.Plan) error {
		other := *cfg
		other.Plan = *plan
		return other.CannotRun(sel)
	}
	if err := session.LeaveOut(opened.Settings, &cfg.Plan, skipped, cannot); err != nil {
		return nil, err
	}
	return skipped, fits(opened, cfg)
}

// fits refuses a configuration, now that its stores are known, that does not fit.
func fits(opened *session.Session, cfg *measure.Config) error {
	err := cfg.Complete()
	if err == nil {
		err = cfg.CheckRoom(opened.Ctx)
	}
	return fail(exit.Usage, err)
}

// notes are the notes that all points have.
func (j *job) notes() []string {
	notes := j.points[0].Notes()
	for i := range j.points {
		own := j.points[i].Notes()
		notes = slices.DeleteFunc(notes, func(n string) bool { return !slices.Contains(own, n) })
	}
	return notes
}

// decided reports whether order and verdicts of all strategies are decided by the runs.
func decided(file results.File, runs []results.Run) bool {
	file.Runs = runs
	file.Summaries = nil
	return !slices.ContainsFunc(ranking.Of(file), func(setting ranking.Setting) bool { return !setting.Decided() })
}

// ended says when the measurement ended and why, if no number of rounds was given or there
// was no time for it. The budget is that of the whole run.
func ended(flags *group.Settings, config *measure.Config, budget time.Duration, report *measure.Report,
	file *results.File) string {
	rounds := 0
	for i := range report.Runs {
		rounds = max(rounds, report.Runs[i].Repetition-config.Earlier)
	}
	text := "stopped after " + format.Number(rounds, "round") + ": "
	switch {
	case report.Interrupted || !flags.Looking && !report.OutOfTime:
		return ""
	case report.OutOfTime && rounds < bounds.LeastRounds:
		return fmt.Sprintf("%sthe budget of %g s is spent; intervals of timings need %d rounds, so give a longer --budget",
			text, budget.Seconds(), bounds.LeastRounds)
	case report.OutOfTime:
		return fmt.Sprintf("%sthe budget of %g s is spent", text, budget.Seconds())
	case decided(*file, report.Runs):
		return text + "order and verdicts are decided"
	}
	return format.Number(rounds, "round") + ", all that were planned: order or verdicts are not all decided"
}
