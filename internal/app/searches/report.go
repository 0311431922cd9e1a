package searches

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// gap separates two reports.
func (x *exploration) gap() {
	if x.text.Len() > 0 {
		x.text.WriteByte('\n')
	}
}

// show writes what was reported since the last time, so that a long list of
// strategies shows as it goes.
func (x *exploration) show() {
	if x.JSON {
		return
	}
	var n int
	var err error
	x.progress.Aside(func() { n, err = x.stdout.Write(x.text.Bytes()[x.shown:]) })
	x.shown += n
	if err != nil && x.unshown == nil {
		x.unshown = fmt.Errorf("write the table: %w", err)
	}
}

// end writes what was found, stops the server and picks the exit code:
// of failed, if that is not nil.
func (x *exploration) end(failed error) error {
	x.progress.End()
	x.record.Interrupted = x.ctx.Err() != nil
	err := x.write(failed)
	err = errors.Join(err, x.closeStores(), x.out.Release())
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return exit.With(exit.Failed, err)
	case x.record.Interrupted && x.empty():
		return exit.With(exit.Interrupted, errors.New("interrupted before anything was explored; nothing was written"))
	case x.record.Interrupted:
		return exit.With(exit.Interrupted,
			errors.New("interrupted: what was found so far is written, searches that had not ended say so"))
	case x.invalid != "":
		return exit.With(exit.Failed, errors.New(x.invalid))
	case x.differs != "":
		return exit.With(exit.Failed, errors.New(x.differs))
	case x.violated != "" && !x.ExitZero:
		err = exit.With(exit.Gate, errors.New(cmp.Or(x.broken, x.violated)))
	case x.Strict && len(x.record.Advice) > 0:
		err = exit.With(exit.Gate, errors.New("there is advice, and --strict allows none"))
	}
	return session.Gated(x.stderr, err, compare.CheckSearches(&x.record, x.Gates))
}

// empty reports whether there is no search to write.
func (x *exploration) empty() bool {
	return len(x.record.Searches)+len(x.record.Censuses)+len(x.record.Replays) == 0
}

func (x *exploration) write(failed error) error {
	if (failed != nil || x.record.Interrupted) && x.empty() {
		return nil
	}
	if x.JSON {
		record, err := codec.ExplorationJSON(&x.record)
		if err != nil {
			return err
		}
		if _, err := x.stdout.Write(record); err != nil {
			x.unshown = fmt.Errorf("write the record: %w", err)
		}
	}
	if x.out == nil {
		return x.unshown
	}
	writer := session.Writer{Dir: x.out}
	bundle := render.Bundle{Exploration: &x.record, About: session.About, NoBitmaps: session.LeavesOutBitmaps(x.ctx)}
	if _, err := render.Each(&bundle, writer.Put); err != nil {
		return err
	}
	if len(writer.Written) > 0 {
		fmt.Fprintf(x.stderr, "\nwritten to %s: %s\n", x.out.Path, session.Listed(writer.Written))
	}
	return cmp.Or(writer.Err(), x.unshown)
}

// keep writes the record as it is, so that nothing found is lost whatever happens
// later. The last write reports what fails.
func (x *exploration) keep() {
	if x.out == nil {
		return
	}
	record := x.record
	record.Interrupted = true // until the last strategy says otherwise
	data, err := codec.ExplorationJSON(&record)
	if err == nil {
		err = x.out.Write(files.ExplorationName, data)
	}
	if err != nil && !x.warned {
		x.warned = true
		fmt.Fprintln(x.stderr, "warning: "+format.OneLine(err.Error()))
	}
}
