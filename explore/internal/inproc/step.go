package inproc

import (
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Step implements [engine.Engine].
func (w *Engine) Step(choice engine.Choice) (err error) {
	defer w.caught("a step", &err)
	w.Run.Truth.At(w.scheduler.Now())
	line := &w.Run.Timeline
	line.Start()
	w.footBefore()
	if err := w.do(choice); err != nil {
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
	w.footAfter(choice)
	line.End(w.scheduler.Now().Sub(w.start), &w.Run.Truth)
	return nil
}

func (w *Engine) do(choice engine.Choice) error {
	switch choice.Kind {
	case engine.TickClock:
		return w.tick(choice.ID)
	case engine.EvictKey:
		w.Inject(choice)
		w.scheduler.Sync()
		return w.store.evict(choice.Key)
	case engine.CrashHost:
		if choice.ID >= len(w.instances) {
			return engine.ErrMisfit
		}
		w.Inject(choice)
		return w.crashInstance(w.instances[choice.ID])
	case engine.Ask:
		return w.ask(choice.ID)
	}
	if choice.ID >= len(w.actors) || w.actors[choice.ID].Done() {
		return engine.ErrMisfit
	}
	member := w.actors[choice.ID]
	w.column(member)
	kind := member.Kind()
	if kind == sched.Idle {
		member.history = engine.Digest{}
	}
	w.remember(member)
	switch choice.Kind {
	case engine.PromptJob:
		if member.client != nil || kind != sched.Idle {
			return engine.ErrMisfit
		}
		member.Job().Prompt()
		w.scheduler.Step(member.Actor)
	case engine.StepActor:
		if !member.Ready() {
			return engine.ErrMisfit
		}
		if w.fused && kind == sched.Start {
			w.scheduler.Starts(member.Actor)
		} else {
			w.scheduler.Step(member.Actor)
		}
	default:
		if err := w.befall(choice, member); err != nil {
			return err
		}
	}
	w.knowsMoment(member)
	return nil
}

// befall has a fault happen to an actor.
func (w *Engine) befall(choice engine.Choice, m *member) error {
	var actor engine.Actor
	w.actor(m, &actor)
	if !choice.Befalls(&actor) {
		return engine.ErrMisfit
	}
	w.Inject(choice)
	switch choice.Kind {
	case engine.CrashCall:
		w.kill(m)
	case engine.RetryReply:
		w.scheduler.Repeat(m.Actor)
	default:
		w.scheduler.Fail(m.Actor, choice.Err())
	}
	return nil
}

func (w *Engine) kill(m *member) {
	w.scheduler.Kill(m.Actor)
	if m.client != nil {
		m.client.Lose()
	}
	m.history.Num(1 << 40)
}

// crashInstance ends what an instance is doing, forgets its memory and opens it
// again, as a supervisor does. Requests that have not come yet will ask the new one.
func (w *Engine) crashInstance(in *instance) error {
	for _, member := range w.actors {
		if member.instance == in && !member.Done() && !member.toCome() {
			w.kill(member)
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
	duration := t.Sub(w.scheduler.Now())
	if lingerer, ok := w.store.(lingerer); ok && kind == engine.TickLast {
		lingerer.linger(t)
	}
	if a, ok := w.store.(ager); ok {
		if err := a.age(duration); err != nil {
			return err
		}
	}
	if err := w.Pass(duration); err != nil {
		return err
	}
	ticked(engine.TickTexts[kind])
	return nil
}

// Pass implements [engine.Local].
func (w *Engine) Pass(duration time.Duration) error {
	w.scheduler.Advance(duration)
	w.scheduler.Sync()
	w.Run.Truth.At(w.scheduler.Now())
	return nil
}

// lingerer is a store whose keys can be met in the millisecond of their deadline: at that moment, none is removed.
type lingerer interface{ linger(at time.Time) }

// ager is a store whose deadlines do not follow virtual time by themselves.
type ager interface {
	age(duration time.Duration) error
}

// observe is told of every step of every actor.
func (w *Engine) observe(event *sched.Event) {
	if event.Actor.ID >= len(w.actors) { // being killed, or not known yet
		return
	}
	member := w.actors[event.Actor.ID]
	w.describe(member, event)
	if j := member.Job(); j != nil && j.Every() > 0 && event.Op.Store() &&
		(event.Outcome == sched.Happened || event.Outcome == sched.Repeated) {
		w.jobSynced(j.Every())
	}
	if event.Op.Kind == sched.SQL {
		w.foot.tables = true
	}
	if w.blind || w.Setup.Stateless {
		return
	}
	reply := engine.Digest{}
	reply.Num(uint64(event.Op.Kind)<<8 | uint64(event.Outcome))
	if member.client == nil {
		reply.Num(uint64(w.scheduler.Nano())) // its next round may depend on it
	}
	switch answered := event.Outcome == sched.Happened || event.Outcome == sched.Repeated; {
	case event.Outcome == sched.Failed:
		reply.Text(event.Err.Error())
	case answered && event.Op.Kind == sched.Command:
		engine.FoldReply(&reply, event.Op.Cmd, event.Err)
	case answered && event.Op.Kind == sched.Transaction:
		for _, cmd := range event.Op.Cmds {
			engine.FoldReply(&reply, cmd, event.Err)
		}
	}
	member.history.Fold(reply)
	w.comes(member, &reply)
}

// knowsMoment has a caller know the moment of the step that it has taken, if it has read a clock in that. When it was
// given a reply makes no other difference to it.
func (w *Engine) knowsMoment(m *member) {
	if !w.scheduler.ReadClock() || w.blind || w.Setup.Stateless {
		return
	}
	moment := engine.Digest{}
	moment.Moment(w.scheduler.Now())
	m.history.Fold(moment)
	w.comes(m, &moment)
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
	if m.instance.members > 1 || w.Setup.Shares || without == nil && w.shared.Len() > 0 {
		if len(w.current(w.memory.hash(&m.history, m.instance.strategy,
			view{caller: m.client != nil, without: without}))) > 0 {
			m.history.Fold(m.instance.history)
		}
	}
}

// ask is one request of the last client, of that instance. If it has to wait within
// that, it goes on as everybody does.
func (w *Engine) ask(instance int) error {
	client := w.last
	if !w.MayAsk(instance) {
		return engine.ErrMisfit
	}
	if client.member == nil {
		client.member = w.join(w.scheduler.Go(client.Name, client.body), w.instances[instance], client)
		w.Run.Timeline.Column(results.Column{Name: client.Name, Role: codes.RoleClient})
	}
	member := client.member
	w.column(member)
	return w.AskWhole(func() (goesOn bool, err error) {
		w.remember(member)
		w.scheduler.Step(member.Actor)
		w.knowsMoment(member)
		return !member.Done() && member.Ready() && !member.between(), nil
	})
}
