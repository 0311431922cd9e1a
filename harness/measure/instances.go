package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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
	scope     stores.Scope
	sql       bool // there is a PostgreSQL, and it has the scope
	instances []strategies.Strategy
	jobs      *jobRunner

	redisMeter, sqlMeter stores.Meter
	modelStatements      atomic.Int64

	outages []*outage

	conns []stores.Conn
}

// openSite opens the instances of a strategy. What was opened is closed again if
// it fails.
func openSite(ctx context.Context, cfg *Config, tb *timebase, sel strategies.Selection, name string) (*site, error) {
	s := &site{cfg: cfg, sel: sel, scope: stores.Scope(name), jobs: newJobRunner(tb.nano)}
	for _, o := range cfg.Outages {
		s.outages = append(s.outages, &outage{Outage: o})
	}
	if err := s.open(ctx, tb); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", sel, err), s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *site) open(ctx context.Context, tb *timebase) error {
	wantsSQL := s.sel.NeedsStore(strategies.NeedPostgres) || s.sel.NeedsStore(strategies.NeedSource)
	hasSQL := s.cfg.Postgres != nil && s.cfg.Postgres.Available()
	if wantsSQL && hasSQL {
		if _, err := s.cfg.Postgres.Prepare(ctx, s.scope); err != nil {
			return err
		}
		s.sql = true
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
			Prefix: s.scope.Prefix(), Instance: i, Instances: s.cfg.Instances,
			Options: s.sel.Options, Wake: wake,
		}
		if s.sel.NeedsStore(strategies.NeedRedis) {
			c, err := s.connect(ctx, s.cfg.Redis, stores.ConnOptions{
				Pool: s.cfg.redisPool(), Retries: s.cfg.ClientRetries, Meter: &s.redisMeter,
				Wrap: s.dialWrap(strategies.NeedRedis),
			})
			if err != nil {
				return err
			}
			env.Redis = c.(redis.UniversalClient)
		}
		if s.sql {
			c, err := s.connect(ctx, s.cfg.Postgres, stores.ConnOptions{
				Pool: s.cfg.sqlPool(), Meter: &s.sqlMeter, Wrap: s.dialWrap(strategies.NeedPostgres),
			})
			if err != nil {
				return err
			}
			env.Postgres = c.(*pgxpool.Pool)
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

// connect opens a client of a store, which the site closes.
func (s *site) connect(ctx context.Context, from stores.Store, o stores.ConnOptions) (any, error) {
	c, err := from.Connect(ctx, s.scope, o)
	if err != nil {
		return nil, err
	}
	s.conns = append(s.conns, c)
	return c.Client(), nil
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
	for _, c := range s.conns {
		errs = append(errs, c.Close())
	}
	if len(s.conns) > 0 && s.sel.NeedsStore(strategies.NeedRedis) {
		errs = append(errs, s.cfg.Redis.Wipe(ctx, s.scope))
	}
	if s.sql {
		errs = append(errs, s.cfg.Postgres.Wipe(ctx, s.scope))
	}
	s.instances, s.conns, s.sql = nil, nil, false
	return errors.Join(errs...)
}
