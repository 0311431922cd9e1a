package inproc

import (
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

// Step implements [engine.Engine].
func (w *Engine) Step(c engine.Choice) (err error) {
	defer w.caught("a step", &err)
	w.Run.Truth.At(w.s.Now())
	line := &w.Run.Timeline
	line.Start()
	w.footBefore()
	if err := w.do(c); err != nil {
		return err
	}
	if w.Err == nil {
		w.Err = w.store.lacking()
	}
	if w.Err != nil {
		return w.Err
	}
	if !w.hurries {
		w.screen()
	}
	w.footAfter(c)
	line.End(w.s.Now().Sub(w.start), &w.Run.Truth)
	return nil
}

func (w *Engine) do(c engine.Choice) error {
	switch c.Kind {
	case engine.TickClock:
		return w.tick(c.ID)
	case engine.EvictKey:
		w.Inject(c)
		w.s.Sync()
		return w.store.evict(c.Key)
	case engine.CrashHost:
		if c.ID >= len(w.instances) {
			return engine.ErrMisfit
		}
		w.Inject(c)
		return w.crashInstance(w.instances[c.ID])
	case engine.Ask:
		return w.ask(c.ID)
	}
	if c.ID >= len(w.actors) || w.actors[c.ID].Done() {
		return engine.ErrMisfit
	}
	m := w.actors[c.ID]
	w.column(m)
	kind := m.Kind()
	if kind == sched.Idle {
		m.history = engine.Digest{}
	}
	w.remember(m)
	switch c.Kind {
	case engine.PromptJob:
		if m.client != nil || kind != sched.Idle {
			return engine.ErrMisfit
		}
		m.Job().Prompt()
		w.s.Step(m.Actor)
	case engine.StepActor:
		if !m.Ready() {
			return engine.ErrMisfit
		}
		if w.fused && kind == sched.Start {
			w.s.Starts(m.Actor)
		} else {
			w.s.Step(m.Actor)
		}
	default:
		return w.befall(c, m)
	}
	return nil
}

// befall has a fault happen to an actor.
func (w *Engine) befall(c engine.Choice, m *member) error {
	var a engine.Actor
	if w.actor(m, &a); !c.Befalls(&a) {
		return engine.ErrMisfit
	}
	w.Inject(c)
	switch c.Kind {
	case engine.CrashCall:
		w.kill(m)
	case engine.RetryReply:
		w.s.Repeat(m.Actor)
	default:
		w.s.Fail(m.Actor, c.Err())
	}
	return nil
}

func (w *Engine) kill(m *member) {
	w.s.Kill(m.Actor)
	if m.client != nil {
		m.client.Lose()
	}
	m.history.Num(1 << 40)
}

// crashInstance ends what an instance is doing, forgets its memory and opens it
// again, as a supervisor does. Requests that have not come yet will ask the new one.
func (w *Engine) crashInstance(in *instance) error {
	for _, m := range w.actors {
		if m.in == in && !m.Done() && !m.toCome() {
			w.kill(m)
		}
	}
	in.lives++
	if err := w.open(in); err != nil {
		return err
	}
	w.startJobs(in, in.index == 0)
	return nil
}

func (w *Engine) tick(kind int) error {
	t, ok := w.Deadline(kind)
	if !ok {
		return engine.ErrMisfit
	}
	ticked := w.Ticking()
	d := t.Sub(w.s.Now())
	if a, ok := w.store.(ager); ok {
		if err := a.age(d); err != nil {
			return err
		}
	}
	if err := w.Pass(d); err != nil {
		return err
	}
	ticked(engine.TickTexts[kind])
	return nil
}

// Pass implements [engine.Local].
func (w *Engine) Pass(d time.Duration) error {
	w.s.Advance(d)
	w.s.Sync()
	w.Run.Truth.At(w.s.Now())
	return nil
}

// ager is a store whose deadlines do not follow virtual time by themselves.
type ager interface{ age(d time.Duration) error }

// observe is told of every step of every actor.
func (w *Engine) observe(e *sched.Event) {
	if e.Actor.ID >= len(w.actors) { // being killed, or not known yet
		return
	}
	m := w.actors[e.Actor.ID]
	w.describe(m, e)
	if j := m.Job(); j != nil && j.Every() > 0 && e.Op.Store() && (e.Outcome == sched.Happened || e.Outcome == sched.Repeated) {
		w.jobSynced(j.Every())
	}
	if e.Op.Kind == sched.SQL {
		w.foot.tables = true
	}
	if w.blind || w.Setup.Stateless {
		return
	}
	reply := engine.Digest{}
	reply.Num(uint64(e.Op.Kind)<<8 | uint64(e.Outcome))
	reply.Num(uint64(w.s.Nano()))
	switch answered := e.Outcome == sched.Happened || e.Outcome == sched.Repeated; {
	case e.Outcome == sched.Failed:
		reply.Text(e.Err.Error())
	case answered && e.Op.Kind == sched.Command:
		engine.FoldReply(&reply, e.Op.Cmd, e.Err)
	case answered && e.Op.Kind == sched.Transaction:
		for _, c := range e.Op.Cmds {
			engine.FoldReply(&reply, c, e.Err)
		}
	}
	m.history.Fold(reply)
	w.comes(m, &reply)
}

// remember has an actor see what is in memory before it goes on: with the replies
// it was given, that is all that its own variables can depend on. What only
// statements of the model reach is seen by those alone.
func (w *Engine) remember(m *member) {
	if w.blind || w.Setup.Stateless {
		return
	}
	var without *strategies.Shared
	if w.sel.NeedsStore(strategies.NeedSource) && m.Kind() != sched.SQL {
		without = w.shared
	}
	if m.Op().Kind == sched.SQL {
		w.foot.tables = true
	}
	if m.in.members > 1 || w.Setup.Shares || without == nil && w.shared.Len() > 0 {
		if len(w.current(w.memory.hash(&m.history, m.in.strategy, view{caller: m.client != nil, without: without}))) > 0 {
			m.history.Fold(m.in.history)
		}
	}
}

// ask is one request of the last client, of that instance. If it has to wait within
// that, it goes on as everybody does.
func (w *Engine) ask(instance int) error {
	c := w.last
	if !w.MayAsk(instance) {
		return engine.ErrMisfit
	}
	if c.m == nil {
		c.m = w.join(w.s.Go(c.Name, c.body), w.instances[instance], c)
	}
	m := c.m
	w.column(m)
	return w.AskWhole(func() (goesOn bool, err error) {
		w.remember(m)
		w.s.Step(m.Actor)
		return !m.Done() && m.Ready() && !m.between(), nil
	})
}
