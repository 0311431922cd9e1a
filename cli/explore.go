package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/internal/stores"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// exploreFlags are the flags of explore.
type exploreFlags struct {
	strategy, policy, scripts, faults, properties string
	on, replay, out                               string
	clients, instances, times, jobs, states       int
	limit, used                                   int64
	skew                                          []time.Duration
	full, asJSON                                  bool
}

func exploreCommand() *cobra.Command {
	var f exploreFlags
	cmd := &cobra.Command{
		Use:   "explore [strategy...]",
		Short: "Search every order of a few clients' store commands for the shortest that breaks a property",
		Long: "explore runs a strategy's own code with a few clients in every order that their store\n" +
			"commands, its jobs and the chosen faults can happen in, and prints the shortest schedule that\n" +
			"leaks, rejects wrongly, drifts, strands units or leaves a key behind; or says that there is none.",
		Example: "  quotabench explore check-then-set\n" +
			"  quotabench explore check-then-set --clients 5 --limit 4 --full\n" +
			"  quotabench explore incr-expire --faults crash\n" +
			"  quotabench explore --replay TOKEN --on process",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.strategy, "strategy", "", "strategies to explore, as name or name:option=value, separated by commas")
	fl.StringVar(&f.policy, "policy", "", "policy to enforce (default: one of the strategy's own record)")
	fl.Int64Var(&f.limit, "limit", 0, "limit in units (default: room for all requests but one)")
	fl.Int64Var(&f.used, "used", 0, "units in use at the start")
	fl.IntVar(&f.clients, "clients", 2, "clients that share one subject")
	fl.IntVar(&f.instances, "instances", 0, "application instances (default: one per client)")
	fl.DurationSliceVar(&f.skew, "skew", nil, "how far each instance's clock is ahead, e.g. 0s,2s")
	fl.StringVar(&f.scripts, "script", "", "what clients do, e.g. \"take=5,refund;take\": one script per client, the last for all others")
	fl.StringVar(&f.faults, "faults", "", "faults that may happen: crash, lost-reply, retry, clock, eviction, outage, or all")
	fl.IntVar(&f.times, "times", 1, "how often each fault may happen in one schedule; clock ticks once more")
	fl.IntVar(&f.jobs, "jobs", 1, "how often each periodic job may start at any moment")
	fl.StringVar(&f.properties, "property", "", "properties to look for (default: all)")
	fl.IntVar(&f.states, "max-states", 0, "states after which the search ends (default 200000)")
	fl.BoolVar(&f.full, "full", false, "count every schedule instead of searching")
	fl.StringVar(&f.replay, "replay", "", "repeat the schedule of this token")
	fl.StringVar(&f.on, "on", "embedded", "where to repeat schedules: embedded, process, or the URL of a Redis server")
	fl.StringVar(&f.out, "out", "", "directory for a sequence chart (SVG) of each finding")
	fl.BoolVar(&f.asJSON, "json", false, "write JSON")
	return cmd
}

func (f *exploreFlags) run(cmd *cobra.Command, args []string) error {
	out, ctx := cmd.OutOrStdout(), cmd.Context()
	list := strings.Join(append(args, strings.FieldsFunc(f.strategy, func(r rune) bool { return r == 0 })...), ",")
	if f.replay != "" {
		if list != "" {
			return usagef("--replay names its strategy itself: leave %s out", list)
		}
		return f.repeat(ctx, out, f.replay)
	}
	if list == "" {
		return usagef("no strategy to explore: name one, e.g. quotabench explore check-then-set")
	}
	chosen, err := strategies.Parse(list)
	if err != nil {
		return fail(ExitUsage, err)
	}
	cfg, err := f.config()
	if err != nil {
		return fail(ExitUsage, err)
	}
	broken := false
	for i, sel := range chosen {
		if i > 0 && !f.asJSON {
			fmt.Fprintln(out)
		}
		if f.full {
			err = f.enumerate(ctx, out, sel, cfg)
		} else {
			var b bool
			b, err = f.search(ctx, out, sel, cfg)
			broken = broken || b
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return fail(ExitInterrupted, errors.New("interrupted"))
		case errors.Is(err, explore.ErrNotDeterministic):
			return fail(ExitFailed, fmt.Errorf("%s: %w", sel, err))
		case len(chosen) > 1:
			fmt.Fprintf(cmd.ErrOrStderr(), "skipped %s: %v\n", sel, err)
		default:
			return fail(ExitUsage, err)
		}
	}
	if broken {
		return fail(ExitGate, errors.New("a declared guarantee is broken"))
	}
	return nil
}

