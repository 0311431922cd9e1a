package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/app/prometheus"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/sweep"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// simSettings are those of a run, and what only virtual time has.
type simSettings struct {
	*group.Settings
	asked         sim.Config // what is taken over as it is given
	preset, start string
	rushes        []string
	swept         []results.Swept // what --param says
	chose         bool            // the preset, since nothing was said of a load
}

// presetOfItsOwn is simulated if nothing is said of a load: it takes seconds, and
// shows what virtual time is for.
const presetOfItsOwn = "adr-008-month-end"

// simLooks is how often --against looks at processor times.
const simLooks = 3

// simRounds is how many pairs --against makes before its first look.
const simRounds = 12

// unsaid reports whether nothing is said of a load.
func (s *simSettings) unsaid() bool {
	load := []string{settings.Load, settings.Time, settings.Trouble}
	return !slices.ContainsFunc(s.All(), func(setting settings.Setting) bool {
		return s.Given(setting.Name) &&
			(slices.Contains(load, setting.Title) || slices.Contains([]string{"workload", "trace", "preset"}, setting.Name))
	})
}

// virtual are the settings that only virtual time has.
func (s *simSettings) virtual() []settings.Setting {
	config := &s.asked
	presets := []string{}
	for _, preset := range sim.Presets() {
		presets = append(presets, preset.Name)
	}
	return []settings.Setting{
		{Name: "preset", Common: true, Title: settings.What, Value: settings.Text(&s.preset, presets...),
			Complete:  settings.Words(presets...),
			Shorthand: true,
			Doc:       "`name` of a simulation that a record describes; " + strings.Join(presets, ", ")},
		{Name: "start", Common: true, Title: settings.Time, Value: settings.Text(&s.start), Computed: true},
		{Name: "region", Common: true, Title: settings.Time, Value: settings.List(&config.Topology.Regions)},
		{Name: "shared-redis", Title: settings.Time, Value: settings.Bool(&config.Topology.SharedRedis)},
		{Name: "rush", Title: settings.Time, Value: settings.List(&s.rushes)},
		{Name: "home", Title: settings.Time, Value: settings.Decimal(&config.Topology.Home, 1)},
		{Name: "every", Title: settings.Time, Value: settings.Span(&config.Every, bounds.MaxVirtualDuration), Computed: true},
		{Name: "tracked", Title: settings.Time, Value: settings.Whole(&config.Tracked, 0, bounds.MaxTracked), Computed: true},
		{Name: "parallel", Title: settings.Search, Value: settings.Whole(&config.Parallel, 0, bounds.MaxParallel)},
		{Name: "rounds", Title: settings.Gates, Value: settings.Whole(&s.Rounds, 1, bounds.MaxRounds), Computed: true,
			Doc: fmt.Sprintf("pairs of rounds of --against, and up to %d times as many while they are inconclusive (default %d)",
				1<<(simLooks-1), simRounds)},
		{Name: "cpu", Title: settings.Output, Value: settings.Bool(&config.CPU)},
	}
}

func simCommand() *cobra.Command {
	s := &simSettings{Settings: group.New(group.Sim)}
	cmd := described("sim", &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := workedOut(cmd, s.Settings, args, s.configure)
			switch {
			case err != nil:
				return err
			case s.PrintOnly:
				if err := s.adopt(&cfg); err != nil {
					return err
				}
				return printConfig(cmd, s.Settings, cfg.Policy.Unit)
			case s.Against != "" && redact.URLs(*s.From["redis"]) != *s.From["redis"]:
				return s.Wrong("redis", errors.New("every user of the machine could read its password in the command lines of "+
					"--against: leave the password out, and set REDISCLI_AUTH"))
			case s.Against != "":
				a := &against{Settings: s.Settings, args: []string{"--cpu"}, looks: simLooks}
				return a.compareWith(cmd, cmp.Or(s.Rounds, simRounds))
			}
			if s.Rank("rounds") == settings.ByFlag { // a file's is read by the rounds that --against starts, too
				return s.Wrong("rounds", errors.New("it is about what --against finds: give --against PROGRAM too"))
			}
			return s.simulate(cmd, &cfg)
		},
		ValidArgsFunction: group.CompleteStrategies,
	})
	cmd.Long += "\n\nPresets:"
	for _, preset := range sim.Presets() {
		lines := layout.Paragraph("  "+layout.Pad(preset.Name, 18)+"  ", preset.Doc, settings.HelpWidth)
		cmd.Long += "\n" + strings.Join(lines, "\n")
	}
	s.register(cmd)
	return cmd
}

