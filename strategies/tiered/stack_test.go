package tiered_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/tiered"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const agent = quota.Subject("agent-7")

// stack is one set of stores, shared by the instances that a test opens.
type stack struct {
	redis *redis.Client
	pool  *pgxpool.Pool // nil over the model
	model *strategies.Model
	// sourceDown makes every statement of the model fail.
	sourceDown bool
	shared     *strategies.Shared
	prefix     string
	region     string     // of the instances that are opened next; each has keys of its own
	mu         sync.Mutex // guards opened.woken
	// trace is what instances asked of their stores, in order.
	trace []string
}

// onEveryStack runs a test on Redis' and PostgreSQL's stand-ins and on servers.
func onEveryStack(t *testing.T, test func(t *testing.T, s *stack)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		s := &stack{prefix: storetest.Prefix(t), shared: &strategies.Shared{}}
		s.model = strategies.NewModel(func(_ context.Context, sql string, run func() error) error {
			s.trace = append(s.trace, sql)
			if s.sourceDown {
				return errors.New("connection refused")
			}
			return run()
		})
		s.connect(t, storetest.EmbeddedRedis(t))
		test(t, s)
	})
	t.Run("servers", func(t *testing.T) {
		s := &stack{prefix: storetest.Prefix(t), shared: &strategies.Shared{}}
		s.connect(t, storetest.Redis(t))
		s.pool = freshSchema(t, storetest.Postgres(t))
		test(t, s)
	})
}

