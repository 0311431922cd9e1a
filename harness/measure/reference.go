package measure

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// reference measures a bare client's INCR loop on the run's Redis; zero if
// there is none, or none any more.
func (m *measurement) reference(ctx context.Context) (loop, error) {
	server, ok := m.cfg.Stores.Get(string(strategies.NeedRedis))
	if !ok || m.cfg.NoReference || m.leftOut.needs(bareClient) != "" {
		return loop{}, nil
	}
	_, lift := m.places.take(ctx, false, 0, []string{string(strategies.NeedRedis)})
	defer lift()
	l, err := referenceFor(ctx, m.cfg, server, m.timebase, m.siteName("ref"), int64(m.cfg.ReferenceLength))
	if err != nil {
		m.ask(ctx, string(strategies.NeedRedis))
		if m.leftOut.needs(bareClient) != "" {
			return loop{}, nil
		}
	}
	return l, err
}

// referenceFor measures a bare client's INCR loop on a Redis: as many goroutines
// and connections as the strategies get, one key, nothing else, for the given
// nanoseconds.
func referenceFor(ctx context.Context, cfg *Config, server stores.Store, tb *timebase, name string,
	length int64) (loop, error) {
	var meter stores.Meter
	scope := stores.Scope(name)
	if err := stores.Lease(ctx, server, scope); err != nil {
		return loop{}, fmt.Errorf("reference loop: %w", err)
	}
	// The run's own wipe reports a store that is gone.
	defer server.Wipe(context.WithoutCancel(ctx), scope) //nolint:errcheck // as said
	conn, err := server.Connect(ctx, scope,
		stores.ConnOptions{Pool: cfg.poolOf(server.Driver()), Retries: cfg.ClientRetries, Meter: &meter})
	if err != nil {
		return loop{}, fmt.Errorf("reference loop: %w", err)
	}
	defer conn.Close() //nolint:errcheck // nothing was written that matters
	client, ok := conn.Client().(redis.UniversalClient)
	if !ok {
		return loop{}, fmt.Errorf("reference loop: the client of %s is no Redis client", server.Driver())
	}
	r := incrLoop{
		client: client, key: scope.Prefix() + "reference", timebase: tb, workers: cfg.Workers, rec: newRecorder(cfg.Workers),
	}
	r.run(ctx, length/5) // connections
	r.n.Store(0)
	r.rec = r.rec.warmed(false)
	defer r.rec.release()
	return r.measured(ctx, server, &meter, length)
}

// measured runs the loop for so many nanoseconds, and asks the server how many commands it processed meanwhile.
func (l *incrLoop) measured(ctx context.Context, server stores.Store, meter *stores.Meter, length int64) (loop, error) {
	before, err := server.Stats(ctx)
	if err != nil {
		return loop{}, fmt.Errorf("reference loop: %w", err)
	}
	sent := meter.Snapshot()
	start := l.timebase.nano()
	l.run(ctx, length)
	took := time.Duration(l.timebase.nano() - start)
	if err := l.failed.Load(); err != nil && ctx.Err() == nil {
		return loop{}, fmt.Errorf("reference loop: %w", *err)
	}
	for i := range l.rec.stripes {
		l.rec.stripes[i].flush()
	}
	out := loop{
		perS:    float64(l.n.Load()) / took.Seconds(),
		latency: l.rec.mergeOne(func(s *stripe) *results.Histogram { return s.latency[slot(oracle.Admitted, 0)] }),
	}
	if after, err := server.Stats(ctx); err == nil && before.Known {
		ours := meter.Snapshot().Sub(sent)
		const question = 1 // one of the two about statistics is among them
		others := after.Commands - before.Commands - question - ours.Commands - ours.SetupCommands
		out.foreign = float64(others) / float64(max(ours.Commands, 1))
	}
	return out, nil
}

// incrLoop has workers send INCR of one key, each as fast as the answers come.
type incrLoop struct {
	client   redis.UniversalClient
	key      string
	timebase *timebase
	workers  int
	rec      *recorder
	n        atomic.Int64
	failed   atomic.Pointer[error]
}

// run goes on for so many nanoseconds.
func (l *incrLoop) run(ctx context.Context, length int64) {
	end := l.timebase.nano() + length
	var group sync.WaitGroup
	for w := range l.workers {
		group.Go(func() {
			var own int64
			stripe := l.rec.stripe(w)
			for last := l.timebase.nano(); last < end && ctx.Err() == nil; {
				if err := l.client.Incr(ctx, l.key).Err(); err != nil {
					l.failed.Store(&err)
					return
				}
				now := l.timebase.nano()
				l.rec.record(stripe, oracle.Admitted, 0, false, now-last)
				last = now
				own++
			}
			l.n.Add(own)
		})
	}
	group.Wait()
}

// loop is what a reference loop found.
type loop struct {
	perS    float64            // commands per second
	latency *results.Histogram // of each command
	// foreign is the share, relative to the loop's own commands, of commands that
	// the server processed meanwhile for other clients.
	foreign float64
}

// latencyWith is what a command took in both loops of a round; nil if there is
// no loop.
func (l loop) latencyWith(o loop) *results.Distribution {
	if l.latency == nil || o.latency == nil {
		return nil
	}
	l.latency.Merge(o.latency)
	distribution := l.latency.Distribution()
	return &distribution
}