func (s *simSettings) register(cmd *cobra.Command) {
	s.Register(cmd, s.virtual(), s.Subject(), s.Stream(), s.Load(), s.Varied(completeParameters), s.Seeded(), s.Shared(),
		s.Trouble(),
		s.Simulated(), s.Stores(string(strategies.NeedRedis)),
		s.Conditions(), s.IfUndecided(), s.Other(), s.Tolerated(), s.Kept(), s.Verbosity(), s.Output(),
		s.ConfigFile(), s.PrintConfig("simulate"))
}

// adopt has the settings that are not given say what a configuration does: that of a preset,
// or what was worked out.
func (s *simSettings) adopt(config *sim.Config) error {
	s.Adopt(&measure.Config{Plan: config.Plan}, func(name string) bool { return !s.Given(name) })
	adopt(s, "rate", &s.Rate, config.Load.PerSecond)
	adopt(s, "region", &s.asked.Topology.Regions, config.Topology.Regions)
	adopt(s, "shared-redis", &s.asked.Topology.SharedRedis, config.Topology.SharedRedis)
	adopt(s, "home", &s.asked.Topology.Home, config.Topology.Home)
	adopt(s, "every", &s.asked.Every, config.Every)
	adopt(s, "tracked", &s.asked.Tracked, config.Tracked)
	var rushes []string
	for _, rush := range config.Rushes {
		rushes = append(rushes, rush.String())
	}
	adopt(s, "rush", &s.rushes, rushes)
	if !config.Start.IsZero() {
		adopt(s, "start", &s.start, config.Start.UTC().Format(time.RFC3339))
	}
	return s.AdoptWorkload(config.Workload, config.Stream.Options)
}

func adopt[T any](s *simSettings, name string, to *T, v T) {
	if !s.Given(name) {
		*to = v
	}
}

// fromPreset takes over what a preset says, except if something else is given.
func (s *simSettings) fromPreset() error {
	preset, err := sim.LookupPreset(s.preset)
	if err != nil {
		return s.Wrong("preset", err)
	}
	config := sim.Config{Plan: harness.Plan{Callers: s.Callers}, Every: s.asked.Every, Tracked: s.asked.Tracked}
	if err := preset.Set(&config); err != nil {
		return fail(exit.Usage, err)
	}
	adopt(s, "policy", &s.Policy, config.Policy.Name)
	if err := s.adopt(&config); err != nil {
		return err
	}
	return s.addTrouble(config.Trouble)
}

// addTrouble adds that of a preset to what is given. A clock that is given, or an empty list, takes the place of its
// clocks.
func (s *simSettings) addTrouble(preset trouble.List) error {
	given, err := trouble.ParseAll(s.Troubles)
	if err != nil {
		return s.Wrong("trouble", err)
	}
	if s.Given("trouble") && (len(given) == 0 || len(given.Of(trouble.Skew)) > 0) {
		preset = preset.Without(trouble.Skew)
	}
	instances := s.Instances * max(1, len(group.Items(s.asked.Topology.Regions)))
	preset = slices.DeleteFunc(slices.Clone(preset), func(event trouble.Event) bool {
		return event.Where.Instance >= instances
	})
	s.Troubles = append(preset.Strings(), s.Troubles...)
	return nil
}

// configure turns the settings into a simulation.
func (s *simSettings) configure() (config sim.Config, err error) {
	s.Expand()
	if s.unsaid() {
		s.preset = presetOfItsOwn
		s.chose = true
	}
	if s.preset != "" {
		if err := s.fromPreset(); err != nil {
			return config, err
		}
		if s.chose { // nobody asked for clocks that differ
			s.Troubles = nil
		}
	}
	if err := s.ReadClients(); err != nil {
		return config, err
	}
	config = s.asked
	config.Topology.Regions = group.Items(config.Topology.Regions)
	config.Plan, err = s.Plan()
	if err != nil {
		return config, err
	}
	if i := slices.IndexFunc(s.Gates, compare.Gate.Timed); i >= 0 {
		return config, s.Wrong("require",
			fmt.Errorf("%s: a simulation has no timings; require them of quotabench run", s.Required[i]))
	}
	config.Load, err = s.Issued(config.Workload, config.Workload.Loop)
	if err != nil {
		return config, err
	}
	if err := s.moments(&config); err != nil {
		return config, err
	}
	if err := config.Complete(); err != nil {
		return config, fail(exit.Usage, err)
	}
	info, err := s.Rehearse(&config.Plan)
	if err != nil {
		return config, err
	}
	if err := config.CheckStream(info); err != nil {
		return config, fail(exit.Usage, err)
	}
	return config, s.sweeps(&config)
}

