package inproc

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// statement is where statements of the model park.
func (w *Engine) statement(ctx context.Context, sql string, run func() error) error {
	if w.own("a statement") || sched.From(ctx) == nil && w.refused(ctx, "a statement") {
		return sched.ErrForeign
	}
	if w.sampled && !w.blind {
		w.Witness.Statement(ctx, sql, nil)
	}
	return sched.Statement(ctx, sql, run)
}

// pass looks at the Redis commands of a call of the client, and keeps those from the store that would race with
// everything here.
func (w *Engine) pass(ctx context.Context, actor *sched.Actor, cmds ...redis.Cmder) bool {
	first := cmds[0].Name()
	if w.own(first) || actor == nil && w.refused(ctx, first) {
		return false
	}
	if w.sampled && !w.blind {
		for _, cmd := range cmds {
			w.Witness.Command(ctx, cmd.Name(), cmd.Args())
		}
	}
	return true
}

// own reports whether an operation of a strategy that is none of this module's comes from a
// goroutine of its own. Until that is known nothing is read that a search writes.
func (w *Engine) own(name string) bool {
	if w.known || !w.scheduler.OnOwn() {
		return false
	}
	w.Witness.Note(witness.OwnGoroutine, name+ownGoroutine)
	return true
}

const ownGoroutine = " came from a goroutine that the strategy has started"

// refused looks at the context and the goroutine of a command that comes under no
// actor's context. It reports whether the command must not happen, since it comes
// from a goroutine that cannot be scheduled.
func (w *Engine) refused(ctx context.Context, name string) bool {
	if ctx.Value(setupKey{}) != nil {
		return false
	}
	if w.scheduler.OnScheduler() {
		return false // instances are being opened, under a context of the strategy's own
	}
	if w.scheduler.OnActor() {
		w.Witness.Note(witness.ContextLost, name+" came without the context of the call that it is part of")
		return false
	}
	w.Witness.Note(witness.OwnGoroutine, name+ownGoroutine)
	return true
}
