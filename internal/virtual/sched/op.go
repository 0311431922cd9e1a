package sched

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/scripts"
)

// Kind is a kind of point at which an actor parks.
type Kind uint8

// The kinds.
const (
	// Start: the actor has not run yet.
	Start Kind = iota
	// Command: one Redis command, alone or one of a plain pipeline.
	Command
	// Transaction: everything between MULTI and EXEC, which happens at once.
	Transaction
	// SQL: one statement of a model of PostgreSQL.
	SQL
	// Reply: a store operation has happened, the actor does not know yet.
	Reply
	// Sleep until a moment of virtual time.
	Sleep
	// Lock: a mutex of the clock.
	Lock
	// Wait for an event of the clock.
	Wait
	// Idle: a job between two rounds.
	Idle
)

// Op is an operation that an actor is about to do, or waits to be able to do.
type Op struct {
	Kind Kind
	// Cmd of a Command and of its Reply.
	Cmd redis.Cmder
	// Cmds of a Transaction and of its Reply, with MULTI and EXEC around them.
	Cmds []redis.Cmder
	// Index counts the commands of a plain pipeline from 0; Of is their number.
	// A command on its own is 0 of 1.
	Index, Of int
	// SQL names the statement, also in its Reply.
	SQL string
	// Until ends a Sleep; for an Idle job it is when the next round is due, or
	// zero if only waking starts one.
	Until time.Time

	kind  Kind // of a Reply: to what
	ctx   context.Context
	mutex *mutex
	event *event
}

// Store reports whether the operation happens in a store and can fail there.
func (o Op) Store() bool { return o.Kind >= Command && o.Kind <= Reply }

// pending reports whether a store has yet to do the operation: at a Reply it has done it.
func (o Op) pending() bool { return o.Store() && o.Kind != Reply }

// ReplyTo is the kind of the operation that a Reply belongs to.
func (o Op) ReplyTo() Kind { return o.kind }

// String describes the operation in one short line.
func (o Op) String() string {
	switch o.Kind {
	case Start:
		return "start"
	case Command:
		if o.Of > 1 {
			return fmt.Sprintf("%s [%d/%d]", commandText(o.Cmd), o.Index+1, o.Of)
		}
		return commandText(o.Cmd)
	case Transaction:
		return format.List(o.Cmds, "; ", commandText)
	case SQL:
		return strings.Join(strings.Fields(o.SQL), " ")
	case Reply:
		o.Kind = o.kind
		return "reply to " + o.String()
	case Sleep:
		return "sleep until " + o.Until.Format(time.RFC3339Nano)
	case Lock:
		return "lock"
	case Wait:
		return "wait for an event"
	default:
		if o.Until.IsZero() {
			return "idle until woken"
		}
		return "idle until " + o.Until.Format(time.RFC3339Nano)
	}
}

// longestArg is how much of an argument is worth reading: script hashes and
// sources are not, keys are.
const longestArg = 160

func commandText(cmd redis.Cmder) string {
	var builder strings.Builder
	for i, arg := range cmd.Args() {
		text := fmt.Sprint(arg)
		if raw, ok := arg.([]byte); ok {
			text = string(raw)
		}
		switch name := strings.ToLower(cmd.Name()); {
		case i == 0:
			text = strings.ToUpper(text)
		case i == 1 && strings.HasPrefix(name, "eval"):
			text = scripts.Argument(name, text)
		}
		if len(text) > longestArg {
			text = text[:longestArg] + "..."
		}
		if i > 0 {
			builder.WriteByte(' ')
		}
		builder.WriteString(text)
	}
	return builder.String()
}