// sweeps reads what varies.
func (s *simSettings) sweeps(config *sim.Config) (err error) {
	if len(s.Params) == 0 {
		return nil
	}
	s.swept, err = sweep.ParseAll(s.Params)
	if err == nil {
		_, err = sweep.Simulations(*config, s.swept)
	}
	if err != nil {
		return s.Wrong("param", err)
	}
	return once(s.Settings, s.swept)
}

// moments reads what is given in virtual time.
func (s *simSettings) moments(config *sim.Config) (err error) {
	if s.start != "" {
		config.Start, err = time.Parse(time.RFC3339, s.start)
		if err != nil {
			return s.Wrong("start", fmt.Errorf("give a moment such as 2026-01-31T12:00:00Z, not %q", s.start))
		}
	}
	for _, text := range group.Items(s.rushes) {
		rush, err := sim.ParseRush(text)
		if err != nil {
			return s.Wrong("rush", err)
		}
		config.Rushes = append(config.Rushes, rush)
	}
	return nil
}

func (s *simSettings) simulate(cmd *cobra.Command, cfg *sim.Config) (err error) {
	selected, skipped := cfg.Split()
	err = session.LeaveOut(s.Settings, &cfg.Plan, skipped, func(sel strategies.Selection, plan *harness.Plan) error {
		other := *cfg
		other.Plan = *plan
		return other.CannotRun(sel)
	})
	if err != nil {
		return err
	}
	opened, err := session.Open(cmd, s.Settings, nil)
	if err != nil {
		return err
	}
	defer func() { err = opened.Close(err) }()
	cfg.Stores = opened.Stores
	if s.Metrics != "" {
		cfg.Live = new(sim.Live)
		if err := opened.Serve(prometheus.Simulated(cfg.Live)); err != nil {
			return err
		}
	}
	note := ""
	if s.chose {
		note = "no load was given: using --preset " + s.preset + ", with clocks that agree"
	}
	if err := opened.Begin(note, s.Chose); err != nil {
		return err
	}
	file := session.Simulated(cfg.Seed, skipped, opened.Infos())
	file.Workload = session.WorkloadRecord(cfg.Workload.Name, workloads.Info{}, cfg.Notes())
	if s.swept != nil {
		file.Sweep = &results.Sweep{Parameters: s.swept}
	}
	report, err := s.watched(opened, cfg, &file, int64(len(selected)))
	if report == nil {
		return session.InterruptedOr(opened.Ctx, err, exit.Failed)
	}
	return s.record(opened, cfg, &file, report)
}

// record completes the record of a simulation, writes all formats, and turns the verdict into the outcome.
func (s *simSettings) record(opened *session.Session, cfg *sim.Config, file *results.File, report *sim.Report) error {
	if report.Interrupted && len(report.Runs) == 0 {
		return fail(exit.Interrupted, session.ErrNothing)
	}
	for _, run := range report.Runs {
		if s.Verbose && run.Trace != "" {
			fmt.Fprintf(opened.Stderr, "%s: trace %s\n", run.Params.Label, run.Trace)
		}
	}
	file.Runs = report.Runs
	file.Interrupted = report.Interrupted
	file.Workload = session.WorkloadRecord(cfg.Workload.Name, report.Info, cfg.Notes())
	bundle := render.Bundle{File: file, Series: report.Series, Provenance: session.Provenance(opened.Ctx)}
	if err := opened.WriteBundle(&bundle); err != nil {
		return err
	}
	return session.Gated(opened.Stderr, session.Verdict(file), compare.Check(file, s.Gates))
}

// watched simulates, and shows how far it has come.
func (s *simSettings) watched(x *session.Session, cfg *sim.Config, file *results.File,
	strategies int64) (*sim.Report, error) {
	defer x.Progress.End()
	cfg.Progress = new(sim.Progress)
	defer x.Progress.Watch(func() terminal.Status {
		return terminal.Status{Text: format.Plural(strategies, "strategy", "strategies") +
			" in virtual time", Share: cfg.Progress.Share()}
	})()
	began := clock.Nano()
	keep := &session.Keeper{Dir: x.Dir, File: file, Progress: x.Progress}
	cfg.SoFar = func(runs []results.Run) {
		keep.SoFar(runs)
		if run := &runs[len(runs)-1]; s.Verbose {
			fmt.Fprintf(x.Progress, "%s: %d requests in %v of virtual time, done %v after the start\n", run.Params.Label,
				run.Issued,
				time.Duration(run.ElapsedNS).Round(time.Millisecond), time.Duration(clock.Nano()-began).Round(time.Millisecond))
		}
	}
	cfg.Isolate = isolates
	if s.swept == nil {
		return sim.Run(x.Ctx, *cfg)
	}
	points, err := sweep.Simulations(*cfg, s.swept)
	if err != nil {
		return nil, err
	}
	return sweep.Simulate(x.Ctx, points)
}
