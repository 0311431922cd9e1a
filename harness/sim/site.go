package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/memredis"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// site is everything that one strategy has to itself: stores, the ways to them,
// and instances.
type site struct {
	cfg *Config
	sel strategies.Selection
	s   *sched.Scheduler
	w   *wires

	tables    []*memredis.Table // by region; one where Redis is shared
	redis     []*server         // as tables
	postgres  *server
	instances []strategies.Strategy
	clients   []*redis.Client
	jobs      []*sched.Actor
	admin     *redis.Client // of a real server
}

// scope of all keys. It is the same in every run, so that traces are.
const scope = stores.Scope("sim")

func openSite(ctx context.Context, cfg *Config, sel strategies.Selection, w *wires) (*site, error) {
	st := &site{cfg: cfg, sel: sel, s: w.s, w: w, postgres: newServer(*cfg.PostgresNet)}
	if err := st.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", sel, err), st.close(ctx))
	}
	return st, nil
}

func (st *site) open(ctx context.Context) error {
	t := &st.cfg.Topology
	redisAt := make([]*server, len(t.Regions))
	tables := make([]*memredis.Table, len(t.Regions))
	if st.cfg.Redis != nil {
		st.admin = st.cfg.Redis.Admin()
		if err := st.cfg.Redis.Wipe(ctx, scope); err != nil {
			return err
		}
	}
	for r := range t.Regions {
		if r > 0 && t.SharedRedis {
			redisAt[r], tables[r] = redisAt[0], tables[0]
			continue
		}
		redisAt[r], tables[r] = newServer(*st.cfg.RedisNet), st.newTable(ctx)
		st.tables, st.redis = append(st.tables, tables[r]), append(st.redis, redisAt[r])
	}
	shared := new(strategies.Shared)
	for i := range t.total() {
		r := t.region(i)
		toRedis := &way{to: redisAt[r]}
		if t.SharedRedis {
			toRedis.far = t.Distances[0][r] / 2
		}
		toSQL := &way{to: st.postgres, far: t.Distances[0][r] / 2}
		label := fmt.Sprintf("instance %d ", i)
		jobs := st.s.NewJobs(label)
		env := strategies.Env{
			Clock: st.s.Clock(t.skew(i)), Rand: rand.New(rand.NewPCG(st.cfg.Seed, uint64(i)+1)),
			Shared: shared, Prefix: st.prefix(r), Instance: i, Instances: t.total(), Region: t.Regions[r],
			Options: st.sel.Options, Wake: jobs.Wake,
		}
		if st.sel.NeedsStore(strategies.NeedSource) {
			env.Model = strategies.NewModel(st.w.statement(toSQL))
		}
		if st.sel.NeedsStore(strategies.NeedRedis) {
			env.Redis = st.client(tables[r], toRedis)
		}
		in, err := st.sel.Open(ctx, env)
		if err != nil {
			return err
		}
		st.instances = append(st.instances, in)
		if err := st.startJobs(jobs, in, i); err != nil {
			return err
		}
	}
	return nil
}

func (st *site) startJobs(jobs *sched.Jobs, in strategies.Strategy, number int) error {
	j, ok := in.(strategies.Jobber)
	if !ok {
		return nil
	}
	var own []strategies.Job
	for _, job := range j.Jobs() {
		if !job.Singleton || number == 0 {
			own = append(own, job)
		}
	}
	st.jobs = append(st.jobs, jobs.Start(own)...)
	return nil
}

// prefix of a region's keys: regions may share a real server.
func (st *site) prefix(region int) string {
	if st.cfg.Topology.SharedRedis {
		region = 0
	}
	return fmt.Sprintf("%sr%d:", scope.Prefix(), region)
}

func (st *site) newTable(ctx context.Context) *memredis.Table {
	t := memredis.New()
	t.SetNow(st.s.Now().UnixNano())
	if st.admin != nil {
		t.Expired = func(key string) { st.admin.Del(ctx, key) }
	}
	return t
}

// client of one region's Redis.
func (st *site) client(t *memredis.Table, to *way) *redis.Client {
	var c *redis.Client
	if st.cfg.Redis != nil {
		c = st.cfg.Redis.Client(stores.ClientOptions{PoolSize: 64})
	} else {
		c = memredis.Client(t)
	}
	c.AddHook(outer{w: st.w, to: to})
	c.AddHook(sched.Hook{})
	c.AddHook(inner{w: st.w, table: t, real: st.cfg.Redis != nil})
	st.clients = append(st.clients, c)
	return c
}

// provision sets subjects up, and fills in what they have used.
func (st *site) provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	// One instance per Redis: what one region's sets up, another's does not see.
	for i := 0; i < len(st.instances); i += st.cfg.Topology.Instances {
		if i > 0 && (st.cfg.Topology.SharedRedis || !st.sel.NeedsStore(strategies.NeedRedis)) {
			break
		}
		if pv, ok := st.instances[i].(strategies.Provisioner); ok {
			if err := pv.Provision(ctx, p, grants); err != nil {
				return fmt.Errorf("provision %d subjects: %w", len(grants), err)
			}
			continue
		}
		for n, g := range grants {
			if g.Used == 0 {
				continue
			}
			req := quota.Request{ID: fillID + uint64(i*len(grants)+n), Subject: g.Subject, Policy: p, Units: g.Used}
			d, err := st.instances[i].Take(ctx, req)
			if err != nil {
				return fmt.Errorf("fill %s: %w", g.Subject, err)
			}
			if !d.Admitted {
				grants[n].Used = 0
			}
		}
	}
	return nil
}

// fillID is the first request ID of what is not measured, far above any other.
const fillID = 1 << 62

// unknown is the first command that the table of a region does not have.
func (st *site) unknown() string {
	for _, t := range st.tables {
		if u := t.Unknown(); u != "" {
			return u
		}
	}
	return ""
}

// keys counts what is left in Redis.
func (st *site) keys() (total, withoutTTL int64) {
	for _, t := range st.tables {
		t.SetNow(st.s.Now().UnixNano())
		total += int64(t.Len())
		withoutTTL += t.WithoutTTL()
	}
	return total, withoutTTL
}

func (st *site) commands() (n int64) {
	for _, t := range st.tables {
		n += t.Commands()
	}
	return n
}

func (st *site) close(ctx context.Context) error {
	var errs []error
	st.s.Close()
	for _, in := range st.instances {
		errs = append(errs, in.Close(ctx))
	}
	for _, c := range st.clients {
		errs = append(errs, c.Close())
	}
	for _, t := range st.tables {
		t.Close()
	}
	if st.cfg.Redis != nil {
		errs = append(errs, st.cfg.Redis.Wipe(ctx, scope))
	}
	return errors.Join(errs...)
}
