package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/choose"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
	tables "github.com/quotabench/quotabench/results/text"
	"github.com/quotabench/quotabench/results/text/layout"
	"github.com/quotabench/quotabench/workloads"
)

// The files of a choice, beside the record of each stage.
const (
	choiceFile = "choice.json"
	choiceText = "choice.txt"
)

// choose runs the stages, and writes the answer and all records.
func (s *chooseSettings) choose(cmd *cobra.Command, cfg choose.Config) (err error) {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
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
	out, err := s.makeOut(dir)
	if err != nil {
		return err
	}
	defer func() { err = released(out, err) }()
	st.announce(stderr)
	st.removeDead(ctx, stderr)
	told := newTold(stderr, cfg.Budget)
	cfg.Observer = told
	stop := told.progress.watch(told.status)
	res, err := choose.Run(ctx, cfg)
	stop()
	told.progress.end()
	if err != nil {
		return interruptedOr(ctx, err, ExitFailed)
	}
	return s.answered(cmd, out, st, res)
}

// answered shows the answer and writes the records.
func (s *chooseSettings) answered(cmd *cobra.Command, out *output, st *openedStores, res *choose.Result) error {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	page, stdout := pageOf(cmd)
	record, err := codec.ChoiceJSON(&res.Choice)
	if err != nil {
		return fail(ExitFailed, err)
	}
	var shown, whole bytes.Buffer
	if err := errors.Join(tables.Choice(&shown, page, &res.Choice, s.verbose), tables.Choice(&whole, layout.Page{}, &res.Choice, true)); err != nil {
		return fail(ExitFailed, err)
	}
	first := shown.Bytes()
	if s.asJSON {
		first, stdout = record, cmd.OutOrStdout()
	}
	_, unshown := stdout.Write(first)
	w := writer{out: out}
	put := func(name string, b []byte) { _ = w.put(render.Output{Name: name, Bytes: b}) } // err says what failed
	put(choiceFile, record)
	put(choiceText, []byte(format.Visible(whole.String())))
	explored, err := codec.ExplorationJSON(&res.Exploration)
	if err == nil {
		put(explorationFile, explored)
	}
	for _, kind := range []struct {
		kind string
		of   map[string]choose.Record
	}{{results.Simulated, res.Simulations}, {results.Measured, res.Runs}} {
		for _, name := range slices.Sorted(maps.Keys(kind.of)) {
			b, failed := codec.Encode(st.stageFile(ctx, kind.kind, s.seed, kind.of[name], res.Interrupted))
			if err = errors.Join(err, failed); failed == nil {
				put(name+".json", b)
			}
		}
	}
	fmt.Fprintf(stderr, "\nwritten to %s: %s\n", out.dir, writtenFiles(w.written))
	switch err = errors.Join(err, w.err(), unshown); {
	case err != nil:
		return fail(ExitFailed, err)
	case res.Interrupted:
		return fail(ExitInterrupted, errors.New("interrupted: the answer is what was known by then"))
	case len(res.Candidates) == 0:
		return fail(ExitGate, errors.New("no strategy that could be tested fits"))
	}
	return nil
}

// stageFile is the record of a stage.
func (s *openedStores) stageFile(ctx context.Context, kind string, seed uint64, r choose.Record, interrupted bool) results.File {
	plan := harness.Plan{Seed: seed, Workload: &workloads.Meta{Name: r.Workload.Name}}
	f := simFile(sim.Config{Plan: plan}, &sim.Report{}, nil, nil)
	if kind == results.Measured {
		f = s.file(ctx, measure.Config{Plan: plan}, nil)
	}
	f.Workload, f.Runs, f.Interrupted = r.Workload, r.Runs, interrupted
	return f
}

// told shows how far a choice has come. Its methods but status are called one at a time.
type told struct {
	progress *progress
	end      int64 // of the budget, on the clock

	mu    sync.Mutex
	stage string
	doing string
}

func newTold(w io.Writer, budget time.Duration) *told {
	return &told{progress: newProgress(w), end: clock.Nano() + int64(budget)}
}

// Stage implements [choose.Observer].
func (t *told) Stage(name string, n int, _ time.Duration) {
	t.mu.Lock()
	t.stage, t.doing = name, ""
	t.mu.Unlock()
	t.progress.line(fmt.Sprintf("%s: %s left", name, format.Plural(int64(n), "strategy is", "strategies are")))
}

// Doing implements [choose.Observer].
func (t *told) Doing(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doing = what
}

// Out implements [choose.Observer].
func (*told) Out(results.RuledOut) {}

// status is what the choice does, and how long it takes at most.
func (t *told) status() status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return status{text: format.Join(": ", t.stage, t.doing), most: max(0, time.Duration(t.end-clock.Nano()))}
}
