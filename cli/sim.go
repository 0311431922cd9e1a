package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/results"
)

// simSettings are those of run that apply, and what only virtual time has.
type simSettings struct {
	*settings
	preset, start string
	regions       []string
	skew          []string
	home          float64
	shared        bool
	every         time.Duration
	tracked       int
}

// notSimulated are settings of run that mean nothing in virtual time.
var notSimulated = []string{"rounds", "quick", "pool", "client-retries", "outage", "redis", "postgres", "redis-image", "postgres-image"}

func simCommand() *cobra.Command {
	s := &simSettings{settings: newSettings()}
	s.workers = 0
	s.table = slices.DeleteFunc(s.table, func(x setting) bool { return slices.Contains(notSimulated, x.name) })
	var presets []string
	var explained strings.Builder
	for _, p := range sim.Presets() {
		presets = append(presets, p.Name)
		fmt.Fprintf(&explained, "  %-20s %s\n", p.Name, p.Doc)
	}
	s.table = append([]setting{
		{name: "preset", value: &text{p: &s.preset, choices: append(presets, "")}, complete: completeWords(presets...),
			doc: "`name` of a simulation that a record describes: " + strings.Join(presets, ", ")},
		{name: "start", value: &text{p: &s.start},
			doc: "first moment of virtual time, e.g. `2026-01-31T12:00:00Z` (default 2026-01-01T00:00:00Z)"},
		{name: "region", value: &list{p: &s.regions},
			doc: "`names` of regions, 80 to 150 ms apart, each with a Redis; may be repeated"},
		{name: "shared-redis", value: &boolean{&s.shared}, doc: "one Redis for all regions, in the first"},
		{name: "home", value: decimal(&s.home, 1), doc: "`share` of a subject's requests that reach its home region; the others reach any"},
		{name: "skew", value: &list{p: &s.skew}, doc: "`times` by which instances' clocks are ahead, in their order, e.g. 0s,2s,-2s"},
		{name: "every", value: span(&s.every), doc: "virtual time between two samples (default: a 288th of the duration)"},
		{name: "tracked", value: whole(&s.tracked, 0, 0), doc: "subjects whose counters are read at each sample (default 200)"},
	}, s.table...)
	cmd := &cobra.Command{
		Use:   "sim [strategy...]",
		Short: "Run strategies in virtual time: days and regions in seconds",
		Long: "Runs the strategies' own code in virtual time, the same every time from a seed. Latencies\n" +
			"are modelled after record 003, keys expire and windows turn; judged as by run. Writes\n" +
			"results.json, plots, and how leak, drift, hit rates and staleness develop, to --out.\n\nPresets:\n" + strings.TrimRight(explained.String(), "\n"),
		Example: "  quotabench sim three-tier --preset adr-005-day\n" +
			"  quotabench sim incr-expire --policy user-links --workload steady --rate 1 --start 2026-01-31T00:00:00Z --duration 48h\n" +
			"  quotabench sim three-tier,redis-hash --region us,eu --duration 6h --workload steady --rate 50",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if s.given("strategy") {
					return usagef("give strategies as arguments or by --strategy, not both")
				}
				s.strategy = args
			}
			cfg, err := s.configure()
			if err != nil {
				return err
			}
			return s.simulate(cmd, cfg)
		},
		ValidArgsFunction: completeStrategies,
	}
	cmd.Flags().SortFlags = false
	s.register(cmd)
	return cmd
}

