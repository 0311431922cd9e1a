package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/quotabench/quotabench/results"
)

// writeReport writes the record, the table and the plots. The record comes
// first: whatever happens to a plot, the figures are kept.
func writeReport(stdout, stderr io.Writer, dir string, f results.File) error {
	path := filepath.Join(dir, "results.json")
	if err := results.Write(path, f); err != nil {
		return fail(ExitFailed, err)
	}
	if len(f.Runs) == 0 {
		return nil
	}
	var table bytes.Buffer
	if err := results.WriteTable(&table, f); err != nil {
		return fail(ExitFailed, err)
	}
	if _, err := stdout.Write(table.Bytes()); err != nil {
		return fail(ExitFailed, fmt.Errorf("write the table: %w", err))
	}
	written := []string{"results.json", "report.txt"}
	if err := os.WriteFile(filepath.Join(dir, "report.txt"), table.Bytes(), 0o644); err != nil {
		return fail(ExitFailed, err)
	}
	for _, p := range []struct {
		name string
		plot func(results.File) (*results.Plot, error)
	}{{"latency", results.LatencyPlot}, {"leakage", results.LeakPlot}} {
		plot, err := p.plot(f)
		if errors.Is(err, results.ErrNothingToPlot) {
			fmt.Fprintf(stderr, "no %s plot: %v\n", p.name, err)
			continue
		}
		if err != nil {
			return fail(ExitFailed, fmt.Errorf("%s plot: %w", p.name, err))
		}
		for _, ext := range []string{"svg", "png"} {
			file := p.name + "." + ext
			if err := plot.Write(filepath.Join(dir, file)); err != nil {
				return fail(ExitFailed, fmt.Errorf("%s plot: %w", p.name, err))
			}
			written = append(written, file)
		}
	}
	fmt.Fprintf(stderr, "\nwritten to %s: %s\n", dir, strings.Join(written, ", "))
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
	if err := results.Write(k.path, f); err != nil && !k.warned {
		k.warned = true
		k.progress.line("warning: " + err.Error())
	}
}
