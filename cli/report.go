package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/quotabench/quotabench/internal/atomicfile"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// writeBundle writes what was produced in every format, and shows the tables.
// The record comes first: whatever happens to a plot, the figures are kept.
func writeBundle(stdout, stderr io.Writer, dir string, b *render.Bundle) error {
	var written []string
	notes, err := render.Each(b, func(o render.Output) error {
		if err := atomicfile.Write(filepath.Join(dir, o.Name), o.Bytes); err != nil {
			return err
		}
		written = append(written, o.Name)
		if o.Format != render.Report {
			return nil
		}
		if _, err := stdout.Write(o.Bytes); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
		return nil
	})
	for _, n := range notes {
		fmt.Fprintln(stderr, n)
	}
	if err != nil {
		return fail(ExitFailed, err)
	}
	if len(b.File.Runs) > 0 {
		fmt.Fprintf(stderr, "\nwritten to %s: %s\n", dir, strings.Join(written, ", "))
	}
	return nil
}

// keeper writes the record after every round, so that nothing measured is lost
// whatever happens later, and passes progress on.
type keeper struct {
	path     string
	file     *results.File
	progress *progress
	warned   bool
}

func (k *keeper) Begin(runs int) { k.progress.begin(runs) }

func (k *keeper) Running(strategy string, round, rounds int) {
	k.progress.running(strategy, round, rounds)
}

func (k *keeper) Done(run results.Run) { k.file.Runs = append(k.file.Runs, run) }

// EndRound writes what has been measured so far. A disk that is full does not
// end the measurement: the last write reports it.
func (k *keeper) EndRound() {
	f := *k.file
	f.Interrupted = true // until the last round says otherwise
	if err := codec.Write(k.path, f); err != nil && !k.warned {
		k.warned = true
		k.progress.line("warning: " + err.Error())
	}
}