// configure turns the settings into a simulation.
func (s *simSettings) configure() (sim.Config, error) {
	s.expand()
	c := sim.Config{Seed: s.seed, Every: s.every, Tracked: s.tracked}
	if s.preset != "" {
		p, err := sim.LookupPreset(s.preset)
		if err != nil {
			return c, s.wrong("preset", err)
		}
		if err := p.Set(&c); err != nil {
			return c, fail(ExitUsage, err)
		}
	}
	chosen := harness.Config{}
	if s.preset != "" { // what the preset says stands for what is not given
		if !s.given("policy") {
			s.policy = c.Policy.Name
		}
		if !s.given("workload") && s.trace == "" {
			s.workload = c.Workload.Name
		}
	}
	if err := s.choose(&chosen); err != nil {
		return c, err
	}
	c.Strategies, c.Policy, c.Workload = chosen.Strategies, chosen.Policy, chosen.Workload
	override(s, "workers", &c.Workers, s.workers)
	override(s, "rate", &c.Rate, s.rate)
	override(s, "requests", &c.Requests, s.requests)
	override(s, "duration", &c.Duration, s.duration)
	override(s, "instances", &c.Topology.Instances, s.instances)
	override(s, "subjects", &c.Stream.Subjects, s.subjects)
	override(s, "home", &c.Topology.Home, s.home)
	override(s, "shared-redis", &c.Topology.SharedRedis, s.shared)
	override(s, "region", &c.Topology.Regions, split(s.regions))
	c.Arrivals = s.arrivals
	c.Stream.Trace, c.Stream.Speed, c.Stream.Popularity, c.Stream.Cost, c.Stream.Fill = s.trace, s.speed, s.popularity, s.cost, s.fill
	if s.given("over-quota") {
		c.Stream.OverQuota = &s.overQuota
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
	if err := c.Complete(); err != nil {
		return c, fail(ExitUsage, err)
	}
	return c, s.rehearse(&harness.Config{Workload: c.Workload, Stream: c.Stream, Seed: c.Seed, Policy: c.Policy, Requests: c.Requests})
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

func (s *simSettings) simulate(cmd *cobra.Command, cfg sim.Config) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
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
	if err := s.makeOut(dir); err != nil {
		return err
	}
	began := clock.Nano()
	cfg.Done = func(strategy string, elapsed time.Duration, requests int64) {
		took := time.Duration(clock.Nano() - began)
		fmt.Fprintf(stderr, "%s: %d requests in %v of virtual time, %v of real time\n", strategy, requests, elapsed.Round(time.Millisecond), took.Round(time.Millisecond))
		began = clock.Nano()
	}
	report, err := sim.Run(ctx, cfg)
	if err != nil {
		return fail(ExitFailed, err)
	}
	file := simFile(cfg, report, skipped)
	if err := writeSeries(dir, report.Series); err != nil {
		return fail(ExitFailed, err)
	}
	host, _ := os.Hostname() // an unnamed host is recorded as such
	version, commit := buildVersion()
	provenance, err := json.MarshalIndent(results.Provenance{
		Host: results.Host{Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Model: cpuModel()},
		Time: clock.Wall{}.Now().UTC(), Commit: commit, Command: commandLine(ctx),
		Versions: map[string]string{"quotabench": version, "go": runtime.Version()},
	}, "", "  ")
	if err != nil {
		return fail(ExitFailed, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "provenance.json"), append(provenance, '\n'), 0o644); err != nil {
		return fail(ExitFailed, err)
	}
	if err := writeReport(stdout, stderr, dir, file); err != nil {
		return err
	}
	fmt.Fprintln(stderr, "beside them: series.json, series.csv, a plot of each series, and provenance.json")
	return verdict(file)
}

// simFile is the record of a simulation. What differs from machine to machine is
// not in it.
func simFile(cfg sim.Config, report *sim.Report, skipped map[string]string) results.File {
	f := results.File{
		Schema: results.SchemaVersion, Kind: results.Simulated, Seed: cfg.Seed,
		Stores: results.Stores{
			Redis:    results.Store{Kind: "embedded", Detail: "table in memory"},
			Postgres: results.Store{Kind: "model", Detail: "table in memory"},
		},
		Workload: workloadRecord(harness.Config{Workload: cfg.Workload, Stream: cfg.Stream, Policy: cfg.Policy}, report.Info),
		Skipped:  []results.Skipped{}, Runs: report.Runs, Interrupted: report.Interrupted,
	}
	t := cfg.Topology
	f.Workload.Notes = []string{}
	f.Workload.Notes = append(f.Workload.Notes, report.Info.Notes...)
	where := "a Redis in each"
	if t.SharedRedis {
		where = "one Redis, in the first"
	}
	f.Workload.Notes = append(f.Workload.Notes,
		fmt.Sprintf("virtual time from %s; regions %s with %d of the application's instances each, %s; PostgreSQL in the first",
			cfg.Start.UTC().Format(time.RFC3339), strings.Join(t.Regions, ", "), t.Instances, where))
	if len(t.Skew) > 0 {
		f.Workload.Notes = append(f.Workload.Notes, fmt.Sprintf("instances' clocks are ahead by %v", t.Skew))
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		f.Skipped = append(f.Skipped, results.Skipped{Strategy: name, Reason: skipped[name]})
	}
	return f
}

// writeSeries writes how the runs developed.
func writeSeries(dir string, series []sim.Series) error {
	write := func(name string, b []byte, err error) error {
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), b, 0o644)
	}
	b, err := sim.JSON(series)
	if err := write("series.json", b, err); err != nil {
		return err
	}
	b, err = sim.CSV(series)
	if err := write("series.csv", b, err); err != nil {
		return err
	}
	for i := range series {
		svg, png, err := series[i].Plot()
		name := "series-" + strings.NewReplacer(":", "_", ",", "_", "=", "-", "/", "-").Replace(series[i].Strategy)
		if err := write(name+".svg", svg, err); err != nil {
			return err
		}
		if err := write(name+".png", png, err); err != nil {
			return err
		}
	}
	return nil
}
