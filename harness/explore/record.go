package explore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/sched"
)

// Step is one line of a timeline.
type Step struct {
	Number int `json:"number"`
	// At is virtual time since the start.
	At time.Duration `json:"at_ns"`
	// Actor who took the step, and its column; -1 for clock, store and instances.
	Actor  string `json:"actor"`
	Column int    `json:"column"`
	// Store that the step is about: "redis", "model" for the database of record, or
	// empty.
	Store string `json:"store,omitempty"`
	// Fault that was injected, if any.
	Fault string `json:"fault,omitempty"`
	// Command and what it answered. Where effect and reply are two steps, the
	// second one has only the reply.
	Command string `json:"command,omitempty"`
	Reply   string `json:"reply,omitempty"`
	// Outcome is what the caller was told in this step.
	Outcome string `json:"outcome,omitempty"`
	// InUse is the truth after the step, in units.
	InUse int64 `json:"in_use"`
	Limit int64 `json:"limit"`
}

// column begins the line of an actor's step.
func (w *world) column(m *member) {
	if w.line != nil {
		w.line.Actor, w.line.Column = m.Name, m.ID
	}
}

// mark says what happens that is no command.
func (w *world) mark(actor, fault, text string) {
	if w.line == nil {
		return
	}
	w.line.Actor, w.line.Fault = actor, fault
	if text != "" {
		w.line.Command = text
	}
}

// say adds what a caller was told.
func (w *world) say(text string) {
	if w.line == nil {
		return
	}
	if w.line.Outcome != "" {
		w.line.Outcome += "; "
	}
	w.line.Outcome += text
}

// describe puts an actor's step on its line.
func (w *world) describe(m *member, e sched.Event) {
	l := w.line
	if l == nil || l.Column != m.ID || e.Outcome == sched.Killed {
		return
	}
	if at := storeName(e.Op); at != "" {
		l.Store = at
	}
	text, reply := e.Op.String(), ""
	switch {
	case e.Op.Kind == sched.Start:
		text = "starts"
	case e.Op.Kind == sched.Idle:
		text = "round begins"
	case e.Op.Kind == sched.Wait && m.client != nil:
		text = "goes on"
	case e.Outcome == sched.Failed:
		reply = "error"
	case e.Op.Kind == sched.Command:
		reply = replyText(e.Op.Cmd, e.Err)
	case e.Op.Kind == sched.Reply:
		text, reply = "", "reply"
	case e.Err != nil:
		reply = "error: " + e.Err.Error()
	}
	if e.Op.Kind == sched.Reply && e.Outcome == sched.Failed {
		text, reply = "", "no reply"
	}
	if p := w.store.prefix(); p != "" {
		text = strings.ReplaceAll(text, p, "")
	}
	if l.Command != "" && text != "" && e.Op.Kind != sched.Start {
		text = strings.TrimPrefix(l.Command+"; "+text, "starts; ")
	}
	if text != "" {
		l.Command = text
	}
	if reply != "" {
		l.Reply = reply
	}
}

// storeName is where an operation happens.
func storeName(op sched.Op) string {
	kind := op.Kind
	if kind == sched.Reply {
		kind = op.ReplyTo()
	}
	switch kind {
	case sched.Command, sched.Transaction:
		return "redis"
	case sched.SQL:
		return "model"
	default:
		return ""
	}
}

// replyText is a command's answer in a few words.
func replyText(cmd redis.Cmder, err error) string {
	if errors.Is(err, redis.Nil) {
		return "nil"
	}
	if err != nil {
		return "error: " + err.Error()
	}
	switch c := cmd.(type) {
	case *redis.IntCmd:
		return strconv.FormatInt(c.Val(), 10)
	case *redis.StringCmd:
		return c.Val()
	case *redis.StatusCmd:
		return c.Val()
	case *redis.BoolCmd:
		if c.Val() {
			return "1"
		}
		return "0"
	case *redis.StringSliceCmd:
		return "[" + strings.Join(c.Val(), " ") + "]"
	case *redis.Cmd:
		return fmt.Sprint(c.Val())
	default:
		// "args: value", of which the value is wanted; kinds of reply are many.
		text := c.String()
		if i := strings.LastIndex(text, ": "); i >= 0 {
			return text[i+2:]
		}
		return text
	}
}

// foldReply tells replies apart.
func foldReply(d *digest, cmd redis.Cmder, err error) {
	if err != nil {
		d.text(err.Error())
		return
	}
	switch c := cmd.(type) {
	case *redis.IntCmd:
		d.num(uint64(c.Val()))
	case *redis.StringCmd:
		d.text(c.Val())
	case *redis.StatusCmd:
		d.text(c.Val())
	case *redis.BoolCmd:
		d.truth(c.Val())
	default:
		d.text(cmd.String())
	}
}

// shortDuration drops the zeros at the end: 5m instead of 5m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
