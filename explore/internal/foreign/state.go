package foreign

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/explore/internal/inproc"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Keep implements [engine.Local].
func (e *Engine) Keep() {
	e.redis.Keep()
	var opened []strategies.Strategy
	for _, instance := range e.instances {
		opened = append(opened, instance.strategy)
	}
	e.common = e.shared.Len() > 0 || e.Run.Left == 0 && inproc.Common(opened, e.sel.Options)
	e.Setup.Shares = e.Setup.Shares || e.Run.Aside || e.common
}

// State implements [engine.Engine].
func (e *Engine) State() (engine.Digest, error) {
	var digest engine.Digest
	digest.Moment(e.now)
	digest.Stored(e.keys(), e.redis.Fresh(nil))
	for _, instance := range e.instances {
		digest.Num(uint64(instance.lives))
		digest.Fold(instance.history)
	}
	for _, client := range e.clients {
		digest.Bool(client.dead.Load())
		digest.Bool(client.done.Load())
	}
	e.Budget.Digest(&digest)
	digest.Num(uint64(len(e.stuck)))
	if e.common { // instances see memory of each other
		digest.Fold(e.history)
	}
	e.Run.Truth.Digest(&digest, e.Setup.Ordered)
	return digest, nil
}

// note has an instance remember what comes to it.
func (e *Engine) note(p *parked, kind uint64) {
	e.comes(p.instance, e.number(p), kind)
	p.instance.history.Text(p.op.String())
}

// comes has an instance remember that something comes to an actor, and all of them in which order that was.
func (e *Engine) comes(in *instance, number int, kind uint64) {
	in.history.Num(uint64(number)<<8 | kind)
	in.history.Moment(e.now)
	e.history.Num(uint64(number)<<8 | kind)
}

// Holdings implements [engine.Engine].
func (e *Engine) Holdings() ([]engine.Holding, error) { return engine.Held(nil, e.keys()), nil }

// Used implements [engine.Engine].
func (e *Engine) Used() (readings []quota.Reading, ok bool) {
	viewer, ok := e.instances[0].strategy.(strategies.Viewer)
	if !ok {
		return nil, false
	}
	var err error
	hung := e.in(func() {
		e.direct.Store(true)
		defer e.direct.Store(false)
		e.sync()
		readings, err = viewer.Used(context.Background(), engine.Subject, e.Run.Truth.Policy)
	})
	return readings, err == nil && hung == nil
}

// Pass implements [engine.Local].
func (e *Engine) Pass(duration time.Duration) error {
	return e.in(func() {
		time.Sleep(duration)
		e.now = e.clock.Now()
		e.Run.Truth.At(e.now)
		e.settle()
	})
}

// column is the actor that an operation belongs to, in a timeline.
func (p *parked) column() results.Column {
	if p.client != nil {
		return p.client.column()
	}
	label := fmt.Sprintf("goroutine%d", p.slot)
	return results.Column{
		Name: fmt.Sprintf("%d:%s", p.instance.index, label), Role: codes.RoleJob, Label: label,
		Instance: &p.instance.index,
	}
}

func (c *client) column() results.Column {
	return results.Column{Name: c.Name, Role: codes.RoleClient}
}

// columnOf is the column of an actor in the timeline.
func (e *Engine) columnOf(p *parked, column results.Column) int {
	if p.client != nil && p.client != e.last {
		return p.client.Index
	}
	return e.shown(column)
}

// shown is the number of the column of one that gets one when it is first seen.
func (e *Engine) shown(column results.Column) int {
	i := slices.Index(e.names, column.Name)
	if i < 0 {
		i = len(e.names)
		e.names = append(e.names, column.Name)
		e.Run.Timeline.Column(column)
	}
	return e.last.Index + i
}

// say puts what is done, and what was answered, on the line.
func (e *Engine) say(text, reply string, event codes.StepEvent) {
	step := e.Run.Timeline.Line
	if step == nil {
		return
	}
	if e.Run.Timeline.Whole && event != codes.EventCommand {
		return
	}
	if event != codes.EventStart && event != codes.EventResume {
		step.Store = "redis"
		step.Kind = "redis"
	}
	e.Run.Timeline.Add(text, reply, event)
}
