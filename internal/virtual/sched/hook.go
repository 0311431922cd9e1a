package sched

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Hook parks the actor found in a command's context before the command reaches
// the client. Commands with any other context go on. One client serves one
// scheduler after the other.
//
// A lone command and a MULTI/EXEC are one step each; the commands of a plain
// pipeline are one step each, since Redis may run others between them. The
// client must not retry by itself (MaxRetries -1), or repeats stay unseen.
type Hook struct {
	// Pass, if not nil, is shown every command or pipeline first, with the actor found in its
	// context, or nil. What it does not let pass answers [ErrForeign].
	Pass func(ctx context.Context, actor *Actor, cmds ...redis.Cmder) bool
	// Answer, if not nil, is asked first to carry out a lone command under Simulate.
	Answer Answer
}

// Answer carries out a command at the moment at which it happens, and reports whether it
// could: if not, the command goes on to the client. The error is the command's own. It is
// called on any goroutine, one call at a time, and must neither wait nor fail to return.
type Answer func(cmd redis.Cmder) (err error, ok bool)

var _ redis.Hook = Hook{}

// DialHook leaves dialling alone; it happens inside of a command's step.
func (Hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook parks before one command.
func (h Hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		actor := From(ctx)
		if h.Pass != nil && !h.Pass(ctx, actor, cmd) {
			cmd.SetErr(ErrForeign)
			return ErrForeign
		}
		if actor == nil {
			return next(ctx, cmd)
		}
		if actor.astray() {
			return ErrForeign
		}
		if actor.inside {
			return next(ctx, cmd)
		}
		effect := func() error { return next(ctx, cmd) }
		err, _ := actor.perform(&Op{Kind: Command, Cmd: cmd, Of: 1}, h.Answer, effect, effect)
		return err // which the client puts into cmd
	}
}

// ProcessPipelineHook parks before a transaction, or before each command of a
// plain pipeline, whose replies arrive together.
func (h Hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		actor := From(ctx)
		if h.Pass != nil && len(cmds) > 0 && !h.Pass(ctx, actor, cmds...) {
			setErrors(cmds, ErrForeign)
			return ErrForeign
		}
		if actor == nil || len(cmds) == 0 {
			return next(ctx, cmds)
		}
		if actor.astray() {
			setErrors(cmds, ErrForeign)
			return ErrForeign
		}
		if actor.inside {
			return next(ctx, cmds)
		}
		each := func(part []redis.Cmder) error { return next(ctx, part) }
		return Pipelined(cmds, each, func(op Op, effect, repeat func() error) (error, bool) {
			return actor.perform(&op, nil, effect, repeat)
		})
	}
}

// Pipelined parts a pipeline into operations, which do carries out: a transaction as a whole, and any other command by
// command. next sends commands to the store. do reports whether its error is injected; a client repeats the whole
// pipeline.
func Pipelined(
	cmds []redis.Cmder, next func([]redis.Cmder) error,
	do func(op Op, effect, repeat func() error) (err error, injected bool),
) error {
	all := func() error { return next(cmds) }
	if cmds[0].Name() == "multi" {
		err, injected := do(Op{Kind: Transaction, Cmds: cmds, Of: 1}, all, all)
		if injected {
			setErrors(cmds, err)
		}
		return err
	}
	var first error
	for i := range cmds {
		one := cmds[i : i+1 : i+1]
		happened := false
		err, injected := do(Op{Kind: Command, Cmd: cmds[i], Index: i, Of: len(cmds)}, func() error {
			happened = true
			return next(one)
		}, all)
		if injected && happened {
			one = cmds // the reply that was lost was that of all
		}
		if injected {
			setErrors(one, err)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func setErrors(cmds []redis.Cmder, err error) {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// Statement parks the actor found in ctx before a statement of a
// [strategies.Model].
func Statement(ctx context.Context, sql string, run func() error) error {
	actor := From(ctx)
	if actor == nil {
		return run()
	}
	if actor.astray() {
		return ErrForeign
	}
	if actor.inside {
		return run()
	}
	err, _ := actor.perform(&Op{Kind: SQL, SQL: sql, Of: 1}, nil, run, run)
	return err
}
