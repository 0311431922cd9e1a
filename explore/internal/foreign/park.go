package foreign

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

var (
	// errOver is what an operation answers once its run is over.
	errOver = errors.New("foreign: the run is over")
	// errDead ends the goroutine that waits for an answer.
	errDead = errors.New("foreign: the caller is dead")
)

// parked is an operation of a goroutine that waits for its turn.
type parked struct {
	op       sched.Op
	instance *instance
	// life of the instance that it belongs to.
	life int
	// client whose goroutine it is, or nil.
	client *client
	// goroutine that waits.
	goroutine uint64
	effect    func() error
	repeat    func() error
	// answered is set once the operation has happened and only the answer is out.
	answered bool
	err      error // of what has happened
	// turn is set for a caller that was woken by something else than a step, and may
	// not write down what it was told before it is its turn.
	turn bool
	// gone is set if the goroutine has stopped waiting, since its context ended.
	gone bool
	// release has the goroutine go on with an error, or with what the effect was.
	release chan error
	// number of the slot, for those of a strategy's own goroutines.
	slot int
}

// park waits until the operation has happened and its reply may be known. injected is
// set if the error is not the operation's own.
func (e *Engine) park(ctx context.Context, p *parked) (err error, injected bool) {
	p.goroutine = stacks.Current()
	p.client = e.callerOn(p.goroutine)
	p.release = make(chan error, 1)
	e.mu.Lock()
	if e.over || p.instance.lives != p.life || p.client != nil && p.client.dead.Load() {
		e.mu.Unlock()
		return errOver, true
	}
	e.arrived = append(e.arrived, p)
	e.mu.Unlock()
	e.tell()
	select {
	case err := <-p.release:
		return p.outcome(err)
	case <-ctx.Done():
		e.mu.Lock()
		p.gone = true
		e.mu.Unlock()
		return ctx.Err(), true
	}
}

func (p *parked) outcome(err error) (error, bool) {
	switch {
	case errors.Is(err, errDead) && p.op.Cmd != nil && p.op.Cmd.Name() == "unwatch":
		return errOver, true // the client cleans up already, and gives its connection back after that
	case errors.Is(err, errDead):
		runtime.Goexit()
	case err != nil:
		return err, true
	}
	return p.err, false
}

// tell wakes whoever waits for something to happen while time passes.
func (e *Engine) tell() {
	select {
	case e.news <- struct{}{}:
	default:
	}
}

func (e *Engine) callerOn(goroutine uint64) *client {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, client := range e.clients {
		if client.goroutine == goroutine {
			return client
		}
	}
	return nil
}

// hook parks the commands of one instance's client.
type hook struct {
	engine   *Engine
	instance *instance
	life     int
}

// DialHook implements [redis.Hook].
func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.engine.within() {
			return next(ctx, cmd)
		}
		effect := func() error { return h.engine.carriesOut(func() error { return next(ctx, cmd) }) }
		if h.engine.direct.Load() {
			return effect()
		}
		h.engine.seen(ctx, cmd)
		p := &parked{op: sched.Op{Kind: sched.Command, Cmd: cmd, Of: 1}, instance: h.instance, life: h.life, effect: effect,
			repeat: effect}
		err, injected := h.engine.park(ctx, p)
		if injected {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if h.engine.within() {
			return next(ctx, cmds)
		}
		each := func(part []redis.Cmder) error { return h.engine.carriesOut(func() error { return next(ctx, part) }) }
		if h.engine.direct.Load() || len(cmds) == 0 {
			return each(cmds)
		}
		for _, cmd := range cmds {
			h.engine.seen(ctx, cmd)
		}
		return sched.Pipelined(cmds, each, func(op sched.Op, effect, repeat func() error) (error, bool) {
			return h.engine.park(ctx, &parked{op: op, instance: h.instance, life: h.life, effect: effect, repeat: repeat})
		})
	}
}

// mostHelpers is how many goroutines of its own an instance may have at the store at
// the same time.
const mostHelpers = 8

// receive takes what has arrived since the last step. It runs while all goroutines of
// the bubble wait.
func (e *Engine) receive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.SortStableFunc(e.arrived, func(a, b *parked) int { return e.rank(a) - e.rank(b) })
	for _, parked := range e.arrived {
		switch {
		case parked.gone:
		case parked.life != parked.instance.lives || parked.client != nil && parked.client.dead.Load():
			e.frozen = append(e.frozen, parked)
		case parked.turn:
			e.turns = append(e.turns, parked)
		case parked.client != nil:
			parked.client.at = parked
		case !e.help(parked) && e.err == nil:
			e.err = errors.New("a strategy has more goroutines at the store at once than can be told apart")
		}
	}
	e.arrived = e.arrived[:0]
	e.helpers = slices.DeleteFunc(e.helpers, func(p *parked) bool { return p.gone })
	for _, client := range e.clients {
		if client.at != nil && client.at.gone {
			client.at = nil
		}
	}
}

// rank orders what arrives in one step: callers by their number, then the strategy's
// own goroutines, the one that took the step and others as they were started.
func (e *Engine) rank(p *parked) int {
	switch {
	case p.client != nil:
		return p.client.Index
	case e.wentOn(p):
		return 1 << 16
	default:
		return 1<<16 + int(p.goroutine)
	}
}

// help gives an operation of a strategy's own goroutine a slot. The one that took the step
// keeps its own.
func (e *Engine) help(p *parked) bool {
	e.Run.Aside = true
	if e.wentOn(p) && e.free(p.instance, e.went.slot) {
		p.slot = e.went.slot
		e.helpers = append(e.helpers, p)
		return true
	}
	for slot := range mostHelpers {
		if e.free(p.instance, slot) {
			p.slot = slot
			e.helpers = append(e.helpers, p)
			return true
		}
	}
	return false
}

// free reports whether no goroutine of an instance has the slot.
func (e *Engine) free(in *instance, slot int) bool {
	return !slices.ContainsFunc(e.helpers, func(o *parked) bool { return o.instance == in && o.slot == slot })
}
