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
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/compare"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
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
			"for latency. Without names it takes the core strategies; \"run all\" takes all. Prints\n" +
			"tables and an answer, and writes results.json, report.html, report.txt and plots to --out.",
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

// run measures one configuration.
func (s *settings) run(cmd *cobra.Command, cfg measure.Config) error {
	return s.carryOut(cmd, &job{points: []measure.Config{cfg}, measure: func(ctx context.Context, points []measure.Config) (*measure.Report, error) {
		return measure.Measure(ctx, points[0])
	}})
}

// job is what a command measures.
type job struct {
	// points are the configurations, which differ in what sweep says; nil for one alone.
	points []measure.Config
	sweep  *results.Sweep
	// measure measures them once they have their stores.
	measure func(ctx context.Context, points []measure.Config) (*measure.Report, error)
}

// needed are the stores that some point needs.
func (j *job) needed() (names []string) {
	for i := range j.points {
		names = append(names, j.points[i].StoresNeeded()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// check refuses what cannot be measured here, and returns what is left out with the
// reason.
func (j *job) check(ctx context.Context, s *settings) (skipped map[string]string, err error) {
	skipped = map[string]string{}
	for i := range j.points {
		cfg := &j.points[i]
		selected, without := cfg.Split()
		if err := s.refuseNamed(without); err != nil {
			return nil, err
		}
		if len(selected) == 0 {
			return nil, usagef("no strategy can serve policy %s here: %s", cfg.Policy.Name, firstReason(without))
		}
		if err := cfg.CheckRoom(ctx); err != nil {
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
func (s *settings) carryOut(cmd *cobra.Command, j *job) (err error) {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	defer outlivePipes()()
	dir, err := s.outDir()
	if err != nil {
		return err
	}
	st, err := s.openStores(ctx, j.needed())
	if err != nil {
		return interruptedOr(ctx, err, ExitUsage)
	}
	defer func() {
		if cerr := st.set.Close(); cerr != nil && err == nil {
			err = fail(ExitFailed, cerr)
		}
	}()
	for i := range j.points {
		j.points[i].Stores = st.set
	}
	skipped, err := j.check(ctx, s)
	if err != nil {
		return err
	}
	if s.metrics != "" {
		live := new(measure.Live)
		for i := range j.points {
			j.points[i].Live = live
		}
		closing, err := s.serveMetrics(ctx, stderr, metrics.Measured(live))
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
	if s.quick {
		fmt.Fprintf(stderr, "--quick: %s of %v, loop %s\n", format.Plural(int64(s.rounds), "round", "rounds"), s.duration, s.loop)
	}
	st.announce(stderr)
	st.removeDead(ctx, stderr)
	file := st.file(ctx, j.points[0], skipped)
	file.Sweep, file.MaxBound = j.sweep, s.maxBound
	keep := &keeper{out: out, file: &file, progress: newProgress(stderr)}
	for i := range j.points {
		j.points[i].Observer = keep
	}
	s.lookAt(&j.points[0], &file, keep.progress)
	report, err := j.measure(ctx, j.points)
	keep.progress.end()
	if err != nil {
		return interruptedOr(ctx, err, ExitFailed)
	}
	if report.Interrupted && len(report.Runs) == 0 {
		return fail(ExitInterrupted, errNothing)
	}
	file.Runs, file.Interrupted, file.Workload = report.Runs, report.Interrupted, workloadRecord(j.points[0].Workload.Name, report.Info, j.notes())
	file.Skipped, file.Ended = append(file.Skipped, report.Skipped...), s.ended(&j.points[0], report, &file)
	if err := writeBundle(s.view(cmd), stderr, out, &render.Bundle{File: &file}); err != nil {
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
// not merely included in all or in a pattern.
func (s *settings) refuseNamed(skipped map[string]string) error {
	sets := false
	for name := range strings.SplitSeq(strings.Join(s.strategy, ","), ",") {
		name = strings.TrimSpace(name)
		for _, label := range slices.Sorted(maps.Keys(skipped)) {
			if label == name || strings.HasPrefix(label, name+"@") { // of --client
				return usagef("strategy %s: %s", name, skipped[label])
			}
		}
		sets = sets || strategies.IsSet(name)
	}
	if sets {
		return nil
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
