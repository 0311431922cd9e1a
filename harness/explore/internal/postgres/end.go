package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/guard"
)

// End implements [engine.Engine]. A run that is not over leaves its connections
// behind.
func (w *Engine) End() error {
	over, err := w.release()
	if err != nil || over || w.base.Err() != nil {
		return err
	}
	w.abandon()
	return w.connect()
}

// release ends the run's clients and the sessions of those that are in the middle of
// something. over is false if there are any.
func (w *Engine) release() (over bool, err error) {
	w.begun = false
	over = !slices.ContainsFunc(w.callers, func(c *client) bool { return c.op.kind != opDone })
	over = over && !slices.ContainsFunc(w.pools, func(p *pgxpool.Pool) bool { return p.Stat().AcquiredConns() > 0 })
	w.stop()
	if err = w.ended(); w.hung {
		err = nil // which was told already
	}
	if over {
		return over, err
	}
	var pids []int32
	for _, c := range w.callers {
		pids = append(pids, int32(c.seen.pid))
	}
	// A session that waits for a lock does not notice that its connection is gone.
	ctx := context.WithoutCancel(w.base)
	if _, derr := w.admin.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY($1)", pids); derr != nil {
		err = errors.Join(err, fmt.Errorf("end connections: %w", derr))
	}
	return over, err
}

// ended waits until all clients have ended, which are told to, and names one that does
// not.
func (w *Engine) ended() error {
	limit := guard.Grace(w.Setup.Patience)
	if w.base.Err() != nil {
		limit = min(limit, time.Second)
	}
	_, err := guard.Within(context.Background(), limit, 0, "a client that is to end", func(context.Context) (any, error) {
		w.running.Wait()
		return nil, nil
	})
	return err
}

// abandon closes the pools. One with a connection that is never given back would
// wait for it forever.
func (w *Engine) abandon() {
	for _, p := range w.pools {
		if p.Stat().AcquiredConns() > 0 {
			go p.Close()
			continue
		}
		p.Close()
	}
}

// Close implements [engine.Engine]: it removes all that was made on the server.
func (w *Engine) Close() error {
	w.timer.Stop()
	var err error
	if w.begun {
		_, err = w.release()
	}
	w.abandon()
	if w.conn != nil {
		err = errors.Join(err, w.conn.Close())
	}
	return errors.Join(err, w.server.Wipe(context.WithoutCancel(w.base), w.scope))
}
