package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/explore/internal/database"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stacks"
)

// How long to wait for a client before the server is asked about locks: if
// no client is known to hold any, asking would only cost; and at most between two
// questions, and altogether.
const (
	settleQuiet = 20 * time.Millisecond
	settleFirst = 100 * time.Microsecond
	settleMost  = 5 * time.Millisecond
	settleLimit = 30 * time.Second
)

// errUnseen says that a client waits for something that cannot be seen here.
var errUnseen = errors.New("neither goes on nor waits for a lock of another client: it may wait for a connection " +
	"(there is one per client), or for a lock that is none of theirs")

// await waits for a client to stop, and no longer than duration.
func (w *Engine) await(duration time.Duration) *client {
	w.timer.Reset(duration)
	defer w.timer.Stop()
	select {
	case stopped := <-w.events:
		stopped.client.halt = stopped.halt
		stopped.client.seen = stopped.own
		stopped.client.flying = false
		if stopped.own.panicked != nil && w.panicked == nil {
			w.panicked = stopped.own.panicked
		}
		return stopped.client
	case <-w.timer.C:
	case <-w.ctx.Done():
	}
	return nil
}

// hear waits for this client to stop. Others may, too.
func (w *Engine) hear(c *client) error {
	for left := w.Setup.Patience; left > 0; {
		got := w.await(left)
		switch {
		case w.panicked != nil:
			return w.panicked
		case got == c:
			return nil
		case w.ctx.Err() != nil:
			return w.ctx.Err()
		case got == nil:
			left = 0
		}
	}
	w.hung = true
	return c.hung()
}

// hung says where a client is that does not stop.
func (c *client) hung() error {
	goroutine := stacks.All()[c.number.Load()]
	calls, _ := goroutine.Called("engine.(*Client).take", "engine.(*Client).commit", "engine.(*Client).refund")
	hung := &guard.HungError{Where: c.Name, At: goroutine.Where(calls), After: c.engine.Setup.Patience,
		Stack: []byte(goroutine.Text)}
	return fmt.Errorf("%w: it %w", hung, errUnseen)
}

// settle waits until every statement that is with the server has ended or waits
// for a lock of a client that has stopped.
func (w *Engine) settle() error {
	left := settleLimit
	wait := settleFirst
	if !w.contended() {
		wait = settleQuiet
	}
	for asked := w.contended(); w.anyFlying(); asked = true {
		if asked {
			blocked, err := w.look()
			if err != nil || blocked {
				return err
			}
		}
		switch got := w.await(wait); {
		case w.panicked != nil:
			return w.panicked
		case got != nil:
			continue
		case w.ctx.Err() != nil:
			return w.ctx.Err()
		}
		left -= wait
		if left <= 0 {
			flying := slices.DeleteFunc(slices.Clone(w.callers), func(c *client) bool { return !c.flying })
			return fmt.Errorf("client %s %w", format.List(flying, ", ", func(c *client) string { return c.Name }), errUnseen)
		}
		wait = min(2*wait, settleMost)
	}
	return nil
}

// contended reports whether a statement may have to wait: others hold locks to
// the end of their transactions, or wait themselves.
func (w *Engine) contended() bool {
	n := 0
	for _, client := range w.callers {
		if client.flying || client.seen.inTx {
			n++
		}
	}
	return n > 1
}

func (w *Engine) anyFlying() bool {
	return slices.ContainsFunc(w.callers, func(c *client) bool { return c.flying })
}

// look reports whether every flying statement waits for a client that has
// stopped. Waiting in a circle does not count: the server is about to end that.
func (w *Engine) look() (bool, error) {
	var pids []int32
	by := map[int32]*client{}
	for _, client := range w.callers {
		if client.seen.pid == 0 {
			continue
		}
		by[int32(client.seen.pid)] = client
		if client.flying {
			pids = append(pids, int32(client.seen.pid))
		}
	}
	blockers := map[*client][]*client{}
	known := true
	blocked, err := database.Blocked(w.ctx, w.admin, pids)
	if err != nil {
		return false, err
	}
	for pid, on := range blocked {
		for _, p := range on {
			known = known && by[p] != nil
			blockers[by[pid]] = append(blockers[by[pid]], by[p])
		}
	}
	if !known || len(blockers) < len(pids) || database.Circular(blockers) {
		return false, nil
	}
	for client, clients := range blockers {
		var names []string
		for _, b := range clients {
			names = append(names, b.Name)
		}
		slices.Sort(names)
		if client.waits == "" {
			w.waited++
			client.since = w.waited
		}
		client.waits = strings.Join(slices.Compact(names), " and ")
	}
	return true, nil
}
