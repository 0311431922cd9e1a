package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/metrics"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results/compare"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/results/text/layout"
	"github.com/quotabench/quotabench/strategies"
)

// simSettings are those of run that apply, and what only virtual time has.
type simSettings struct {
	*settings
	preset, start string
	regions       []string
	skew, rushes  []string
	home          float64
	shared        bool
	every         time.Duration
	tracked       int
	parallel      int
	chose         bool // the preset, since nothing was said of a load
}

// presetOfItsOwn is simulated where nothing is said of a load: it takes seconds, and
// shows what virtual time is for.
const presetOfItsOwn = "adr-008-month-end"

// unsaid reports whether neither strategies nor a load are named.
func (s *simSettings) unsaid() bool {
	beside := []string{"seed", "parallel", "fail-on", "history", "json", "verbose", "out"}
	return slices.Equal(s.strategy, []string{"core"}) &&
		!slices.ContainsFunc(s.table, func(x setting) bool { return s.given(x.name) && !slices.Contains(beside, x.name) })
}

// simulatedStore is the kind of store that a real server can stand for.
const simulatedStore = string(strategies.NeedRedis)

// notSimulated are settings of run, beside the stores, that mean nothing in virtual
// time.
var notSimulated = []string{"rounds", "budget", "quick", "pool", "client", "client-retries", "cores", "against", "format"}

func newSimSettings() *simSettings {
	s := &simSettings{settings: newSettings()}
	s.workers, s.virtual = 0, true
	for _, from := range s.from {
		*from = "" // a store in this process
	}
	s.table = slices.DeleteFunc(s.table, func(x setting) bool {
		return x.store && x.name != simulatedStore && x.name != simulatedStore+"-image" || slices.Contains(notSimulated, x.name)
	})
	s.fresh = func() *settings { return newSimSettings().settings }
	var presets []string
	for _, p := range sim.Presets() {
		presets = append(presets, p.Name)
	}
	s.table = append([]setting{
		{name: "preset", value: &text{p: &s.preset, choices: presets}, complete: completeWords(presets...), shorthand: true,
			doc: "`name` of a simulation that a record describes: " + strings.Join(presets, ", ")},
		{name: "start", value: &text{p: &s.start}, computed: true,
			doc: "first moment of virtual time, e.g. `2026-01-31T12:00:00Z` (default 2026-01-01T00:00:00Z)"},
		{name: "region", value: &list{p: &s.regions},
			doc: "`names` of regions, 80 to 150 ms apart, each with a Redis; may be repeated"},
		{name: "shared-redis", value: &boolean{&s.shared}, doc: "one Redis for all regions, in the first"},
		{name: "rush", value: &list{p: &s.rushes}, doc: "more arrivals for a while, e.g. `200@2026-02-28T23:59:30Z+1m` (requests per second, from when, for how long); may be repeated"},
		{name: "home", value: decimal(&s.home, 1), doc: "`share` of a subject's requests that reach its home region; the others reach any"},
		{name: "skew", value: &list{p: &s.skew}, doc: "`times` by which instances' clocks are ahead, in their order, e.g. 0s,2s,-2s"},
		{name: "every", value: span(&s.every, sim.MaxDuration), computed: true, doc: "virtual time between two samples (default: a 288th of the duration)"},
		{name: "tracked", value: whole(&s.tracked, 0, sim.MaxTracked), computed: true, doc: "subjects whose counters are read at each sample (default 200)"},
		{name: "parallel", value: whole(&s.parallel, 0, sim.MaxParallel), doc: "strategies simulated at the same time, each in memory of its own; 0 for one per processor"},
	}, s.table...)
	for name, doc := range map[string]string{
		"workers":          "callers at the same time (default 50); in open loop the most requests in service at once (default 10000)",
		"duration":         "virtual time in which requests are issued (default 1m0s; no bound with --requests or --trace)",
		"requests":         "most requests per strategy; 0 for no bound",
		"speed":            "replay at k times the recorded speed, windows shrunk alike (default 1)",
		"outage":           "inject a store outage, in all regions, e.g. `redis:0.3-0.6` (shares of the duration); with :empty added it comes back without its data, with :failover=20ms as its replica of so long before; may be repeated",
		"decision-timeout": "real time that a strategy may block outside of the simulation, on a mutex or a channel, before it is given up (default " + harness.DefaultDecisionTimeout.String() + ")",
		"instances":        "application instances in each region, that share its stores; a preset has its own",
		"metrics":          "serve figures to Prometheus at this `address` while the simulation lasts, in virtual time and labelled so, e.g. 127.0.0.1:9464 or :9464, which is the loopback interface too",
		"redis":            "a real Redis that carries the commands out, at virtual moments: process, container or a URL (default: a table in this process)",
	} {
		s.lookup(name).doc = doc
	}
	s.lookup("duration").value = span(&s.duration, sim.MaxDuration)
	s.lookup("workers").value = whole(&s.workers, 1, sim.MaxWorkers)
	s.lookup("workers").computed, s.lookup(simulatedStore).computed = true, true
	return s
}

