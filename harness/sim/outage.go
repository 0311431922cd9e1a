package sim

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/strategies"
)

// outages are the planned ones in nanoseconds since 1970, each of one kind of
// store in every region. What the store holds outlives them, unless it comes back
// empty: it could not be reached, and did not restart.
func (c *Config) outages() (all, empty []harness.Span) {
	for _, o := range c.Outages {
		from, to := o.Within(c.Duration)
		s := harness.Span{Store: o.Store, From: c.Start.Add(from).UnixNano(), To: c.Start.Add(to).UnixNano()}
		if all = append(all, s); o.Empty {
			empty = append(empty, s)
		}
	}
	return all, empty
}

// errDown is what a client sees of an outage, in virtual time as in a measured
// run: a connection that was reset.
var errDown = &net.OpError{Op: "read", Net: "tcp", Err: errors.Join(errors.New("planned outage"), syscall.ECONNRESET)}

// down reports whether a store is away at this moment.
func (w *network) down(store strategies.Need) bool {
	if len(w.outages) == 0 {
		return false
	}
	now := w.s.Now().UnixNano()
	for _, o := range w.outages {
		if o.Store == string(store) && now >= o.From && now < o.To {
			return true
		}
	}
	return false
}

// emptied reports whether a Redis has come back empty since it was last asked so.
func (w *network) emptied(to *server) bool {
	now, was := w.s.Now().UnixNano(), to.asked
	to.asked = now
	for _, o := range w.empties {
		if o.Store == string(strategies.NeedRedis) && was < o.To && o.To <= now {
			return true
		}
	}
	return false
}

// refused is the answer to a caller whose store is away: an error, after a round
// trip. It is nil where the store is there.
func (w *network) refused(ctx context.Context, to *route, store strategies.Need) error {
	if !w.down(store) {
		return nil
	}
	trip := 2*to.far + to.to.net.Request.draw(w.rng) + to.to.net.Reply.draw(w.rng)
	if err := w.clock.Sleep(ctx, trip); err != nil {
		return err
	}
	return errDown
}

// lost makes an error of a reply that would arrive during an outage.
func (w *network) lost(err error, store strategies.Need) error {
	if err == nil && w.down(store) {
		return errDown
	}
	return err
}

// setErrors gives all commands of a pipeline the error that it ended in.
func setErrors(cmds []redis.Cmder, err error) error {
	for _, c := range cmds {
		c.SetErr(err)
	}
	return err
}

// sinceStart are the outages since the run's beginning.
func (w *network) sinceStart(epoch int64) (out []harness.Span) {
	for _, o := range w.outages {
		out = append(out, harness.Span{Store: o.Store, From: o.From - epoch, To: o.To - epoch})
	}
	return out
}

// statement runs the statements of a model for the callers of one region.
func (w *network) statement(to *route) strategies.Statement {
	return func(ctx context.Context, sql string, run func() error) error {
		a := sched.From(ctx)
		if a == nil {
			return run()
		}
		if err := w.connected(ctx, to, strategies.NeedPostgres); err != nil {
			return err
		}
		w.request(a, to)
		err := sched.Statement(ctx, sql, func() error {
			if w.down(strategies.NeedPostgres) {
				return errDown
			}
			return run()
		})
		return w.lost(err, strategies.NeedPostgres)
	}
}
