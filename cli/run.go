package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// runFlags are the flags of run as given.
type runFlags struct {
	strategy, policy, workload string
	workers, rounds, instances int
	subjects, pool, retries    int
	rate, speed                float64
	arrivals                   string
	requests, limit            int64
	duration                   time.Duration
	quick                      bool
	trace                      string
	seed                       uint64
	popularity, cost           string
	fill, overQuota            float64
	outages                    []string
	redis, postgres            string
	out                        string
}

// hotKeyLimit is the limit of workloads that count crossings where --limit does
// not say: a small one is crossed thousands of times instead of once.
const hotKeyLimit = 50

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure strategies on real stores, in rounds",
		Long: "Runs every strategy once per round, in random order and with fresh keys, on the Redis\n" +
			"and PostgreSQL of this machine (or the embedded stand-ins, and says so). Prints a table,\n" +
			"and writes results.json and two plots to --out.",
		Example: "  quotabench run\n" +
			"  quotabench run --strategy incr-expire,check-then-set --workers 200 --redis process\n" +
			"  quotabench run --trace access.log --policy contact-form",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.strategy, "strategy", "all", "strategies, `a,b:option=value` or all")
	fl.StringVar(&f.policy, "policy", "agent-api", "policy to enforce (see quotabench list policies)")
	fl.StringVar(&f.workload, "workload", "hot-key", "request stream (see quotabench list workloads)")
	fl.Int64Var(&f.limit, "limit", 0, "limit per subject and window in `units` (default: the policy's; 50 requests' worth for hot-key)")
	fl.IntVar(&f.workers, "workers", 50, "callers at the same time")
	fl.Float64Var(&f.rate, "rate", 0, "requests per `second` in open loop; 0 leaves the loop to the workload")
	fl.StringVar(&f.arrivals, "arrivals", "poisson", "arrivals in open loop: poisson or constant")
	fl.Int64Var(&f.requests, "requests", 0, "most requests per strategy and round; 0 for no bound")
	fl.DurationVar(&f.duration, "duration", 0, "time per strategy and round (default 400ms; no bound with --requests or --trace)")
	fl.IntVar(&f.rounds, "rounds", 10, "rounds; fewer than 6 give ranges instead of confidence intervals")
	fl.BoolVar(&f.quick, "quick", false, "3 rounds of 150ms, for a first look")
	fl.IntVar(&f.instances, "instances", 1, "application instances that share the stores")
	fl.IntVar(&f.subjects, "subjects", 0, "subjects of the workload (default: the workload's)")
	fl.IntVar(&f.pool, "pool", 0, "connections per instance and store (default: one per worker, at most 64 to Redis and 16 to PostgreSQL)")
	fl.IntVar(&f.retries, "client-retries", 0, "how often the Redis client repeats a failed command")
	fl.StringVar(&f.trace, "trace", "", "trace `file` to replay: Apache log, Azure LLM CSV, or CSV with time,subject,cost")
	fl.Float64Var(&f.speed, "speed", 0, "replay at k times the recorded speed, windows shrunk alike; 0 for full speed")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of everything random")
	fl.StringVar(&f.popularity, "popularity", "", "popularity of subjects: "+workloads.PopularityForms+" (default: the workload's)")
	fl.StringVar(&f.cost, "cost", "", "`units` per request: "+workloads.CostForms+" (default: the workload's)")
	fl.Float64Var(&f.fill, "fill", 0, "`share` of its limit, 0 to 1, that every subject has used at the start")
	fl.Float64Var(&f.overQuota, "over-quota", 0, "`share` of checks, 0 to 1, on subjects that start with their quota used up (default: the workload's)")
	fl.StringArrayVar(&f.outages, "outage", nil, "take a store away in mid-run, e.g. redis:0.3-0.6 (shares of the duration); may be repeated")
	fl.StringVar(&f.redis, "redis", "auto", "Redis: auto, process, embedded or a URL")
	fl.StringVar(&f.postgres, "postgres", "auto", "PostgreSQL: auto, process, embedded or a URL")
	fl.StringVar(&f.out, "out", "", "`directory` for results.json and plots (default quotabench-results/<time>)")
	return cmd
}

