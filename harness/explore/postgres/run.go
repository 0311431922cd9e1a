package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Enabled implements [engine.Engine]. A client whose statement waits for a lock
// cannot go on.
func (w *Engine) Enabled(out []engine.Choice, symmetric bool) []engine.Choice {
	before := len(out)
	var sleepers []engine.Choice
	for _, c := range w.callers {
		switch {
		case c.flying || c.op.kind == opDone || c.op.ready != nil && !c.op.ready():
		case c.op.kind == opSleep && c.op.until.After(w.now):
			if len(sleepers) > 0 {
				switch c.op.until.Compare(w.callers[sleepers[0].ID].op.until) {
				case 1:
					continue
				case -1:
					sleepers = sleepers[:0]
				}
			}
			sleepers = append(sleepers, engine.Choice{Kind: engine.StepActor, ID: c.Index})
		case c.op.kind == opStart && symmetric && w.hasEarlierTwin(c):
		default:
			out = append(out, engine.Choice{Kind: engine.StepActor, ID: c.Index})
		}
	}
	if len(out) == before { // time passes where nothing else can happen
		return append(out, sleepers...)
	}
	return out
}

// hasEarlierTwin reports whether an earlier client has not begun either and could
// take the place of c: it runs the same script on an instance of which the same is
// true.
func (w *Engine) hasEarlierTwin(c *client) bool {
	return slices.ContainsFunc(w.callers[:c.Index], func(o *client) bool {
		return o.op.kind == opStart && slices.Equal(o.Script, c.Script) && (o.in == c.in || w.interchangeable(o.in, c.in))
	})
}

// interchangeable instances will do the same: each has one client.
func (w *Engine) interchangeable(a, b *instance) bool {
	return a.members == 1 && b.members == 1 && w.setup.SkewOf(a.index) == w.setup.SkewOf(b.index)
}

// Step implements [engine.Engine]. It lets a client go on to its next statement, or has it send the one before
// which it stands, and then lets all go on to their next stop whose statements
// have ended by that: its own, and those that had waited for its locks. They go
// one by one, so that every run of a schedule is the same.
func (w *Engine) Step(pick engine.Choice) error {
	if !slices.Contains(w.Enabled(nil, false), pick) {
		return engine.ErrMisfit
	}
	c := w.callers[pick.ID]
	w.taken++
	w.begins(c)
	if c.op.kind == opStart {
		w.running.Add(1)
		go c.follow()
		if err := w.hear(c); err != nil {
			return err
		}
		if !w.fused || c.op.kind != opStatement {
			w.write("starts", "", results.EventStart)
			return w.followUp(c)
		}
	}
	w.writeOp(c)
	if c.op.kind == opStatement {
		c.hurry = w.anyFlying()
		c.flying, c.waits = true, ""
		c.resume <- struct{}{}
		return w.followUp(c)
	}
	if c.op.kind == opSleep && c.op.until.After(w.now) {
		w.now = c.op.until
	}
	c.resume <- struct{}{}
	if err := w.hear(c); err != nil {
		return err
	}
	return w.followUp(c)
}

// followUp lets every client go on whose statement ends.
func (w *Engine) followUp(c *client) error {
	first := true
	for {
		if err := w.settle(); err != nil {
			return err
		}
		next := w.nextEnded(c)
		if first && next != c && c.flying {
			w.write("", "waits for "+c.waits, results.EventCommand)
			w.run.Waited = true
		}
		if next == nil {
			w.writeLine()
			return nil
		}
		if !first || next != c {
			w.writeLine()
			w.begins(next)
			w.write("goes on", "", results.EventResume)
		}
		first = false
		w.write("", next.seen.reply, "")
		w.note(next.seen.err)
		next.resume <- struct{}{}
		if err := w.hear(next); err != nil {
			return err
		}
	}
}

// nextEnded is the client to go on of those whose statements have ended: the one
// whose step it is, then the one that has waited the longest.
func (w *Engine) nextEnded(c *client) *client {
	if c.op.kind == opEnded && !c.flying {
		return c
	}
	var next *client
	for _, o := range w.callers {
		if o.op.kind == opEnded && !o.flying && (next == nil || o.since < next.since) {
			next = o
		}
	}
	return next
}