func (f *exploreFlags) config() (explore.Config, error) {
	cfg := explore.Config{
		Limit: f.limit, Used: f.used, Clients: f.clients, Instances: f.instances, Skew: f.skew,
		Times: f.times, JobRounds: f.jobs, MaxStates: f.states,
	}
	if f.jobs == 0 {
		cfg.JobRounds = -1
	}
	var err error
	if f.policy != "" {
		if cfg.Policy, err = quota.LookupPolicy(f.policy); err != nil {
			return cfg, err
		}
	}
	if cfg.Scripts, err = explore.ParseScripts(f.scripts); err != nil {
		return cfg, err
	}
	if cfg.Faults, err = explore.ParseFaults(f.faults); err != nil {
		return cfg, err
	}
	cfg.Properties, err = explore.ParseProperties(f.properties)
	return cfg, err
}

func (f *exploreFlags) search(ctx context.Context, out io.Writer, sel strategies.Selection, cfg explore.Config) (broken bool, err error) {
	res, err := explore.Run(ctx, sel, cfg)
	if err != nil {
		return false, err
	}
	broken = res.Found(explore.Guarantee) != nil
	if f.out != "" {
		if err := writeCharts(f.out, res); err != nil {
			return broken, err
		}
	}
	if f.asJSON {
		return broken, writeIndented(out, res)
	}
	if err := explore.WriteReport(out, res); err != nil {
		return broken, err
	}
	if f.on == "embedded" {
		return broken, nil
	}
	for _, x := range res.Findings {
		fmt.Fprintln(out)
		if err := f.repeat(ctx, out, x.Token); err != nil {
			return broken, err
		}
	}
	return broken, nil
}

func (f *exploreFlags) enumerate(ctx context.Context, out io.Writer, sel strategies.Selection, cfg explore.Config) error {
	c, err := explore.Enumerate(ctx, sel, cfg)
	if err != nil {
		return err
	}
	if f.asJSON {
		return writeIndented(out, c)
	}
	fmt.Fprintf(out, "%s, %s with a limit of %d\n%s\n", c.Strategy, c.Policy, c.Limit, c)
	if c.Shortest == nil {
		return nil
	}
	fmt.Fprintf(out, "\nshortest: %d steps; worst leak %d units\n", len(c.Shortest.Steps), c.Worst)
	return explore.WriteTimeline(out, c.Shortest)
}

// repeat replays a token on the store that --on names.
func (f *exploreFlags) repeat(ctx context.Context, out io.Writer, token string) (err error) {
	var server *stores.Redis
	if f.on != "embedded" {
		if server, err = stores.OpenRedis(ctx, f.on, stores.Options{}); err != nil {
			return fail(ExitUsage, err)
		}
		defer func() { err = errors.Join(err, server.Close()) }()
	}
	r, err := explore.Replay(ctx, token, server)
	switch {
	case errors.Is(err, explore.ErrNotDeterministic):
		return fail(ExitFailed, err)
	case err != nil:
		return fail(ExitUsage, err)
	case f.asJSON:
		return writeIndented(out, r)
	}
	word := "broken again"
	if !r.Broken {
		word = "NOT broken this time"
	}
	fmt.Fprintf(out, "replayed on %s: %s, %s: %s %s; leak %d\n", r.Store, r.Strategy, r.Policy, r.Property, word, r.Leak)
	for _, n := range r.Notes {
		fmt.Fprintln(out, "note: "+n)
	}
	if err := explore.WriteTimeline(out, r.Finding); err != nil {
		return err
	}
	if !r.Broken {
		return fail(ExitFailed, fmt.Errorf("the schedule did not break %s on %s", r.Property, r.Store))
	}
	return nil
}

func writeIndented(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeCharts draws every finding into a file of its own.
func writeCharts(dir string, res *explore.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are for everybody to read
		return fmt.Errorf("make the output directory: %w", err)
	}
	name := strings.NewReplacer(":", "_", ",", "_", "=", "-").Replace(res.Strategy)
	for i := range res.Findings {
		x := &res.Findings[i]
		path := filepath.Join(dir, name+"-"+string(x.Property)+".svg")
		file, err := os.Create(path) //nolint:gosec // where the user said
		if err != nil {
			return fmt.Errorf("write a chart: %w", err)
		}
		if err := errors.Join(explore.WriteSVG(file, x), file.Close()); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}