func simCommand() *cobra.Command {
	s := newSimSettings()
	var config fileFlags
	var explained strings.Builder
	for _, p := range sim.Presets() {
		lines := layout.Paragraph("  "+layout.Pad(p.Name, 18)+"  ", p.Doc, helpWidth)
		explained.WriteString(strings.Join(lines, "\n") + "\n")
	}
	cmd := &cobra.Command{
		Use:   "sim [strategy...]",
		Short: "Run strategies in virtual time: days, months and regions",
		Long: "Runs the strategies' own code in virtual time, the same every time from a seed. Latencies\n" +
			"are modelled after record 003, keys expire and windows turn; judged as by run. Writes\n" +
			"results.json, plots, and how leak, drift, hit rates and staleness develop, to --out. Alone it\n" +
			"takes the preset " + presetOfItsOwn + ".\n\nPresets:\n" + strings.TrimRight(explained.String(), "\n"),
		Example: "  quotabench sim three-tier --preset adr-005-day\n" +
			"  quotabench sim incr-expire --policy user-links --workload steady --rate 1 \\\n" +
			"      --start 2026-01-31T00:00:00Z --duration 48h\n" +
			"  quotabench sim three-tier,redis-hash --region us,eu --duration 6h --workload steady --rate 50\n" +
			"  quotabench sim three-tier --preset adr-005-day --print-config > day.yaml\n" +
			"  quotabench sim --config day.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := before(cmd.Context(), func() (sim.Config, error) {
				if err := config.read(s.settings, args); err != nil {
					return sim.Config{}, err
				}
				return s.configure()
			})
			if err != nil {
				return err
			}
			if config.print {
				s.inForce(&cfg)
				return s.print(cmd.OutOrStdout(), "sim", cfg.Policy.Unit)
			}
			return s.simulate(cmd, cfg)
		},
		ValidArgsFunction: completeStrategies,
	}
	cmd.Flags().SortFlags = false
	s.register(cmd)
	config.register(cmd, "simulate")
	return cmd
}

// inForce makes the settings say what was worked out, a preset's values included.
func (s *simSettings) inForce(c *sim.Config) {
	s.workload, s.limit, s.arrivals = c.Workload.Name, c.Policy.Limit, cmp.Or(c.Arrivals, s.arrivals)
	s.workers, s.rate, s.requests, s.duration = c.Workers, c.Rate, c.Requests, c.Duration
	s.instances, s.speed, s.life, s.decision = c.Instances, c.Stream.Speed, c.Life, c.DecisionTimeout
	for name, v := range c.Stream.Options {
		*s.options[name] = v
	}
	s.regions, s.shared, s.home = c.Topology.Regions, c.Topology.SharedRedis, c.Topology.Home
	s.start, s.every, s.tracked = c.Start.UTC().Format(time.RFC3339), c.Every, c.Tracked
	s.skew, s.rushes = nil, nil
	for _, r := range c.Rushes {
		s.rushes = append(s.rushes, r.String())
	}
	for _, d := range c.Topology.Skew {
		s.skew = append(s.skew, d.String())
	}
}

// configure turns the settings into a simulation.
func (s *simSettings) configure() (sim.Config, error) {
	s.expand()
	if s.unsaid() {
		s.preset, s.chose = presetOfItsOwn, true
	}
	c := sim.Config{Plan: harness.Plan{Seed: s.seed, Life: s.life, Archive: s.history, Cold: s.cold, DecisionTimeout: s.decision}, Every: s.every, Tracked: s.tracked, Parallel: s.parallel}
	if s.preset != "" {
		p, err := sim.LookupPreset(s.preset)
		if err != nil {
			return c, s.wrong("preset", err)
		}
		if err := p.Set(&c); err != nil {
			return c, fail(ExitUsage, err)
		}
	}
	if s.preset != "" { // what the preset says stands for what is not given
		if !s.given("policy") {
			s.policy = c.Policy.Name
		}
		if replayed, _ := s.implied(); !s.given("workload") && replayed == "" {
			s.workload = c.Workload.Name
		}
	}
	if err := s.choose(&c.Plan); err != nil {
		return c, err
	}
	preset := c.Stream.Options
	c.Stream = s.stream()
	for name, v := range preset {
		if !s.given(name) {
			c.Stream.Set(name, v)
		}
	}
	if s.preset == "" { // which knows its own
		c.Instances = s.instances
	}
	override(s, "workers", &c.Workers, s.workers)
	override(s, "rate", &c.Rate, s.rate)
	override(s, "requests", &c.Requests, s.requests)
	override(s, "duration", &c.Duration, s.duration)
	override(s, "instances", &c.Instances, s.instances)
	override(s, "home", &c.Topology.Home, s.home)
	override(s, "shared-redis", &c.Topology.SharedRedis, s.shared)
	override(s, "region", &c.Topology.Regions, split(s.regions))
	c.Arrivals = s.arrivals
	var err error
	if c.Outages, c.LimitChanges, err = s.planned(); err != nil {
		return c, err
	}
	if s.gates, err = s.runGates(); err != nil {
		return c, err
	}
	if i := slices.IndexFunc(s.gates, compare.Gate.Timed); i >= 0 {
		return c, s.wrong("fail-on", fmt.Errorf("%s: a simulation has no timings; gate them in quotabench run", s.failOn[i]))
	}
	if s.start != "" {
		at, err := time.Parse(time.RFC3339, s.start)
		if err != nil {
			return c, s.wrong("start", fmt.Errorf("give a moment such as 2026-01-31T12:00:00Z, not %q", s.start))
		}
		c.Start = at
	}
	if s.given("skew") {
		c.Topology.Skew = nil
		for _, x := range split(s.skew) {
			d, err := time.ParseDuration(x)
			if err != nil {
				return c, s.wrong("skew", fmt.Errorf("give times such as 0s,2s,-2s, not %q", x))
			}
			c.Topology.Skew = append(c.Topology.Skew, d)
		}
	}
	if s.given("rush") {
		c.Rushes = nil
		for _, x := range split(s.rushes) {
			r, err := sim.ParseRush(x)
			if err != nil {
				return c, s.wrong("rush", err)
			}
			c.Rushes = append(c.Rushes, r)
		}
	}
	if err := s.checkStores(); err != nil {
		return c, err
	}
	if err := c.Complete(); err != nil {
		return c, fail(ExitUsage, err)
	}
	info, err := s.rehearse(&c.Plan)
	if err != nil {
		return c, err
	}
	if err := c.CheckStream(info); err != nil {
		return c, fail(ExitUsage, err)
	}
	return c, nil
}

