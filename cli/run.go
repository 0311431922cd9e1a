package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/metrics"
	"github.com/quotabench/quotabench/results/compare"
	"github.com/quotabench/quotabench/results/render"
)

func runCommand() *cobra.Command {
	s := newSettings()
	var config fileFlags
	cmd := &cobra.Command{
		Use:   "run [strategy...]",
		Short: "Measure strategies on real stores, in rounds",
		Long: "Runs every strategy in rounds, in random order and with fresh keys, on the Redis and\n" +
			"PostgreSQL of this machine (or the embedded stand-ins, and says so): first with callers\n" +
			"that never pause, for throughput and leaks, then at a rate that all strategies share,\n" +
			"for latency. Without names it takes the core strategies; \"run all\" takes all. Prints a\n" +
			"table, and writes results.json and two plots to --out.",
		Example: "  quotabench run\n" +
			"  quotabench run incr-expire check-then-set --workers 200 --redis process\n" +
			"  quotabench run --trace access.log --policy contact-form\n" +
			"  quotabench run lua-reserve --rounds 10 --against ./quotabench-main\n" +
			"  quotabench run --print-config > run.yaml && quotabench run --config run.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := before(cmd.Context(), func() (measure.Config, error) {
				if err := config.read(s, args); err != nil {
					return measure.Config{}, err
				}
				return s.plan()
			})
			if err != nil {
				return err
			}
			if config.print {
				return s.print(cmd.OutOrStdout(), "run", cfg.Policy.Unit)
			}
			if s.against != "" {
				return s.compareWith(cmd, &cfg, s.strategy)
			}
			if s.rank("format") == byFlag {
				return s.wrong("format", errors.New("it shows what --against finds: give --against PROGRAM too"))
			}
			return s.run(cmd, cfg)
		},
		ValidArgsFunction: completeStrategies,
	}
	cmd.Flags().SortFlags = false
	s.register(cmd)
	config.register(cmd, "measure")
	return cmd
}

// noArgs refuses arguments in one line that says what was meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, but got %q (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// run measures, reports, and turns the outcome into an exit code. Nothing is
// written before all that can be wrong with the command line has been found.
func (s *settings) run(cmd *cobra.Command, cfg measure.Config) (err error) {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	defer outlivePipes()()
	dir, err := s.outDir()
	if err != nil {
		return err
	}
	st, err := s.openStores(ctx, cfg.StoresNeeded())
	if err != nil {
		return interruptedOr(ctx, err, ExitUsage)
	}
	defer func() {
		if cerr := st.set.Close(); cerr != nil && err == nil {
			err = fail(ExitFailed, cerr)
		}
	}()
	cfg.Stores = st.set

	selected, skipped := cfg.Split()
	if err := s.refuseNamed(skipped); err != nil {
		return err
	}
	if len(selected) == 0 {
		return usagef("no strategy can serve policy %s here: %s", cfg.Policy.Name, firstReason(skipped))
	}
	if err := cfg.CheckRoom(ctx); err != nil {
		return fail(ExitUsage, err)
	}
	if s.metrics != "" {
		cfg.Live = new(measure.Live)
		closing, err := s.serveMetrics(ctx, stderr, metrics.Measured(cfg.Live))
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
	st.announce(stderr)
	st.removeDead(ctx, stderr)
	file := st.file(ctx, cfg, skipped)
	keep := &keeper{out: out, file: &file, progress: newProgress(stderr)}
	cfg.Observer = keep
	report, err := measure.Measure(ctx, cfg)
	keep.progress.end()
	if err != nil {
		return interruptedOr(ctx, err, ExitFailed)
	}
	if report.Interrupted && len(report.Runs) == 0 {
		return fail(ExitInterrupted, errNothing)
	}
	file.Runs, file.Interrupted, file.Workload = report.Runs, report.Interrupted, workloadRecord(cfg.Workload.Name, report.Info, cfg.Notes())
	file.Skipped = append(file.Skipped, report.Skipped...)
	if err := writeBundle(s.tables(cmd), stderr, out, &render.Bundle{File: &file}); err != nil {
		return err
	}
	if err := s.writeRecord(stdout, file); err != nil {
		return err
	}
	if err := gated(stderr, verdict(file), compare.Check(&file, s.gates)); err != nil || len(report.Skipped) == 0 {
		return err
	}
	return fail(ExitFailed, fmt.Errorf("%s: %s", report.Skipped[0].Strategy, report.Skipped[0].Reason))
}

// serveMetrics serves a source where that is asked for, until it is closed.
func (s *settings) serveMetrics(ctx context.Context, stderr io.Writer, from metrics.Source) (closing func() error, err error) {
	server, err := metrics.Serve(ctx, s.metrics, from)
	if err != nil {
		return nil, s.wrong("metrics", err)
	}
	fmt.Fprintf(stderr, "metrics: %s\n", server.URL)
	return server.Close, nil
}

// closed is err, or why something could not be closed.
func closed(err error, closing func() error) error {
	if cerr := closing(); cerr != nil && err == nil {
		return fail(ExitFailed, cerr)
	}
	return err
}

// refuseNamed makes it an error that a strategy cannot run which was named, and
// not merely included in all.
func (s *settings) refuseNamed(skipped map[string]string) error {
	for name := range strings.SplitSeq(strings.Join(s.strategy, ","), ",") {
		if name == "all" || name == "core" {
			return nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		return usagef("strategy %s: %s", name, skipped[name])
	}
	return nil
}

func firstReason(skipped map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		return name + ": " + skipped[name]
	}
	return "none is built in"
}
