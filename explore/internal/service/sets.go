package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// SetsFrom is the number of runs from which on there are further sets: to start them takes longer than a small search.
var SetsFrom int64 = 128

// sets is what all sets of instances of a search have in common.
type sets struct {
	ctx     context.Context // of the exploration
	further atomic.Int32    // those besides the first
	// renew has instances started anew before each run.
	renew atomic.Bool
}

// Fork implements [engine.Forker]: it starts another set of instances, on the next database, or on another Redis in
// memory.
func (w *Engine) Fork(*sched.Beat) (engine.Engine, error) {
	f := &Engine{sel: w.sel, cmd: w.cmd, sets: w.sets}
	f.cmd.Redis = nil
	f.cmd.Known = true
	f.Witness = w.Witness
	setup := *w.Setup
	f.Connect(f, &setup)
	if w.memory == nil {
		f.own = w.database(int(w.further.Add(1)))
		f.cmd.Redis = f.own
	}
	f, err := f.openAll()
	switch {
	case err != nil:
		return nil, fmt.Errorf("start a further set of processes (--parallel 1 has one): %w", err)
	case len(w.cmd.Redis.Keys(w.ctx, "*"+f.subjects+"*").Val()) > 0:
		err = unfit("the service selects a database of Redis by itself, so several sets of its processes meet there: give " +
			"--parallel 1")
	case !slices.Equal(f.control, w.control):
		err = w.unlike(f.control)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// Further is how many further sets can be had after so many runs, n at most: so many of the next databases are empty,
// which those of further Redises in memory always are. Those that there were are closed.
func (w *Engine) Further(runs int64, n int) int {
	w.further.Store(0)
	if runs < SetsFrom || w.occupied {
		return 0
	}
	if w.memory != nil {
		return n
	}
	for i := range n {
		client := w.database(i + 1)
		keys, err := client.DBSize(w.base).Result()
		_ = client.Close()
		if err != nil || keys > 0 {
			w.occupied = i == 0
			return i
		}
	}
	return n
}

// database is a client of that many databases after the one of the search.
func (w *Engine) database(after int) *redis.Client {
	options := *w.cmd.Redis.Options()
	options.DB += after
	return redis.NewClient(&options)
}

// ControlEvery is after how many runs the clients come one after the other again, to see
// whether they are answered as in the first run.
var ControlEvery = 200

// ErrStale says that the instances were answering otherwise than at the start, and that they
// have been started anew: what was run since the last control says nothing.
var ErrStale = errors.New("the service keeps something from one subject for the next")

// Control runs the control again. If it goes otherwise the instances start anew before
// each run from then on, and if that does not help, nothing can be said of the service.
func (w *Engine) Control() error {
	renewed := w.renew.Load()
	again, err := w.inTurn()
	switch {
	case err != nil || slices.Equal(again, w.control):
		return err
	case renewed:
		return w.unlike(again)
	}
	w.renew.Store(true)
	again, err = w.inTurn()
	if err != nil {
		return err
	}
	if !slices.Equal(again, w.control) {
		return w.unlike(again)
	}
	return ErrStale
}

func (w *Engine) unlike(again []string) error {
	return fmt.Errorf("%w: schedules do not repeat: callers that came one after the other were answered %s at first, "+
		"and %s later",
		engine.ErrNotDeterministic, strings.Join(w.control, ", "), strings.Join(again, ", "))
}

// inTurn runs the clients one after the other, and returns what they were answered.
func (w *Engine) inTurn() (answers []string, err error) {
	recording := w.Run.Timeline.Recording
	timeline := &w.Run.Timeline
	timeline.Recording = true
	w.InTurn = true
	defer func() {
		timeline.Recording = recording
		w.InTurn = false
	}()
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.End())
	}
	for choice, ok := w.Serial(); ok; choice, ok = w.Serial() {
		if err := w.Step(choice); err != nil {
			return nil, errors.Join(err, w.End())
		}
		w.lives.note(w.longest(), w.Run.Truth.Rejections > 0)
	}
	for _, client := range w.callers {
		if client.stuck != "" {
			return nil, errors.Join(w.misbehaves("the service hangs: %s; %s", client.stuck, client.instance.saying("it runs")),
				w.End())
		}
	}
	w.checkCounter()
	if w.Err != nil {
		return nil, w.End()
	}
	for _, step := range timeline.Steps {
		if step.Outcome != "" {
			answers = append(answers, step.Actor+" "+step.Outcome)
		}
	}
	return answers, w.End()
}
