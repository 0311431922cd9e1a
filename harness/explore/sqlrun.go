package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// enabled lists the clients that can go on. One whose statement waits for a lock
// cannot. symmetric leaves out those that could as well be another one.
func (w *sqlWorld) enabled(symmetric bool) []choice {
	var out, sleepers []choice
	for _, c := range w.callers {
		switch {
		case c.flying || c.op.kind == sqlDone || c.op.ready != nil && !c.op.ready():
		case c.op.kind == sqlSleep && c.op.until.After(w.now):
			if len(sleepers) > 0 {
				switch c.op.until.Compare(w.callers[sleepers[0].id].op.until) {
				case 1:
					continue
				case -1:
					sleepers = sleepers[:0]
				}
			}
			sleepers = append(sleepers, choice{kind: stepActor, id: c.index})
		case c.op.kind == sqlStart && symmetric && w.hasEarlierTwin(c):
		default:
			out = append(out, choice{kind: stepActor, id: c.index})
		}
	}
	if len(out) == 0 { // time passes where nothing else can happen
		return sleepers
	}
	return out
}

// hasEarlierTwin is [world.hasTwin] for clients on PostgreSQL.
func (w *sqlWorld) hasEarlierTwin(c *sqlClient) bool {
	return slices.ContainsFunc(w.callers[:c.index], func(o *sqlClient) bool {
		return o.op.kind == sqlStart && sameScript(o.script, c.script) && (o.m.in == c.m.in || w.interchangeable(o.m.in, c.m.in))
	})
}

// step lets a client go on to its next statement, or has it send the one before
// which it stands, and then lets all go on to their next stop whose statements
// have ended by that: its own, and those that had waited for its locks. They go
// one by one, so that every run of a schedule is the same.
func (w *sqlWorld) step(pick choice) error {
	if !slices.Contains(w.enabled(false), pick) {
		return errMisfit
	}
	c := w.callers[pick.id]
	w.taken++
	w.begins(c)
	if c.op.kind == sqlStart {
		w.running.Add(1)
		go c.follow()
		if err := w.hear(c); err != nil {
			return err
		}
		if !w.fused || c.op.kind != sqlStatement {
			w.write("starts", "")
			return w.followUp(c)
		}
	}
	w.write(c.op.text, "")
	if c.op.kind == sqlStatement {
		c.hurry = w.anyFlying()
		c.flying, c.waits = true, ""
		c.resume <- struct{}{}
		return w.followUp(c)
	}
	if c.op.kind == sqlSleep && c.op.until.After(w.now) {
		w.now = c.op.until
	}
	c.resume <- struct{}{}
	if err := w.hear(c); err != nil {
		return err
	}
	return w.followUp(c)
}

// followUp lets everybody go on whose statement ends.
func (w *sqlWorld) followUp(c *sqlClient) error {
	first := true
	for {
		if err := w.settle(); err != nil {
			return err
		}
		next := w.nextEnded(c)
		if first && next != c && c.flying {
			w.write("", "waits for "+c.waits)
			w.blocked = true
		}
		if next == nil {
			w.writeLine()
			return nil
		}
		if !first || next != c {
			w.writeLine()
			w.begins(next)
			w.write("goes on", "")
		}
		first = false
		w.write("", next.seen.reply)
		w.note(next.seen.err)
		next.resume <- struct{}{}
		if err := w.hear(next); err != nil {
			return err
		}
	}
}

// nextEnded is the client to go on of those whose statements have ended: the one
// whose step it is, then whoever has waited the longest.
func (w *sqlWorld) nextEnded(c *sqlClient) *sqlClient {
	if c.op.kind == sqlEnded && !c.flying {
		return c
	}
	var next *sqlClient
	for _, o := range w.callers {
		if o.op.kind == sqlEnded && !o.flying && (next == nil || o.since < next.since) {
			next = o
		}
	}
	return next
}

// begins begins a line of a client's.
func (w *sqlWorld) begins(c *sqlClient) {
	w.truth.at(w.now)
	if w.recording {
		w.line = &Step{Number: len(w.steps) + 1, Actor: c.name, Column: c.index}
	}
}

