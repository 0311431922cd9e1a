package sim

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// outage is a planned outage of one kind of store, in every region. What the
// store holds outlives it: it could not be reached, and did not restart.
type outage struct {
	store    strategies.Need
	from, to int64 // nanoseconds since 1970
}

func (c *Config) outages() (out []outage) {
	for _, o := range c.Outages {
		at := func(share float64) int64 { return c.Start.UnixNano() + int64(share*float64(c.Duration)) }
		out = append(out, outage{o.Store, at(o.From), at(o.To)})
	}
	return out
}

// errDown is what a client sees of an outage, in virtual time as in a measured
// run: a connection that was reset.
var errDown = &net.OpError{Op: "read", Net: "tcp", Err: errors.Join(errors.New("planned outage"), syscall.ECONNRESET)}

// down reports whether a store is away at this moment.
func (w *wires) down(store strategies.Need) bool {
	if len(w.outages) == 0 {
		return false
	}
	now := w.s.Now().UnixNano()
	for _, o := range w.outages {
		if o.store == store && now >= o.from && now < o.to {
			return true
		}
	}
	return false
}

// refused is the answer to a caller whose store is away: an error, after a round
// trip. It is nil where the store is there.
func (w *wires) refused(ctx context.Context, to *way, store strategies.Need) error {
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
func (w *wires) lost(err error, store strategies.Need) error {
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

// planned counts the errors that a planned outage explains.
func (p *pass) planned(events []oracle.Event) (n int64) {
	for i := range events {
		e := &events[i]
		if e.Outcome != oracle.Failed || e.Kind != oracle.Take {
			continue
		}
		for _, o := range p.st.w.outages {
			if e.Reply+p.d.epoch >= o.from && e.Call+p.d.epoch <= o.to {
				n++
				break
			}
		}
	}
	return n
}

// spans are the outages as a series has them.
func (p *pass) spans() (out []results.Span) {
	for _, o := range p.st.w.outages {
		out = append(out, results.Span{Store: string(o.store), FromNS: o.from - p.d.epoch, ToNS: o.to - p.d.epoch})
	}
	return out
}

// statement runs the statements of a model for the callers of one region.
func (w *wires) statement(to *way) strategies.Statement {
	return func(ctx context.Context, sql string, run func() error) error {
		a := sched.From(ctx)
		if a == nil {
			return run()
		}
		if err := w.refused(ctx, to, strategies.NeedPostgres); err != nil {
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
