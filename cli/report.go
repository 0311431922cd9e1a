package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
	tables "github.com/quotabench/quotabench/results/text"
	"github.com/quotabench/quotabench/results/text/layout"
)

// writeBundle shows the tables and writes what was produced in every format. The
// tables come first: whatever happens to a disk, they have been seen. What cannot be
// written does not keep the rest from being written.
func writeBundle(v view, stderr io.Writer, out *output, b *render.Bundle) error {
	b.About = aboutStrategy
	if b.File != nil { // once, for all that is made of them
		b.File.Summaries = results.Summarise(b.File.Runs)
	}
	shown := v.show(b)
	w := writer{out: out}
	notes, err := render.Each(b, w.put)
	for _, n := range notes {
		fmt.Fprintln(stderr, n)
	}
	if err == nil {
		err = w.err()
	}
	if err == nil && shown != nil {
		err = fmt.Errorf("write the table: %w", shown)
	}
	if len(w.written) > 0 && (b.File == nil || len(b.File.Runs) > 0) {
		fmt.Fprintf(stderr, "\nwritten to %s: %s\n", out.dir, writtenFiles(w.written))
	}
	if err != nil {
		return fail(ExitFailed, err)
	}
	return nil
}

// view is how a measurement is shown on standard output.
type view struct {
	out  io.Writer
	page layout.Page
	// verbose shows all of the report.
	verbose bool
	// json shows the record in place of tables.
	json bool
}

func (s *settings) view(cmd *cobra.Command) view {
	if s.asJSON {
		return view{out: cmd.OutOrStdout(), json: true}
	}
	page, out := pageOf(cmd)
	return view{out: out, page: page, verbose: s.verbose}
}

// show shows what a terminal has room for, or all of it. The answer comes last: it is
// what stands above the prompt.
func (v view) show(b *render.Bundle) error {
	if v.json {
		record, err := codec.Encode(*b.File)
		if err != nil {
			return nil // as writing it will say
		}
		_, err = v.out.Write(record)
		return err
	}
	show := tables.Brief
	if v.verbose {
		show = tables.Verbose
	}
	if b.File == nil || len(b.File.Runs) == 0 {
		return nil
	}
	return show(v.out, v.page, *b.File)
}

// writer writes rendered files, and goes on after one that cannot be written.
type writer struct {
	out     *output
	written []string
	failed  []string
	first   error
}

func (w *writer) put(o render.Output) error {
	if err := w.out.write(o.Name, o.Bytes); err != nil {
		if w.first == nil {
			w.first = err
		}
		w.failed = append(w.failed, o.Name)
		return nil
	}
	w.written = append(w.written, o.Name)
	return nil
}

// err says what is missing.
func (w *writer) err() error {
	if len(w.failed) < 2 {
		return w.first
	}
	return fmt.Errorf("%w (and %s could not be written either)", w.first, strings.Join(w.failed[1:], ", "))
}

// keeper writes the record after every run, so that nothing measured is lost
// whatever happens later, and passes progress on.
type keeper struct {
	out      *output
	file     *results.File
	progress *progress
	warned   bool
	// wrote is when a record was last written, and cost how long that took.
	wrote, cost int64
}

func (k *keeper) Begin(runs int) { k.progress.begin(runs) }

func (k *keeper) Running(strategy string, round, rounds int) {
	k.progress.running(strategy, round, rounds)
}

// Filling implements [measure.Observer].
func (k *keeper) Filling(share float64) { k.progress.filling(share) }

// SoFar writes what has been measured up to now, the round under way included. It does so
// seldom enough to take at most a fortieth of the time.
func (k *keeper) SoFar(round []results.Run) {
	if clock.Nano()-k.wrote >= 39*k.cost {
		k.write(round)
	}
}

func (k *keeper) Done(run results.Run) { k.file.Runs = append(k.file.Runs, run) }

// EndRound writes what has been measured so far.
func (k *keeper) EndRound() { k.write(nil) }

// write writes the record. A disk that is full does not end the measurement: the last
// write reports it.
func (k *keeper) write(more []results.Run) {
	begun := clock.Nano()
	defer func() { k.wrote, k.cost = clock.Nano(), clock.Nano()-begun }()
	f := *k.file
	f.Runs = append(f.Runs[:len(f.Runs):len(f.Runs)], more...)
	f.Interrupted = true // until the last round says otherwise
	b, err := codec.Encode(f)
	if err == nil {
		err = k.out.write(resultsFile, b)
	}
	if err != nil && !k.warned {
		k.warned = true
		k.progress.line("warning: " + err.Error())
	}
}