func (w *sqlWorld) write(command, reply string) {
	if w.line == nil {
		return
	}
	if command != "" {
		w.line.Command = command
	}
	if reply != "" {
		w.line.Reply = reply
	}
	if reply != "" || strings.HasSuffix(command, ";") {
		w.line.Store = "postgres"
	}
}

func (w *sqlWorld) writeLine() {
	if w.line == nil {
		return
	}
	w.line.At, w.line.InUse, w.line.Limit = w.now.Sub(w.start), w.truth.inUse, w.cfg.Policy.Limit
	w.steps = append(w.steps, *w.line)
	w.line = nil
}

// What can happen to a transaction that is no property of a strategy, and is
// counted and shown all the same.
const (
	// Deadlock: transactions waited for each other's locks, and PostgreSQL ended one.
	Deadlock Property = "deadlock"
	// SerializationFailure: PostgreSQL ended a transaction that did not fit into
	// any order with others.
	SerializationFailure Property = "serialization-failure"
)

// happenings, by the codes that the server gives them.
var happenings = map[string]Property{"40P01": Deadlock, "40001": SerializationFailure}

func isHappening(p Property) bool { return p == Deadlock || p == SerializationFailure }

func (w *sqlWorld) note(err error) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return
	}
	if kind, ok := happenings[pg.Code]; ok && w.fallen[kind] == 0 {
		w.fallen[kind] = w.taken
	}
}

// judge finds what is broken at this moment.
func (w *sqlWorld) judge(n *normal, wanted map[Property]bool) ([]breach, error) {
	var out []breach
	leak := w.truth.leak()
	if wanted[Leak] && leak > 0 {
		out = append(out, breach{Leak, fmt.Sprintf("%d %s in use, the limit is %d", w.truth.peak, w.cfg.Policy.Unit, w.cfg.Policy.Limit), leak})
	}
	rest := !slices.ContainsFunc(w.callers, func(c *sqlClient) bool { return c.flying || c.pending >= 0 })
	if wanted[Stuck] && len(w.enabled(false)) == 0 {
		for _, c := range w.callers {
			switch {
			case c.flying:
				out = append(out, breach{Stuck, c.name + " waits for a lock that " + c.waits + " never gives up", 0})
			case c.op.kind != sqlDone:
				out = append(out, breach{Stuck, c.name + ": " + c.op.text, 0})
			}
		}
	}
	if wanted[Guarantee] && (leak > 0 || rest && w.truth.rejected > 0) {
		out = w.checkGuarantee(out)
	}
	if wanted[Negative] && w.lowest != "" && !n.negative {
		low, err := w.negatives()
		if err != nil {
			return nil, err
		}
		if low != "" {
			out = append(out, breach{Negative, low, 0})
		}
	}
	if !rest {
		return out, nil
	}
	if wanted[FalseReject] && w.truth.rejected > 0 {
		if v := w.truth.judge(); v.FalseRejects > 0 {
			out = append(out, breach{FalseReject, fmt.Sprintf("%d of %d rejections had room at every moment of them",
				v.FalseRejects, v.Rejected.Requests), v.FalseRejectUnits})
		}
	}
	if (wanted[Drift] || wanted[Stranded]) && w.pools[0].Stat().AcquiredConns() == 0 {
		w.outside.Store(true)
		defer w.outside.Store(false)
		return w.checkCounts(out, wanted)
	}
	return out, nil
}

// negatives says which columns hold a number below zero that has been committed.
func (w *sqlWorld) negatives() (string, error) {
	rows, err := w.admin.Query(w.ctx, "SELECT name, low::text FROM ("+w.lowest+") AS x (name, low) WHERE low < 0 ORDER BY 1")
	if err != nil {
		return "", fmt.Errorf("look for negative numbers: %w", err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var name, low string
		if err := rows.Scan(&name, &low); err != nil {
			return "", fmt.Errorf("look for negative numbers: %w", err)
		}
		out = append(out, name+" holds "+low)
	}
	return strings.Join(out, "; "), rows.Err()
}
