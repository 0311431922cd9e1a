package measure

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/internal/trouble/kill"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// counted is a strategy whose keys are counted on a connection of the test's own when it is closed.
type counted struct {
	strategies.Strategy
	close func()
}

func (c counted) Close(ctx context.Context) error {
	c.close()
	return c.Strategy.Close(ctx)
}

// TestKilledCallers: exactly the callers that are killed between INCR and EXPIRE leave keys that
// never expire, by Redis' own word.
func TestKilledCallers(t *testing.T) {
	server := storetest.Redis(t)
	all := testkit.Strategy(t, "incr-expire")
	sel := all
	open := all.Open
	keys := int64(0)
	meta := *sel.Meta
	sel.Meta = &meta
	sel.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		s, err := open(ctx, env)
		return counted{s, func() { keys = withoutEnd(t, server.Admin(), env.Prefix) }}, err
	}
	var cfg *Config
	r := measureOne(t, &planted{}, "steady", func(c *Config) {
		c.Strategies, c.Stores, c.Requests, c.Workers = []strategies.Selection{sel}, setOf(t, server), 1000, 1
		c.Policy.Limit, c.base, c.Load = 10_000, nil, harness.Closed()
		c.Stream.Set("subjects", 300)
		c.Stream.Set("popularity", "uniform")
		c.Stream.Set("over-quota", 0)
		c.Trouble = trouble.MustParse("callers:killed=0.2")
		cfg = c
	})
	stream, _, err := cfg.NewStream(1)
	if err != nil {
		t.Fatal(err)
	}
	var op workloads.Op
	var left, dead int64
	asked := map[uint32]bool{}
	for i := range r.Issued {
		stream.At(i, &op)
		if cfg.Kills(i) > 0 {
			dead++
			if !asked[op.Subject] {
				left++
			}
		}
		asked[op.Subject] = true
	}
	if r.Issued != 1000 || dead < 150 || left < 30 {
		t.Fatalf("of %d callers %d are to be killed, %d of them with a new key", r.Issued, dead, left)
	}
	if r.ErrorKinds == nil || *r.ErrorKinds != (results.ErrorKinds{Killed: dead}) || r.Admitted != r.Issued-dead ||
		!r.Audit.Valid {
		t.Errorf("%+v and %d admitted, want %d killed; audit %+v", r.ErrorKinds, r.Admitted, dead, r.Audit)
	}
	if keys != left || r.Cost.KeysWithoutTTL != left {
		t.Errorf("%d keys without an end by Redis, %d by the record, want %d", keys, r.Cost.KeysWithoutTTL, left)
	}
}

// dying counts, within a lock, what its callers do before and after their first command, and what
// they still do as they are unwound. The first command is sent from a goroutine of its own if aside is set.
type dying struct {
	planted
	sync.Mutex
	redis                 redis.UniversalClient
	aside                 bool
	before, after, refuse int64
}

func (d *dying) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	d.Lock()
	defer d.Unlock()
	d.before++
	defer func() {
		if errors.Is(d.redis.Incr(ctx, "x").Err(), kill.Err) {
			d.refuse++
		}
	}()
	done := make(chan error, 1)
	first := func() { done <- d.redis.Incr(ctx, "x").Err() }
	if d.aside {
		go first()
	} else {
		first()
	}
	if err := <-done; err == nil {
		d.after++
	}
	return d.planted.Take(ctx, r)
}

// TestKilledCallersUnwind: of a killed caller nothing runs but its deferred functions, which free its locks, and no
// command of theirs reaches the store. If its command came from another goroutine, it goes on, and its answer does not
// count.
func TestKilledCallersUnwind(t *testing.T) {
	server := storetest.Redis(t)
	for _, aside := range []bool{false, true} {
		d := &dying{aside: aside}
		sel := d.selection()
		sel.Needs = []strategies.Need{strategies.NeedRedis}
		sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			d.redis = strategies.Redis(env)
			return d, nil
		}
		var plan *Config
		r := measureOne(t, &d.planted, "steady", func(c *Config) {
			d.delay = nil
			c.Strategies, c.Stores, c.Requests, c.Workers = []strategies.Selection{sel}, setOf(t, server), 500, 4
			c.Policy.Limit, c.base, c.Load = 10_000, nil, harness.Closed()
			c.Stream.Set("subjects", 20)
			c.Stream.Set("over-quota", 0)
			c.Trouble = trouble.MustParse("callers:killed=0.3")
			plan = c
		})
		dead := int64(0)
		for i := range r.Issued {
			if plan.Kills(i) > 0 {
				dead++
			}
		}
		if dead < 100 || r.ErrorKinds == nil || *r.ErrorKinds != (results.ErrorKinds{Killed: dead}) ||
			r.Admitted+r.Rejected != r.Issued-dead {
			t.Errorf("%+v, %d answered, want %d killed of %d", r.ErrorKinds, r.Admitted+r.Rejected, dead, r.Issued)
		}
		if d.refuse != dead || d.before-d.after != dead {
			t.Errorf("aside %t: %d refused, %d of %d went on, want %d killed", aside, d.refuse, d.after, d.before, dead)
		}
	}
}

// withoutEnd counts keys that never expire.
func withoutEnd(t *testing.T, c redis.UniversalClient, prefix string) (n int64) {
	ctx := context.Background()
	for keys := c.Scan(ctx, 0, prefix+"*", 1000).Iterator(); keys.Next(ctx); {
		if ttl, err := c.TTL(ctx, keys.Val()).Result(); err != nil {
			t.Error(err)
		} else if ttl == -1 {
			n++
		}
	}
	return n
}
