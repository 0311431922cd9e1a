package foreign

import (
	"context"
	"runtime/debug"
	"slices"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// Step implements [engine.Engine].
func (e *Engine) Step(choice engine.Choice) error {
	var misfit error
	err := e.in(func() {
		e.Run.Truth.At(e.now)
		line := &e.Run.Timeline
		line.Start()
		misfit = e.do(choice)
		if misfit == nil {
			line.End(e.now.Sub(e.Setup.Begins()), &e.Run.Truth)
		}
	})
	if err != nil {
		return err
	}
	return misfit
}

func (e *Engine) do(choice engine.Choice) error {
	switch choice.Kind {
	case engine.TickClock:
		return e.tick(choice.ID)
	case engine.EvictKey:
		e.Inject(choice)
		e.sync()
		e.redis.Remove(choice.Key)
		return nil
	case engine.CrashHost:
		if choice.ID >= len(e.instances) {
			return engine.ErrMisfit
		}
		e.Inject(choice)
		e.crashInstance(e.instances[choice.ID])
		return nil
	case engine.Ask:
		return e.ask(choice.ID)
	case engine.StepActor:
		if client := e.starting(choice.ID); client != nil {
			e.start(client)
			return nil
		}
	}
	parked := e.parkedAt(choice.ID)
	if parked == nil {
		return engine.ErrMisfit
	}
	return e.act(choice, parked)
}

// starting is the client with the number, if it has not started.
func (e *Engine) starting(id int) *client {
	if id < e.last.Index {
		if client := e.clients[id]; !client.started && !client.dead.Load() {
			return client
		}
	}
	return nil
}

// parkedAt is what the actor with the number waits for its turn with.
func (e *Engine) parkedAt(id int) *parked {
	if id == e.lastNumber() {
		return e.last.at
	}
	if id < e.last.Index {
		if client := e.clients[id]; !client.dead.Load() {
			return client.at
		}
		return nil
	}
	for _, parked := range e.helpers {
		if e.number(parked) == id {
			return parked
		}
	}
	return nil
}

// number of the actor that an operation belongs to.
func (e *Engine) number(p *parked) int {
	if p.client == e.last {
		return e.lastNumber()
	}
	if p.client != nil {
		return p.client.Index
	}
	return e.last.Index + p.instance.index*mostHelpers + p.slot
}

// start begins a client, and carries its first command out if that is one step.
func (e *Engine) start(c *client) {
	e.Run.Timeline.By(c.Name, codes.RoleClient, c.Index, codes.EventCommand)
	e.say("starts", "", codes.EventStart)
	e.went = nil
	e.starts(c)
	if e.fused && c.at != nil && c.at.op.Store() {
		e.happen(c.at)
	}
}

func (e *Engine) starts(c *client) {
	e.comes(c.instance, c.Index, uint64(sched.Start))
	c.started = true
	e.activate(c)
	go e.perform(c)
	e.settle()
}

// perform is a client's goroutine.
func (e *Engine) perform(c *client) {
	e.mu.Lock()
	c.goroutine = stacks.Current()
	e.mu.Unlock()
	defer e.tell()
	defer func() {
		if value := recover(); value != nil && !e.isOver() {
			e.fail(&engine.PanicError{Where: c.Name, Value: value, Stack: debug.Stack()})
		}
		c.done.Store(true)
	}()
	c.Perform(context.Background(), func() bool {
		_, injected := e.park(context.Background(),
			&parked{op: sched.Op{Kind: sched.Wait}, instance: c.instance, life: c.instance.lives})
		return !injected
	})
}

// turn waits until a caller that something else than a step has woken may write down
// what it was told.
func (e *Engine) turn(c *client) {
	e.mu.Lock()
	if e.over || e.active == c && !c.dead.Load() {
		e.mu.Unlock()
		return
	}
	p := &parked{client: c, instance: c.instance, life: c.instance.lives, turn: true, release: make(chan error, 1)}
	e.arrived = append(e.arrived, p)
	e.mu.Unlock()
	e.tell()
	<-p.release
}

func (e *Engine) activate(c *client) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active = c
}

// settle waits until all goroutines wait, and gives those their turn that were woken by
// something else than a step.
func (e *Engine) settle() {
	for {
		synctest.Wait()
		e.receive()
		if len(e.turns) == 0 {
			e.activate(nil)
			return
		}
		parked := e.turns[0]
		e.turns = e.turns[1:]
		e.comes(parked.client.instance, parked.client.Index, uint64(sched.Wait))
		e.activate(parked.client)
		parked.free(nil)
	}
}

// act does with an operation what was chosen.
func (e *Engine) act(choice engine.Choice, p *parked) error {
	column := p.column()
	e.Run.Timeline.By(column.Name, column.Role, e.columnOf(p, column), codes.EventCommand)
	e.note(p, uint64(choice.Kind))
	e.went = p
	switch {
	case choice.Kind != engine.StepActor:
		return e.befall(choice, p)
	case !p.op.Store():
		e.say("goes on", "", codes.EventResume)
		e.release(p, nil)
	case p.answered:
		e.say("", "reply", codes.EventReply)
		e.release(p, nil)
	default:
		e.happen(p)
	}
	return nil
}