// begins begins a line of a client's.
func (w *Engine) begins(c *client) {
	w.run.Truth.At(w.now)
	if t := &w.run.Timeline; t.Recording {
		t.Line = &results.Step{
			Number: len(t.Steps) + 1, Actor: c.Name, Role: results.RoleClient, Column: c.Index, Event: results.EventResume,
		}
	}
}

// write adds to the line; an empty event leaves it as it is.
func (w *Engine) write(command, reply string, event results.StepEvent) {
	l := w.run.Timeline.Line
	if l == nil {
		return
	}
	if command != "" {
		l.Command = command
	}
	if reply != "" {
		l.Reply = reply
		l.Store, l.Kind = "postgres", "sql"
	}
	if event != "" {
		l.Event = event
	}
}

// writeOp says what the client is about to do.
func (w *Engine) writeOp(c *client) {
	event := results.EventResume
	if c.op.kind == opStatement {
		event = results.EventCommand
	}
	w.write(c.op.text, "", event)
	if l := w.run.Timeline.Line; l != nil && c.op.kind == opStatement {
		l.Store, l.Kind = "postgres", "sql"
	}
}

func (w *Engine) writeLine() { w.run.Timeline.End(w.now.Sub(engine.Start), &w.run.Truth) }

// aborts are the reasons for which PostgreSQL ends a transaction, by its codes.
var aborts = map[string]results.Property{"40P01": engine.Deadlock, "40001": engine.SerializationFailure}

func (w *Engine) note(err error) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return
	}
	if kind, ok := aborts[pg.Code]; ok && w.run.Aborts[kind] == 0 {
		w.run.Aborts[kind] = w.taken
	}
}

// Look implements [engine.Engine].
func (w *Engine) Look() engine.Look {
	l := engine.Look{AtRest: !slices.ContainsFunc(w.callers, func(c *client) bool { return c.flying || c.Pending >= 0 })}
	if len(w.Enabled(nil, false)) > 0 {
		return l
	}
	for _, c := range w.callers {
		switch {
		case c.flying:
			l.Stuck = append(l.Stuck, c.Name+" waits for a lock that "+c.waits+" never gives up")
		case c.op.kind != opDone:
			l.Stuck = append(l.Stuck, c.Name+": "+c.op.text)
		}
	}
	return l
}

// Used implements [engine.Engine]. While a client holds a connection, the strategy
// might wait for it.
func (w *Engine) Used() (readings []quota.Reading, ok bool) {
	v, ok := w.instances[0].strategy.(strategies.Viewer)
	if !ok || w.pools[0].Stat().AcquiredConns() > 0 {
		return nil, false
	}
	w.outside.Store(true)
	defer w.outside.Store(false)
	readings, err := v.Used(context.Background(), engine.Subject, w.run.Truth.Policy)
	return readings, err == nil
}

// Serial implements [engine.Engine].
func (w *Engine) Serial() (engine.Choice, bool) {
	next := w.Enabled(nil, false)
	if len(next) == 0 {
		return engine.Choice{}, false
	}
	return next[0], true
}

// Holdings implements [engine.Engine]: the columns that hold a number below zero
// that has been committed.
func (w *Engine) Holdings() ([]engine.Holding, error) {
	if w.lowest == "" {
		return nil, nil
	}
	rows, err := w.admin.Query(w.ctx, "SELECT name, low::text FROM ("+w.lowest+") AS x (name, low) WHERE low < 0 ORDER BY 1")
	if err != nil {
		return nil, fmt.Errorf("look for negative numbers: %w", err)
	}
	defer rows.Close()
	var out []engine.Holding
	for rows.Next() {
		var h engine.Holding
		if err := rows.Scan(&h.Name, &h.Negative); err != nil {
			return nil, fmt.Errorf("look for negative numbers: %w", err)
		}
		out = append(out, h)
	}
	return out, rows.Err()
}