// noArgs refuses arguments in one line that says what was meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument %q (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// config turns the flags into a measurement, without stores.
func (f *runFlags) config(changed func(string) bool) (harness.Config, error) {
	var c harness.Config
	sel, err := strategies.Parse(f.strategy)
	if err != nil {
		return c, usagef("--strategy: %w", err)
	}
	if f.trace != "" && !changed("workload") {
		f.workload = "trace"
	}
	w, err := workloads.Lookup(f.workload)
	if err != nil {
		return c, usagef("--workload: %w", err)
	}
	p, err := quota.LookupPolicy(f.policy)
	if err != nil {
		return c, usagef("--policy: %w", err)
	}
	switch {
	case changed("limit"):
		p.Limit = f.limit
	case w.Crosses:
		p.Limit = min(p.Limit, hotKeyLimit*largest(p.Costs))
	}
	if f.quick {
		if !changed("rounds") {
			f.rounds = 3
		}
		if !changed("duration") && f.requests == 0 && f.trace == "" {
			f.duration = 150 * time.Millisecond
		}
	}
	for _, x := range []struct {
		flag string
		v    float64
	}{{"workers", float64(f.workers)}, {"rounds", float64(f.rounds)}, {"instances", float64(f.instances)}} {
		if x.v < 1 {
			return c, usagef("--%s %v: give 1 or more", x.flag, x.v)
		}
	}
	for _, x := range []struct {
		flag string
		v    float64
	}{
		{"subjects", float64(f.subjects)}, {"pool", float64(f.pool)}, {"client-retries", float64(f.retries)}, {"rate", f.rate},
		{"speed", f.speed}, {"requests", float64(f.requests)}, {"duration", float64(f.duration)},
	} {
		if x.v < 0 || x.v != x.v {
			return c, usagef("--%s cannot be negative", x.flag)
		}
	}
	c = harness.Config{
		Strategies: sel, Policy: p, Workload: w,
		Stream: workloads.Params{
			Subjects: f.subjects, Trace: f.trace, Speed: f.speed,
			Popularity: f.popularity, Cost: f.cost, Fill: f.fill,
		},
		Workers: f.workers, Rate: f.rate, Arrivals: f.arrivals, Requests: f.requests, Duration: f.duration, Rounds: f.rounds,
		Instances: f.instances, Pool: f.pool, ClientRetries: f.retries, Seed: f.seed,
	}
	if changed("over-quota") {
		c.Stream.OverQuota = &f.overQuota
	}
	for _, text := range f.outages {
		o, err := harness.ParseOutage(text)
		if err != nil {
			return c, usagef("--outage: %w", err)
		}
		c.Outages = append(c.Outages, o)
	}
	if err := c.Complete(); err != nil {
		return c, fail(ExitUsage, err)
	}
	// A dry run of the workload finds what is wrong with it, or with its trace,
	// before anything is started.
	params := c.Stream
	params.Seed, params.Policy, params.Requests = c.Seed, &c.Policy, c.Requests
	if _, _, err := w.New(params); err != nil {
		return c, fail(ExitUsage, err)
	}
	return c, nil
}

func largest(costs []int64) int64 {
	if len(costs) == 0 {
		return 1
	}
	return slices.Max(costs)
}

func (f *runFlags) run(cmd *cobra.Command) (err error) {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	cfg, err := f.config(cmd.Flags().Changed)
	if err != nil {
		return err
	}
	dir, err := f.outDir()
	if err != nil {
		return err
	}
	st, err := openStores(ctx, f.redis, f.postgres)
	if err != nil {
		return interruptedOr(ctx, err)
	}
	defer func() {
		if cerr := st.close(); cerr != nil && err == nil {
			err = fail(ExitFailed, cerr)
		}
	}()
	cfg.Redis, cfg.Postgres = st.redis, st.postgres
	st.announce(stderr)

	selected, skipped := cfg.Split()
	if err := refuseNamed(f.strategy, skipped); err != nil {
		return err
	}
	if len(selected) == 0 {
		return usagef("no strategy can serve policy %s here: %s", cfg.Policy.Name, firstReason(skipped))
	}
	file := st.file(cfg, skipped)
	file.Provenance.Command = commandLine()
	keep := &keeper{path: filepath.Join(dir, "results.json"), file: &file, progress: newProgress(stderr)}
	cfg.Observer = keep
	report, err := harness.Measure(ctx, cfg)
	keep.progress.end()
	if err != nil {
		return fail(ExitFailed, err)
	}
	file.Runs, file.Interrupted, file.Workload = report.Runs, report.Interrupted, workloadRecord(cfg, report.Info)
	if err := writeReport(stdout, stderr, dir, file); err != nil {
		return err
	}
	return verdict(file)
}

// outDir makes the directory of this run's files. Results that are already there
// are never overwritten.
func (f *runFlags) outDir() (string, error) {
	dir := f.out
	if dir == "" {
		dir = filepath.Join("quotabench-results", clock.Wall{}.Now().UTC().Format("20060102T150405.000Z"))
	}
	if _, err := os.Stat(filepath.Join(dir, "results.json")); err == nil {
		return "", usagef("%s already holds a results.json: name another directory with --out, or move it away", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", usagef("--out: %w", err)
	}
	return dir, nil
}

// refuseNamed makes it an error that a strategy cannot run which was named, and
// not merely included in all.
func refuseNamed(list string, skipped map[string]string) error {
	if slices.Contains(strings.Split(list, ","), "all") {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		return usagef("%s %s", name, skipped[name])
	}
	return nil
}

func firstReason(skipped map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		return name + ": " + skipped[name]
	}
	return "none is built in"
}

// verdict turns what was measured into an exit code.
func verdict(f results.File) error {
	if f.Interrupted {
		return fail(ExitInterrupted, errors.New("interrupted: the results so far are written, the last run is marked partial"))
	}
	for _, r := range f.Runs {
		if !r.Audit.Valid {
			return fail(ExitFailed, fmt.Errorf("%s, round %d: the correctness figures are invalid: %s", r.Params.Label, r.Repetition, firstStrike(r.Audit)))
		}
	}
	for _, r := range f.Runs {
		for _, c := range r.Guarantee {
			if c.Verdict == results.Violated {
				return fail(ExitGate, fmt.Errorf("%s broke its declared guarantee: %s at most %s, but %d units over", r.Params.Label, c.Property, c.Formula, c.Certain))
			}
		}
	}
	return nil
}

func firstStrike(a results.Audit) string {
	for _, r := range a.Reasons {
		if r.Strikes == results.StrikesCorrectness {
			return r.Code + ": " + r.Detail
		}
	}
	return "no reason recorded"
}

// interruptedOr is err, unless it merely shows that the user pressed Ctrl-C.
func interruptedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fail(ExitInterrupted, errors.New("interrupted before anything was measured"))
	}
	return fail(ExitUsage, err)
}