// befall has a fault happen to a client.
func (e *Engine) befall(choice engine.Choice, p *parked) error {
	if p.client == nil {
		return engine.ErrMisfit
	}
	if actor := e.caller(p.client); !choice.Befalls(&actor) {
		return engine.ErrMisfit
	}
	e.Inject(choice)
	switch choice.Kind {
	case engine.CrashCall:
		e.kill(p.client)
		e.release(p, errDead)
	case engine.RetryReply:
		e.sync()
		p.err = p.repeat()
		e.replied(p)
	default:
		err := choice.Err()
		if err == nil { // it would have its reply, and the search would claim that it bore the fault
			panic("foreign: nothing to fail with: " + choice.String())
		}
		text := p.op.String()
		if p.answered {
			text = ""
		}
		e.say(text, "", "")
		e.release(p, err)
	}
	return nil
}

// happen carries an operation out, and lets its caller know, if that is no step
// of its own.
func (e *Engine) happen(p *parked) {
	e.sync()
	p.err = p.effect()
	p.answered = true
	e.replied(p)
	if !e.Setup.Split() || p.op.Index != p.op.Of-1 {
		e.release(p, nil)
	}
}

// replied notes what an operation was answered.
func (e *Engine) replied(p *parked) {
	digest := &p.instance.history
	switch p.op.Kind {
	case sched.Command:
		engine.FoldReply(digest, p.op.Cmd, p.err)
		e.Run.Timeline.Stored.Commands("", p.op.Cmd)
		e.say(p.op.String(), engine.ReplyText(p.op.Cmd, p.err), codes.EventCommand)
	case sched.Transaction:
		for _, cmd := range p.op.Cmds {
			engine.FoldReply(digest, cmd, p.err)
		}
		e.Run.Timeline.Stored.Commands("", p.op.Cmds...)
		text := ""
		if p.err != nil {
			text = "error: " + p.err.Error()
		}
		e.say(p.op.String(), text, codes.EventCommand)
	}
}

// release lets a goroutine go on.
func (e *Engine) release(p *parked, err error) {
	if p.client != nil {
		p.client.at = nil
	}
	e.helpers = slices.DeleteFunc(e.helpers, func(o *parked) bool { return o == p })
	e.activate(p.client)
	p.free(err)
	e.settle()
}

// kill ends a client where it is: nothing of it reaches a store any more. One that is not released goes on at the end
// of the run.
func (e *Engine) kill(c *client) {
	c.dead.Store(true)
	c.Lose()
}

// crashInstance ends what an instance is doing, and opens it again without its memory.
func (e *Engine) crashInstance(in *instance) {
	history := engine.Digest{}
	for _, client := range e.clients {
		switch {
		case client.instance != in || !client.started || client.done.Load() || client.dead.Load():
		case client.between() && client.Survives():
			history.Fold(in.history) // which says where in its script it is
		default:
			e.kill(client)
		}
	}
	e.mu.Lock()
	e.helpers = slices.DeleteFunc(e.helpers, func(p *parked) bool {
		if p.instance == in {
			e.frozen = append(e.frozen, p)
		}
		return p.instance == in
	})
	in.lives++
	e.mu.Unlock()
	in.earlier = append(in.earlier, in.strategy)
	in.history = history
	if err := e.open(in); err != nil {
		e.fail(err)
	}
	e.settle()
}

// tick lets time pass up to a deadline.
func (e *Engine) tick(kind int) error {
	ticked := e.Ticking()
	what := engine.TickTexts[kind]
	if kind == engine.TickWaiter {
		what = "a wait ends"
		if !e.waits() && !e.own {
			return engine.ErrMisfit
		}
		if !e.await(e.anything) && e.waits() && !e.anyMoves() {
			e.stuck = e.waiting()
			what = "and nothing comes"
		}
	} else {
		t, ok := e.Deadline(kind)
		if !ok {
			return engine.ErrMisfit
		}
		if kind == engine.TickLast {
			e.lingers = t
		}
		time.Sleep(t.Sub(e.now))
		synctest.Wait()
	}
	e.now = e.clock.Now()
	e.sync()
	ticked(what)
	e.settle()
	return nil
}

// anything reports whether something has happened that the search has not seen.
func (e *Engine) anything() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.arrived) > 0 || e.finished() != e.ended
}

// await lets time pass until something is so, at most for longest. It reports whether
// it came to be.
func (e *Engine) await(so func() bool) bool {
	e.ended = e.finished()
	limit := time.NewTimer(e.longest())
	defer limit.Stop()
	for {
		synctest.Wait()
		if so() {
			return true
		}
		select {
		case <-e.news:
		case <-limit.C:
			synctest.Wait()
			return so()
		}
	}
}

func (e *Engine) finished() (n int) {
	for _, client := range e.clients {
		if client.done.Load() {
			n++
		}
	}
	return n
}
