package inproc

import (
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// column begins the line of an actor's step.
func (w *Engine) column(m *member) {
	w.Run.Timeline.By(m.Name, m.role(), m.ID, codes.EventCommand)
}

// describe puts an actor's step on its line.
func (w *Engine) describe(m *member, e *sched.Event) {
	step := w.Run.Timeline.Line
	if step == nil || step.Column != m.ID || e.Outcome == sched.Killed {
		return
	}
	if w.Run.Timeline.Whole && e.Op.Kind != sched.Command && e.Op.Kind != sched.Transaction && e.Op.Kind != sched.SQL {
		return
	}
	if store, kind := storeName(e.Op); store != "" {
		step.Store = store
		step.Kind = kind
	}
	event := codes.EventCommand
	text := e.Op.String()
	reply := ""
	switch {
	case e.Op.Kind == sched.Start:
		text = "starts"
		event = codes.EventStart
	case e.Op.Kind == sched.Idle:
		text = "round begins"
		event = codes.EventRound
	case e.Op.Kind == sched.Wait && m.client != nil:
		text = "goes on"
		event = codes.EventResume
	case e.Outcome == sched.Failed: // the fault has said so
		if e.Op.Kind == sched.Reply {
			text = ""
		}
	case e.Op.Kind == sched.Command:
		w.sent(e.Op.Cmd)
		reply = engine.ReplyText(e.Op.Cmd, e.Err)
	case e.Op.Kind == sched.Reply:
		text = ""
		reply = "reply"
		event = codes.EventReply
	case e.Op.Kind == sched.Transaction:
		w.sent(e.Op.Cmds...)
		if e.Err != nil {
			reply = "error: " + e.Err.Error()
		}
	case e.Err != nil:
		reply = "error: " + e.Err.Error()
	}
	if p := w.store.prefix(); p != "" {
		text = strings.ReplaceAll(text, p, "")
	}
	w.Run.Timeline.Add(text, reply, event)
}

// sent notes the keys of commands, which have a prefix on a server.
func (w *Engine) sent(commands ...redis.Cmder) {
	w.Run.Timeline.Stored.Commands(w.store.prefix(), commands...)
}

// stored is what the store holds, as far as it can be seen.
func (w *Engine) stored() []fakeredis.Key {
	keys, err := w.store.keys()
	if err != nil && w.Err == nil {
		w.Err = err
	}
	return keys
}

// storeName is where an operation happens, and the kind of what is sent there.
func storeName(op *sched.Op) (store, kind string) {
	k := op.Kind
	if k == sched.Reply {
		k = op.ReplyTo()
	}
	switch k {
	case sched.Command, sched.Transaction:
		return "redis", "redis"
	case sched.SQL:
		return "model", "sql"
	default:
		return "", ""
	}
}
