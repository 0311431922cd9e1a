package session

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/html"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
)

// NoBitmaps is a variable of the environment that does for a program what [WithoutBitmaps] does in this one. Other
// versions of it need not know it.
const NoBitmaps = "QUOTABENCH_NO_BITMAPS"

type noBitmaps struct{}

// WithoutBitmaps has commands that run in the context draw plots as SVG alone.
func WithoutBitmaps(ctx context.Context) context.Context {
	return context.WithValue(ctx, noBitmaps{}, true)
}

// LeavesOutBitmaps reports whether commands in the context draw plots as SVG alone.
func LeavesOutBitmaps(ctx context.Context) bool {
	return ctx.Value(noBitmaps{}) != nil || os.Getenv(NoBitmaps) != ""
}

// WriteBundle shows the tables and writes what was produced in every format. The
// tables come first: whatever happens to a disk, they have been seen. What cannot be
// written does not keep the rest from being written.
func (x *Session) WriteBundle(bundle *render.Bundle) error {
	bundle.About, bundle.NoBitmaps = About, LeavesOutBitmaps(x.Ctx)
	if bundle.File != nil { // once, for all that is made of them
		bundle.File.Summaries = results.Summarise(bundle.File.Runs)
	}
	shown := x.show(bundle.File)
	writer := Writer{Dir: x.Dir}
	undrawn, err := render.Each(bundle, writer.Put)
	x.sayUndrawn(undrawn)
	err = cmp.Or(err, writer.Err())
	if err == nil && shown != nil {
		err = fmt.Errorf("write the table: %w", shown)
	}
	if len(writer.Written) > 0 && (bundle.File == nil || len(bundle.File.Runs) > 0 || bundle.File.Considered != nil) {
		fmt.Fprintf(x.Stderr, "\n%s\n", writer.Where())
	}
	return exit.With(exit.Failed, err)
}

// sayUndrawn says which plots could not be drawn.
func (x *Session) sayUndrawn(all []render.Undrawn) {
	if x.Verbose {
		for _, undrawn := range all {
			fmt.Fprintln(x.Stderr, undrawn)
		}
		return
	}
	if len(all) > 0 {
		names := format.List(all, ", ", func(undrawn render.Undrawn) string { return undrawn.Name })
		fmt.Fprintln(x.Stderr, codes.NotDrawn+names+" (--verbose says why)")
	}
}

// show shows the tables, or the record if JSON was asked for.
func (x *Session) show(file *results.File) error {
	if !x.JSON {
		return Show(x.Cmd, file, x.Verbose)
	}
	record, err := codec.Encode(*file)
	if err != nil {
		return nil // as writing it will say
	}
	_, err = x.Cmd.OutOrStdout().Write(record)
	return err
}

// Show shows of a measurement what a terminal has room for, or all of it. The answer comes last: it is
// what stands above the prompt.
func Show(cmd *cobra.Command, file *results.File, whole bool) error {
	if file == nil || len(file.Runs) == 0 && file.Considered == nil {
		return nil
	}
	page, out := terminal.Page(cmd)
	if whole {
		return tables.Table(out, page, *file)
	}
	return tables.Brief(out, page, *file)
}

// Writer writes rendered files, and goes on after one that cannot be written.
type Writer struct {
	Dir     *Dir
	Written []string
	failed  []string
	first   error
}

// Put writes one file.
func (w *Writer) Put(output render.Output) error {
	if err := w.Dir.Write(output.Name, output.Bytes); err != nil {
		if w.first == nil {
			w.first = err
		}
		w.failed = append(w.failed, output.Name)
		return nil
	}
	w.Written = append(w.Written, output.Name)
	return nil
}

// Where says where the report is, and what is next to it.
func (w *Writer) Where() string {
	others := slices.DeleteFunc(slices.Clone(w.Written), func(name string) bool { return name == files.HTMLName })
	if len(others) == len(w.Written) {
		return fmt.Sprintf("Written to %s: %s", w.Dir.Path, Listed(others))
	}
	text := "Report: " + filepath.Join(w.Dir.Path, files.HTMLName)
	if len(others) > 0 {
		text += "\nNext to it: " + Listed(others)
	}
	return text
}

// Err says what is missing.
func (w *Writer) Err() error {
	if len(w.failed) < 2 {
		return w.first
	}
	return fmt.Errorf("%w (and %s could not be written either)", w.first, strings.Join(w.failed[1:], ", "))
}

// Keeper writes the record after every run, so that nothing measured is lost
// whatever happens later, and passes progress on.
type Keeper struct {
	*terminal.Progress
	Dir    *Dir
	File   *results.File
	warned bool

	written, shown seldom
}

// seldom is something that is done often enough to take at most a fortieth of the time.
type seldom struct {
	// last is when it was last done, and cost how long that took, both in nanoseconds.
	last, cost int64
}

func (s *seldom) due() bool { return clock.Nano()-s.last >= 39*s.cost }

func (s *seldom) do(f func()) {
	begun := clock.Nano()
	f()
	s.last = clock.Nano()
	s.cost = s.last - begun
}

// SoFar writes what has been measured up to now, the round under way included, and shows it
// on a terminal.
func (k *Keeper) SoFar(round []results.Run) {
	if k.written.due() {
		k.write(round)
	}
	k.show(round)
}

// Done implements [measure.Observer].
func (k *Keeper) Done(run results.Run) { k.File.Runs = append(k.File.Runs, run) }

// EndRound writes what has been measured so far, and shows it.
func (k *Keeper) EndRound() {
	k.write(nil)
	k.show(nil)
}

// show shows the table of what has been measured so far above the progress of a terminal.
func (k *Keeper) show(more []results.Run) {
	if !k.shown.due() {
		return
	}
	k.shown.do(func() {
		k.Above(func(page layout.Page) []string { return tables.Verdicts(page, k.soFar(more)) })
	})
}

// soFar is the record of what has been measured.
func (k *Keeper) soFar(more []results.Run) results.File {
	file := *k.File
	file.Runs = append(file.Runs[:len(file.Runs):len(file.Runs)], more...)
	return file
}

// write writes the record, once there is something in it. A disk that is full does not end the measurement: the last
// write reports it.
func (k *Keeper) write(more []results.Run) {
	file := k.soFar(more)
	if len(file.Runs) == 0 {
		return
	}
	k.written.do(func() {
		file.Interrupted = true // until the last round says otherwise
		data, err := codec.Encode(file)
		if err == nil {
			err = k.Dir.Write(files.ResultsName, data)
		}
		if err != nil && !k.warned {
			k.warned = true
			k.Line("warning: " + err.Error())
		}
	})
}

// About is what a strategy of this build says of itself.
func About(name string) (html.About, bool) {
	meta, err := strategies.Lookup(name)
	if err != nil {
		return html.About{}, false
	}
	return html.About{Doc: meta.Doc, Source: meta.Source, Use: meta.Notes.Use, Avoid: meta.Notes.Avoid}, true
}

// mostDrawings is how many drawings are named one by one.
const mostDrawings = 8

// Listed names files that were written. Of many drawings it says how many there are.
func Listed(names []string) string {
	var named []string
	drawings := 0
	for _, n := range names {
		switch path.Ext(n) {
		case ".svg", ".png":
			drawings++
		default:
			named = append(named, n)
		}
	}
	if drawings <= mostDrawings {
		return strings.Join(names, ", ")
	}
	return strings.Join(append(named, fmt.Sprintf("%d drawings", drawings)), ", ")
}
