package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// site is everything that one strategy has to itself in one round: instances,
// connections, a key prefix and a schema.
type site struct {
	cfg       *Config
	sel       strategies.Selection
	prefix    string
	schema    string // empty without PostgreSQL
	instances []strategies.Strategy
	jobs      *jobRunner

	redisMeter, sqlMeter stores.Meter
	modelStatements      atomic.Int64

	outages []*outage

	clients []*redis.Client
	pools   []*pgxpool.Pool
}

// openSite opens the instances of a strategy. What was opened is closed again if
// it fails.
func openSite(ctx context.Context, cfg *Config, tb *timebase, sel strategies.Selection, name string) (*site, error) {
	s := &site{cfg: cfg, sel: sel, prefix: "quotabench:" + name + ":", jobs: newJobRunner(tb.nano)}
	for _, o := range cfg.Outages {
		s.outages = append(s.outages, &outage{Outage: o})
	}
	if err := s.open(ctx, tb, name); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", sel, err), s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *site) open(ctx context.Context, tb *timebase, name string) error {
	wantsSQL := s.sel.NeedsStore(strategies.NeedPostgres) || s.sel.NeedsStore(strategies.NeedSource)
	hasSQL := s.cfg.Postgres != nil && s.cfg.Postgres.Available()
	if wantsSQL && hasSQL {
		schema := "quotabench_" + name
		if err := s.cfg.Postgres.CreateSchema(ctx, schema); err != nil {
			return err
		}
		s.schema = schema
	}
	var model *strategies.Model
	if wantsSQL && !hasSQL {
		model = strategies.NewModel(func(_ context.Context, _ string, run func() error) error {
			s.modelStatements.Add(1)
			return run()
		})
	}
	shared := new(strategies.Shared)
	for i := range s.cfg.Instances {
		wake, addJobs := s.jobs.waker()
		env := strategies.Env{
			Clock:  tb.clock,
			Rand:   rand.New(rand.NewPCG(s.cfg.Seed, uint64(i)+1)),
			Model:  model,
			Shared: shared,
			Prefix: s.prefix, Instance: i, Instances: s.cfg.Instances,
			Options: s.sel.Options, Wake: wake,
		}
		if s.sel.NeedsStore(strategies.NeedRedis) {
			c := s.cfg.Redis.Client(stores.ClientOptions{
				PoolSize: s.cfg.redisPool(), MaxRetries: s.cfg.ClientRetries, Meter: &s.redisMeter,
				DialWrap: s.dialWrap(strategies.NeedRedis),
			})
			s.clients = append(s.clients, c)
			env.Redis = c
		}
		if s.schema != "" {
			p, err := s.cfg.Postgres.Pool(ctx, stores.PoolOptions{
				Schema: s.schema, Size: s.cfg.sqlPool(), Meter: &s.sqlMeter, DialWrap: s.dialWrap(strategies.NeedPostgres),
			})
			if err != nil {
				return err
			}
			s.pools = append(s.pools, p)
			env.Postgres = p
		}
		if err := s.dialAll(ctx, env); err != nil {
			return err
		}
		inst, err := s.sel.Open(ctx, env)
		if err != nil {
			return err
		}
		s.instances = append(s.instances, inst)
		addJobs(inst, i)
	}
	return nil
}

// dialAll opens every connection of an instance's pools, so that none is opened
// while requests are measured.
func (s *site) dialAll(ctx context.Context, env strategies.Env) error {
	if env.Redis != nil {
		c := s.clients[len(s.clients)-1]
		held := make([]*redis.Conn, s.cfg.redisPool())
		for i := range held {
			held[i] = c.Conn()
		}
		err := together(len(held), func(i int) error { return held[i].Ping(ctx).Err() })
		for _, h := range held {
			err = errors.Join(err, h.Close())
		}
		if err != nil {
			return fmt.Errorf("connect to redis: %w", err)
		}
	}
	if env.Postgres != nil {
		held := make([]*pgxpool.Conn, s.cfg.sqlPool())
		err := together(len(held), func(i int) (err error) {
			held[i], err = env.Postgres.Acquire(ctx)
			return err
		})
		for _, h := range held {
			if h != nil {
				h.Release()
			}
		}
		if err != nil {
			return fmt.Errorf("connect to postgresql: %w", err)
		}
	}
	return nil
}

// together runs f(0) to f(n-1) at the same time and returns the first error.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// dialWrap puts the planned outages of a store into its connections; nil where
// there are none.
func (s *site) dialWrap(store strategies.Need) func(net.Conn) net.Conn {
	var wrap func(net.Conn) net.Conn
	for _, o := range s.outages {
		if o.Store != store {
			continue
		}
		inner := wrap
		wrap = func(c net.Conn) net.Conn {
			if inner != nil {
				c = inner(c)
			}
			return o.wrap(c)
		}
	}
	return wrap
}

// provision sets subjects up, and fills in what they have used: by the
// strategy's own Provision where it has one, and otherwise by one request for
// all of it. It returns what each subject has used then.
func (s *site) provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	if len(grants) == 0 {
		return nil
	}
	if pv, ok := s.instances[0].(strategies.Provisioner); ok {
		if err := pv.Provision(ctx, p, grants); err != nil {
			return fmt.Errorf("provision %d subjects: %w", len(grants), err)
		}
		return nil
	}
	for i, g := range grants {
		if g.Used == 0 {
			continue
		}
		req := quota.Request{ID: fillID + uint64(i), Subject: g.Subject, Policy: p, Units: g.Used}
		d, err := s.instances[0].Take(ctx, req)
		if err != nil {
			return fmt.Errorf("fill %s: %w", g.Subject, err)
		}
		if !d.Admitted {
			grants[i].Used = 0
		}
	}
	return nil
}

// The first request IDs of what is not measured, far above any measured one.
const (
	fillID   = 1 << 62
	warmUpID = 1 << 61
)

// close closes the instances and removes everything they left in the stores.
func (s *site) close(ctx context.Context) error {
	var errs []error
	for _, i := range s.instances {
		errs = append(errs, i.Close(ctx))
	}
	for _, c := range s.clients {
		errs = append(errs, c.Close())
	}
	for _, p := range s.pools {
		p.Close()
	}
	if len(s.clients) > 0 {
		_, err := s.cfg.Redis.Wipe(ctx, s.prefix)
		errs = append(errs, err)
	}
	if s.schema != "" {
		errs = append(errs, s.cfg.Postgres.DropSchema(ctx, s.schema))
	}
	s.instances, s.clients, s.pools, s.schema = nil, nil, nil, ""
	return errors.Join(errs...)
}
