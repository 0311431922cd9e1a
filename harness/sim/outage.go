package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/trouble"
	conditions "github.com/quotabench/quotabench/internal/trouble/network"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// outages are the planned ones in nanoseconds since 1970, each of one kind of
// store in every region, and what becomes of a Redis by them. What the store holds
// outlives them, unless it comes back empty or as its replica: it could not be reached,
// and did not restart.
func (c *Config) outages() (all []results.Span, turns []turn) {
	for _, event := range c.Trouble.Of(trouble.Outage) {
		from, duration := event.When.Within(c.Duration)
		span := results.Span{Store: event.Where.Name, FromNS: c.Start.Add(from).UnixNano(),
			ToNS: c.Start.Add(duration).UnixNano()}
		all = append(all, span)
		switch event.What.Word {
		case trouble.Empty:
			turns = append(turns, turn{at: span.ToNS, what: (*server).empty})
		case trouble.Failover:
			// The replica has what was written up to that moment.
			turns = append(turns, turn{at: span.FromNS - int64(event.What.For) + 1, what: (*server).follow},
				turn{at: span.ToNS, what: (*server).failOver})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return all, turns
}

// turn is something that befalls what every Redis holds, at a moment in nanoseconds since
// 1970.
type turn struct {
	at   int64
	what func(*server, fakeredis.Redis)
}

// empty drops all that a Redis holds.
func (s *server) empty(redis fakeredis.Redis) { redis.Reset(s.asked) }

// follow notes what a replica has that gets no further write.
func (s *server) follow(redis fakeredis.Redis) {
	table, ok := redis.(*fakeredis.Table)
	if !ok {
		s.unfit = errNoReplica
		return
	}
	s.replica = table.Copy()
	table.Replicas = 0 // it confirms nothing any more, and has none itself when it is the master
}

// failOver leaves a Redis with what its replica has.
func (s *server) failOver(fakeredis.Redis) {
	if s.replica != nil {
		s.replica()
	}
}

// errNoReplica is why a failover cannot be simulated on miniredis.
var errNoReplica = errors.New("a failover cannot be simulated for commands that only miniredis has: its contents " +
	"cannot be copied")

// errDown is what a client sees of an outage, in virtual time as in a measured
// run: a connection that was reset.
var errDown = conditions.Reset("planned outage")

// down reports whether a store is away at this moment.
func (w *network) down(store strategies.Need) bool {
	now := w.scheduler.Nano()
	return slices.ContainsFunc(w.outages, func(span results.Span) bool {
		return span.Store == string(store) && now >= span.FromNS && now < span.ToNS
	})
}

// befall has what was to happen to a Redis since it was last looked at happen now, when
// it is looked at again: nothing else has changed it meanwhile.
func (w *network) befall(to *server, redis fakeredis.Redis) {
	now := w.scheduler.Nano()
	was := to.asked
	for _, turn := range w.turns {
		if was < turn.at && turn.at <= now {
			to.asked = turn.at
			redis.SetNow(turn.at)
			turn.what(to, redis)
		}
	}
	to.asked = now
}

// refused is the answer to a caller whose store is away: an error, after a round
// trip. It is nil if the store is there.
func (w *network) refused(ctx context.Context, to *route, store strategies.Need) error {
	if !w.down(store) {
		return nil
	}
	trip := 2*to.far + to.server.request.draw(w.rng) + to.server.reply.draw(w.rng)
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
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// sinceStart are the outages since the run's beginning.
func (w *network) sinceStart(epoch int64) (out []results.Span) {
	for _, span := range w.outages {
		out = append(out, results.Span{Store: span.Store, FromNS: span.FromNS - epoch, ToNS: span.ToNS - epoch})
	}
	return out
}

// statement runs the statements of a model for the callers of one region.
func (w *network) statement(to *route) strategies.Statement {
	return func(ctx context.Context, sql string, run func() error) error {
		if w.own("a statement") {
			return sched.ErrForeign
		}
		actor := sched.From(ctx)
		if actor == nil {
			return run()
		}
		if err := w.connected(ctx, to, strategies.NeedPostgres); err != nil {
			return err
		}
		reply, lost := w.loses(ctx, to)
		if lost != nil {
			return lost
		}
		w.request(actor, to)
		err := sched.Statement(ctx, sql, func() error {
			if w.down(strategies.NeedPostgres) {
				return errDown
			}
			return run()
		})
		if reply {
			return errLost
		}
		return w.lost(err, strategies.NeedPostgres)
	}
}