func freshSchema(t *testing.T, p *pgstore.Store) *pgxpool.Pool {
	t.Helper()
	schema := storetest.Schema(t, p)
	pool, err := p.Pool(t.Context(), pgstore.PoolOptions{Schema: schema, Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (s *stack) connect(t *testing.T, r *redisstore.Store) {
	s.redis = r.Client(redisstore.ClientOptions{Pool: 8})
	t.Cleanup(func() {
		_ = s.redis.Close()
		if _, err := r.WipePrefix(context.Background(), s.prefix); err != nil {
			t.Error(err)
		}
	})
}

// opened is an instance with clients of its own.
type opened struct {
	strategies.Strategy
	t      *testing.T
	s      *stack
	client *redis.Client
	pool   *pgxpool.Pool // nil over the model
	// woken are the jobs that the instance asked for.
	woken []string
}

// open opens an instance of a selection such as "three-tier:ttl=literal". If the
// selection does not name a lag there is none: a test would only wait for it.
func (s *stack) open(t *testing.T, selection string) *opened {
	t.Helper()
	if !strings.Contains(selection, "lag=") && !strings.HasPrefix(selection, "three-tier-hardened") {
		sep := ","
		if !strings.Contains(selection, ":") {
			sep = ":"
		}
		selection += sep + "lag=0s"
	}
	return s.openOn(t, selection, clock.Wall{})
}

// openOn is open with another clock, and with the selection as it stands.
func (s *stack) openOn(t *testing.T, selection string, c quota.Clock) *opened {
	t.Helper()
	sel := testkit.Strategy(t, selection)
	// A client shares the stack's connections but not its hooks.
	options := *s.redis.Options()
	client := redis.NewClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	// Connected before the hook is there, the greeting is not in the trace.
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	client.AddHook(&tap{s})
	o := &opened{t: t, s: s, client: client}
	var err error
	if s.pool != nil {
		o.pool, err = pgxpool.NewWithConfig(t.Context(), s.pool.Config())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(o.pool.Close)
	}
	o.Strategy, err = sel.Open(t.Context(), strategies.Env{
		Clock: c, Clients: map[string]any{"redis": client, "postgres": o.pool}, Model: s.model, Shared: s.shared,
		Prefix: s.prefix + s.region, Region: s.region, Instances: 1, Options: sel.Options,
		Wake: func(job string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			o.woken = append(o.woken, job)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// losesRedis makes every further command of this instance's client fail.
func (o *opened) losesRedis() {
	o.client.AddHook(refuse{})
}

// losesSource makes every further statement fail: of this instance, or over the
// model of all until the test ends.
func (o *opened) losesSource() {
	if o.pool != nil {
		o.pool.Close()
		return
	}
	o.s.sourceDown = true
	o.t.Cleanup(func() { o.s.sourceDown = false })
}

// take asks for units and fails the test on an error.
func (o *opened) take(ctx context.Context, p *quota.Policy, units int64) quota.Decision {
	o.t.Helper()
	d, err := o.Take(ctx, quota.Request{Subject: agent, Policy: p, Units: units})
	if err != nil {
		o.t.Fatal(err)
	}
	return d
}

// fill takes single units until n are admitted.
func (o *opened) fill(p *quota.Policy, n int) {
	o.t.Helper()
	for i := range n {
		if d := o.take(o.t.Context(), p, 1); !d.Admitted {
			o.t.Fatalf("request %d of %d is rejected by %s", i+1, n, d.Tier)
		}
	}
}

func (o *opened) provision(p *quota.Policy, grants ...strategies.Grant) {
	o.t.Helper()
	if err := o.Strategy.(strategies.Provisioner).Provision(o.t.Context(), p, grants); err != nil {
		o.t.Fatal(err)
	}
}

// run runs rounds of a job until one changes nothing.
func (o *opened) run(job string) {
	o.t.Helper()
	for _, j := range o.Strategy.(strategies.Jobber).Jobs() {
		if j.Name != job {
			continue
		}
		for range 10_000 { // one charge a round, with the record's queue
			changed, err := j.Run(o.t.Context())
			if err != nil {
				o.t.Fatal(err)
			}
			if !changed {
				return
			}
		}
		o.t.Fatalf("job %s does not come to rest", job)
	}
	o.t.Fatalf("there is no job %s", job)
}

// used returns what the cache and the database of record hold; -1 is unknown.
func (o *opened) used(p *quota.Policy) (cached, stored int64) {
	o.t.Helper()
	readings, err := o.Strategy.(strategies.Viewer).Used(o.t.Context(), agent, p)
	if err != nil {
		o.t.Fatal(err)
	}
	if len(readings) != 2 || readings[0].Tier != quota.TierRedis {
		o.t.Fatalf("readings %+v", readings)
	}
	for i := range readings {
		if !readings[i].Known {
			readings[i].Units = -1
		}
	}
	return readings[0].Units, readings[1].Units
}

func (o *opened) wantUsed(p *quota.Policy, cached, stored int64) {
	o.t.Helper()
	if c, s := o.used(p); c != cached || s != stored {
		o.t.Errorf("used: Redis %d, database of record %d; want %d and %d", c, s, cached, stored)
	}
}

func (o *opened) measure(name string) int64 {
	o.t.Helper()
	for _, m := range o.Strategy.(strategies.Meter).Measures() {
		if m.Name == name {
			return m.Value
		}
	}
	o.t.Fatalf("there is no measure %q", name)
	return 0
}

// policy is one of the records' with another limit.
func policy(t *testing.T, name string, limit int64) *quota.Policy {
	t.Helper()
	p := testkit.Policy(t, name)
	p.Limit = limit
	return &p
}

type beforeKey struct{}

type before struct {
	command string
	do      func()
}

// at makes do happen once, right before the first such command sent with the
// context: what another client does while this one is on its way.
func at(ctx context.Context, command string, do func()) context.Context {
	return context.WithValue(ctx, beforeKey{}, &before{command, do})
}

// tap is the hook that records commands and lets others go first.
type tap struct{ s *stack }

func (h *tap) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *tap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *tap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if b, ok := ctx.Value(beforeKey{}).(*before); ok && b.do != nil && b.command == cmd.Name() {
			do := b.do
			b.do = nil
			do()
		}
		if ctx.Value(untraced{}) == nil {
			h.s.trace = append(h.s.trace, h.describe(cmd))
		}
		return next(ctx, cmd)
	}
}

type untraced struct{}

// describe is a command as the record's listings name it: without the prefix.
func (h *tap) describe(cmd redis.Cmder) string {
	var words []string
	for _, a := range cmd.Args() {
		if w, ok := a.(string); ok {
			words = append(words, strings.TrimPrefix(w, h.s.prefix))
		}
	}
	return strings.Join(words, " ")
}

type refuse struct{}

func (refuse) DialHook(next redis.DialHook) redis.DialHook { return next }

func (refuse) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (refuse) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := ctx.Err()
		if err == nil {
			err = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		cmd.SetErr(err)
		return err
	}
}

func (s *stack) wantTrace(t *testing.T, what string, want ...string) {
	t.Helper()
	if !slices.Equal(s.trace, want) {
		t.Errorf("%s sends\n\t%s\nwant\n\t%s", what, strings.Join(s.trace, "\n\t"), strings.Join(want, "\n\t"))
	}
	s.trace = nil
}

func ttl(t *testing.T, s *stack) time.Duration {
	t.Helper()
	d, err := s.redis.PTTL(t.Context(), s.prefix+"quota:"+string(agent)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return d
}
