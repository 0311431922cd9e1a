package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/explore/internal/database"
	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Snapshot implements [engine.Engine]. A client whose statement waits for a lock cannot go
// on. Time passes if nothing else can happen: then the first to wake is ready.
func (w *Engine) Snapshot() *engine.Snapshot {
	snapshot := &w.snapshot
	*snapshot = engine.Snapshot{Now: w.now, Actors: snapshot.Actors[:0]}
	idle := true
	var wakes time.Time
	for _, client := range w.callers {
		actor := engine.Actor{ID: client.Index, Client: &client.Client, Instance: client.instance.index,
			Members: w.Setup.Members(client.instance.index), At: engine.Between, Text: client}
		switch {
		case client.halt.kind == opDone:
			actor.At = engine.Done
		case client.halt.kind == opStart:
			actor.At = engine.Unborn
		case client.flying || client.Pending >= 0:
			actor.At = engine.Waiting
		}
		actor.Ready = actor.At != engine.Done && !client.flying && (client.halt.ready == nil || client.halt.ready())
		if actor.Ready && client.sleeps() {
			actor.Ready = false
			if wakes.IsZero() || client.halt.until.Before(wakes) {
				wakes = client.halt.until
			}
		}
		idle = idle && !actor.Ready
		snapshot.Actors = append(snapshot.Actors, actor)
	}
	for i, client := range w.callers {
		if idle && !client.flying && client.sleeps() {
			snapshot.Actors[i].Ready = client.halt.until.Equal(wakes)
		}
	}
	return snapshot
}

func (c *client) sleeps() bool { return c.halt.kind == opSleep && c.halt.until.After(c.engine.now) }

// String says what the client waits for.
func (c *client) String() string {
	if c.flying {
		return c.Name + " waits for a lock that " + c.waits + " never gives up"
	}
	return c.Name + ": " + c.halt.text
}

// Step implements [engine.Engine]. It lets a client go on to its next statement, or has it send the one before
// which it stands, and then lets all go on to their next stop whose statements
// have ended by that: its own, and those that had waited for its locks. They go
// one by one, so that every run of a schedule is the same.
func (w *Engine) Step(pick engine.Choice) error {
	if !slices.Contains(w.Enabled(nil, false), pick) {
		return engine.ErrMisfit
	}
	client := w.callers[pick.ID]
	w.taken++
	w.begins(client)
	if client.halt.kind == opStart {
		w.running.Add(1)
		go client.follow()
		if err := w.hear(client); err != nil {
			return err
		}
		if !w.fused || client.halt.kind != opStatement {
			w.write("starts", "", codes.EventStart)
			return w.followUp(client)
		}
	}
	w.writeOp(client)
	if client.halt.kind == opStatement {
		client.hurry = w.anyFlying()
		client.flying = true
		client.waits = ""
		client.resume <- struct{}{}
		return w.followUp(client)
	}
	if client.halt.kind == opSleep && client.halt.until.After(w.now) {
		w.now = client.halt.until
	}
	client.resume <- struct{}{}
	if err := w.hear(client); err != nil {
		return err
	}
	return w.followUp(client)
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
			w.write("", "waits for "+c.waits, codes.EventCommand)
			w.Run.Waited = true
		}
		if next == nil {
			w.writeLine()
			return nil
		}
		if !first || next != c {
			w.writeLine()
			w.begins(next)
			w.write("goes on", "", codes.EventResume)
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
	if c.halt.kind == opEnded && !c.flying {
		return c
	}
	var next *client
	for _, client := range w.callers {
		if client.halt.kind == opEnded && !client.flying && (next == nil || client.since < next.since) {
			next = client
		}
	}
	return next
}

// begins begins a line of a client's.
func (w *Engine) begins(c *client) {
	w.Run.Truth.At(w.now)
	w.Run.Timeline.Start()
	w.Run.Timeline.By(c.Name, codes.RoleClient, c.Index, codes.EventResume)
}

// write adds to the line; an empty event leaves it unchanged.
func (w *Engine) write(command, reply string, event codes.StepEvent) {
	w.Run.Timeline.Write(command, reply, event)
	if step := w.Run.Timeline.Line; step != nil && (reply != "" || event == codes.EventCommand) {
		step.Store = "postgres"
		step.Kind = "sql"
	}
}

// writeOp says what the client is about to do.
func (w *Engine) writeOp(c *client) {
	event := codes.EventResume
	if c.halt.kind == opStatement {
		event = codes.EventCommand
	}
	w.write(c.halt.text, "", event)
}

func (w *Engine) writeLine() { w.Run.Timeline.End(w.now.Sub(engine.Start), &w.Run.Truth) }

// aborts are the reasons for which PostgreSQL ends a transaction, by its codes.
var aborts = map[string]results.Property{"40P01": engine.Deadlock, "40001": engine.SerializationFailure}

func (w *Engine) note(err error) {
	if pgError, ok := errors.AsType[*pgconn.PgError](err); ok {
		if kind, ok := aborts[pgError.Code]; ok && w.Run.Aborts[kind] == 0 {
			w.Run.Aborts[kind] = w.taken
		}
	}
}

// Used implements [engine.Engine]. While a client holds a connection, the strategy
// might wait for it.
func (w *Engine) Used() (readings []quota.Reading, ok bool) {
	viewer, ok := w.instances[0].strategy.(strategies.Viewer)
	if !ok || w.pools[0].Stat().AcquiredConns() > 0 {
		return nil, false
	}
	w.outside.Store(true)
	defer w.outside.Store(false)
	readings, err := viewer.Used(context.Background(), engine.Subject, w.Run.Truth.Policy)
	return readings, err == nil
}

// Holdings implements [engine.Engine]: the columns that hold a number below zero
// that has been committed.
func (w *Engine) Holdings() ([]engine.Holding, error) {
	if w.lowest == "" {
		return nil, nil
	}
	// CollectRows returns the error of this.
	rows, _ := w.admin.Query(w.ctx, "SELECT name, low::text FROM ("+w.lowest+") AS x (name, low) WHERE low < 0 ORDER BY 1")
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (holding engine.Holding, err error) {
		err = row.Scan(&holding.Name, &holding.Negative)
		return holding, err
	})
	if database.IsLocked(err) { // and was not when this was seen
		return w.lastHeld, nil
	}
	w.lastHeld = out
	return out, format.Wrapf(err, "look for negative numbers")
}
