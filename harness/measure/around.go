package measure

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/trouble"
)

// abortGrace is how long operations in flight may take to end after Ctrl-C.
const abortGrace = 500 * time.Millisecond

// step is one step of a run.
type step = func(ctx context.Context) error

// around is what has to happen around the steps of one run: time limits, interrupts, the wait for other
// generators, and in the end the return of everything that the steps took.
//
// Ctrl-C ends the setting up at once and the pass at the next request. It leaves little time for the judgement, and
// does not end the clean-up.
type around struct {
	pass *pass
	// ctx is that of the measurement, which Ctrl-C ends.
	ctx context.Context
	// work is the context of setting up, and of background jobs.
	work context.Context
	// cancel ends work.
	cancel context.CancelFunc
}

func newAround(ctx context.Context, pass *pass) *around {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &around{pass: pass, ctx: ctx, work: work, cancel: cancel}
}

// settingUp takes the steps before the pass, which Ctrl-C ends.
func (a *around) settingUp(steps ...step) error {
	detach := context.AfterFunc(a.ctx, a.cancel)
	if err := inOrder(a.work, steps); err != nil {
		return err
	}
	interrupted := !detach()
	if interrupted {
		return a.ctx.Err()
	}
	return nil
}

// passing takes the steps of the pass. Ctrl-C stops it at the next request; operations that do not end soon after
// are given up.
func (a *around) passing(steps ...step) error {
	work, cancel := context.WithCancel(context.WithoutCancel(a.ctx))
	defer cancel()
	detach := context.AfterFunc(a.ctx, func() {
		a.pass.drive.stop.Store(true)
		time.AfterFunc(abortGrace, cancel)
	})
	defer detach()
	return inOrder(work, steps)
}

// judging takes the steps after the pass, for which Ctrl-C leaves little time.
func (a *around) judging(steps ...step) error {
	judging, end := harness.Judging(a.ctx)
	defer end()
	return inOrder(judging, steps)
}

// inOrder takes steps until one fails.
func inOrder(ctx context.Context, steps []step) error {
	for _, next := range steps {
		if err := next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// together takes a step when all generators have come to it.
func (a *around) together(meeting string, next step) step {
	return func(ctx context.Context) error {
		met, err := a.pass.measurement.meet(a.ctx, meeting)
		if err != nil {
			return err
		}
		a.pass.met = met
		return next(ctx)
	}
}

// evenAlone does the same, and takes the step if other generators are lost, too.
func (a *around) evenAlone(meeting string, next step) step {
	return func(ctx context.Context) error {
		_, lost := a.pass.measurement.meet(a.ctx, meeting)
		return cmp.Or(next(ctx), lost)
	}
}

// end gives back what the steps took, whichever was the last. The last taken comes first.
func (a *around) end(err *error) {
	defer a.cancel()
	pass := a.pass
	if pass.site == nil {
		return
	}
	defer func() { *err = a.leave(*err) }()
	if pass.lift != nil {
		defer pass.lift()
	}
	if pass.drive == nil {
		return
	}
	defer func() { *err = errors.Join(*err, pass.drive.close()) }()
	defer func() { *err = errors.Join(*err, pass.site.jobs.stop(pass.site.aside())) }()
}

// leave closes the site when all generators have come to the end: what all have asked for may go then.
func (a *around) leave(err error) error {
	pass := a.pass
	_, lost := pass.measurement.meet(a.ctx, "end")
	pass.site.apart = lost != nil
	if err == nil {
		err = lost
	}
	pass.site.hung(err)
	err = errors.Join(err, pass.site.close(context.WithoutCancel(a.ctx)))
	if pass.measurement.cfg.Trouble.Has(trouble.Failover) {
		pass.measurement.places.forget()
	}
	return err
}