// override sets what was given.
func override[T any](s *simSettings, name string, to *T, v T) {
	if s.given(name) {
		*to = v
	}
}

func split(items []string) (out []string) {
	for x := range strings.SplitSeq(strings.Join(items, ","), ",") {
		if x = strings.TrimSpace(x); x != "" {
			out = append(out, x)
		}
	}
	return out
}

func (s *simSettings) simulate(cmd *cobra.Command, cfg sim.Config) (err error) {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	defer outlivePipes()()
	dir, err := s.outDir()
	if err != nil {
		return err
	}
	selected, skipped := cfg.Split()
	if err := s.refuseNamed(skipped); err != nil {
		return err
	}
	if len(selected) == 0 {
		return usagef("no strategy can serve policy %s in virtual time: %s", cfg.Policy.Name, firstReason(skipped))
	}
	st, err := s.openStores(ctx, nil)
	if err != nil {
		return interruptedOr(ctx, err, ExitUsage)
	}
	defer func() {
		if cerr := st.set.Close(); cerr != nil && err == nil {
			err = fail(ExitFailed, cerr)
		}
	}()
	cfg.Stores = st.set
	if s.metrics != "" {
		cfg.Live = new(sim.Live)
		closing, err := s.serveMetrics(ctx, stderr, metrics.Simulated(cfg.Live))
		if err != nil {
			return err
		}
		defer func() { err = closed(err, closing) }()
	}
	out, err := s.makeOut(dir)
	if err != nil {
		return err
	}
	defer func() { err = released(out, err) }()
	if s.chose {
		fmt.Fprintf(stderr, "nothing is said of a load: this is --preset %s\n", s.preset)
	}
	st.announce(stderr)
	st.removeDead(ctx, stderr)
	bar := newProgress(stderr)
	defer bar.end()
	stderr = bar
	cfg.Progress = new(sim.Progress)
	defer bar.watch(func() status {
		return status{text: fmt.Sprintf("%s in virtual time", format.Plural(int64(len(selected)), "strategy", "strategies")), share: cfg.Progress.Share()}
	})()
	began := clock.Nano()
	cfg.Done = func(strategy string, elapsed time.Duration, requests int64) {
		since := time.Duration(clock.Nano() - began)
		fmt.Fprintf(stderr, "%s: %d requests in %v of virtual time, done %v after the start\n", strategy, requests, elapsed.Round(time.Millisecond), since.Round(time.Millisecond))
	}
	partial := simFile(cfg, &sim.Report{}, skipped, st.infos())
	keep := &keeper{out: out, file: &partial, progress: bar}
	cfg.SoFar = keep.SoFar
	simulate := sim.Run
	if isolates {
		simulate = sim.Isolated
	}
	report, err := simulate(ctx, cfg)
	bar.end()
	if report == nil {
		return interruptedOr(ctx, err, ExitFailed)
	}
	if report.Interrupted && len(report.Runs) == 0 {
		return fail(ExitInterrupted, errNothing)
	}
	for _, run := range report.Runs {
		if run.Trace != "" {
			fmt.Fprintf(stderr, "%s: trace %s\n", run.Params.Label, run.Trace)
		}
	}
	file := simFile(cfg, report, skipped, st.infos())
	file.MaxBound = s.maxBound
	b := render.Bundle{File: &file, Series: report.Series, Provenance: provenance(ctx)}
	if err := writeBundle(s.view(cmd), stderr, out, &b); err != nil {
		return err
	}
	return gated(stderr, verdict(file), compare.Check(&file, s.gates))
}
