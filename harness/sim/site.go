package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/fakeredis/hooks"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/internal/trouble/kill"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// site is everything that one strategy has to itself: its session, stores, and the
// routes to them.
type site struct {
	*harness.Session

	cfg       *Config
	scheduler *sched.Scheduler
	network   *network
	// open makes a Redis in this process.
	open func() (fakeredis.Redis, error)

	tables   []fakeredis.Redis // by region; one if Redis is shared
	redis    []*server         // as tables
	at       []int             // which of the tables a region uses
	postgres *server
	jobs     *sched.Jobs      // of the instance that is being opened
	process  []*sched.Process // by instance
	clients  []interface{ Close() error }

	real  stores.Store // carries the commands out, if there is one
	admin redis.UniversalClient
	empty int64 // bytes of its data set before the first request
}

// scope of all keys. It is the same in every run, so traces are.
const scope = stores.Scope("sim")

func openSite(ctx context.Context, cfg *Config, sel strategies.Selection, w *network,
	open func() (fakeredis.Redis, error)) (*site, error) {
	st := &site{Session: &harness.Session{Plan: &cfg.Plan, Selection: sel}, cfg: cfg, scheduler: w.scheduler, network: w,
		open:     open,
		postgres: newServer(*cfg.PostgresNet), process: make([]*sched.Process, cfg.Topology.total())}
	err := st.prepare(ctx)
	if err == nil {
		err = st.Open(ctx, cfg.Topology.total(), 1, st)
	}
	if err != nil {
		return nil, errors.Join(err, st.close(ctx))
	}
	return st, nil
}

// needsRedis reports whether a strategy needs a Redis, by whatever name.
func needsRedis(sel strategies.Selection) bool { return len(sel.RedisNeeds()) > 0 }

// prepare makes the Redis of each region.
func (st *site) prepare(ctx context.Context) error {
	if real, ok := st.cfg.Stores.Get(string(strategies.NeedRedis)); ok && needsRedis(st.Selection) {
		strays, err := real.Prepare(ctx, scope)
		if err == nil && strays > 0 { // of an earlier run that could not remove them
			err = real.Wipe(ctx, scope)
			if err == nil {
				_, err = real.Prepare(ctx, scope)
			}
		}
		if err != nil {
			return err
		}
		st.real = real
		st.admin, err = st.connect(ctx, real, 1)
		if err != nil {
			return err
		}
		usage, err := st.count(ctx)
		if err != nil {
			return err
		}
		st.empty = usage.Bytes
	}
	topology := &st.cfg.Topology
	for r := range topology.Regions {
		if r > 0 && topology.SharedRedis {
			st.at = append(st.at, 0)
			continue
		}
		table, err := st.newTable(ctx)
		if err != nil {
			return err
		}
		st.at = append(st.at, len(st.tables))
		st.tables, st.redis = append(st.tables, table), append(st.redis, newServer(*st.cfg.RedisNet))
	}
	return nil
}

// connect opens a client of a real server.
func (st *site) connect(ctx context.Context, real stores.Store, pool int) (redis.UniversalClient, error) {
	conn, err := real.Connect(ctx, scope, stores.ConnOptions{Pool: pool})
	if err != nil {
		return nil, err
	}
	st.clients = append(st.clients, conn)
	client, ok := conn.Client().(redis.UniversalClient)
	if !ok {
		return nil, fmt.Errorf("the client of %s is no Redis client", real.Driver())
	}
	return client, nil
}

// Furnish serves [harness.Session.Open].
func (st *site) Furnish(ctx context.Context, env *strategies.Env) error {
	topology := &st.cfg.Topology
	r := topology.region(env.Instance)
	n := st.at[r]
	toRedis := &route{server: st.redis[n], wrong: st.network.wrong.between(env.Instance, strategies.NeedRedis)}
	if topology.SharedRedis {
		toRedis.far = topology.distance(r) / 2
	}
	toSQL := &route{server: st.postgres, far: topology.distance(r) / 2,
		wrong: st.network.wrong.between(env.Instance, strategies.NeedPostgres)}
	st.jobs = st.scheduler.NewJobs(fmt.Sprintf("instance %d ", env.Instance))
	st.jobs.Process = st.scheduler.NewProcess()
	own := topology.clock(env.Instance)
	env.Clock = st.scheduler.Steps(own.Ahead, own.From)
	env.TrueClock = st.scheduler.Clock(0)
	env.Region = topology.Regions[r]
	env.Wake = st.jobs.Wake
	env.Prefix = st.prefix(n)
	if st.Selection.NeedsStore(strategies.NeedSource) {
		env.Model = strategies.NewModel(st.network.statement(toSQL))
	}
	if needsRedis(st.Selection) {
		client, err := st.client(ctx, st.tables[n], toRedis)
		if err != nil {
			return err
		}
		env.Clients = map[string]any{string(st.Selection.RedisNeeds()[0]): client}
	}
	return nil
}

// prefix of the keys in the Redis of that number: regions may share a real server.
func (st *site) prefix(n int) string { return fmt.Sprintf("%sr%d:", scope.Prefix(), n) }

// Adopt serves [harness.Session.Open].
func (st *site) Adopt(instance int, jobs []*harness.Job) error {
	var own []strategies.Job
	for _, j := range jobs {
		j.Begin()
		own = append(own, j.Job)
	}
	st.jobs.Start(own)
	st.process[instance] = st.jobs.Process
	return nil
}

func (st *site) newTable(ctx context.Context) (fakeredis.Redis, error) {
	redis, err := st.open()
	if err != nil {
		return nil, err
	}
	redis.Reset(st.scheduler.Nano())
	if table, ok := redis.(*fakeredis.Table); ok {
		table.Watch = st.real == nil // which else answers
		if st.admin != nil {
			table.Expired = func(key string) { st.admin.Del(ctx, key) }
		}
		if st.Selection.NeedsStore(strategies.NeedReplicated) {
			table.Replicas = 1
		}
	}
	return redis, nil
}

// poolSize of a client of a real server: callers that are parked within a command
// hold no connection.
const poolSize = 8

// client of one region's Redis.
func (st *site) client(ctx context.Context, t fakeredis.Redis, to *route) (redis.UniversalClient, error) {
	var client redis.UniversalClient
	if st.real != nil {
		var err error
		client, err = st.connect(ctx, st.real, poolSize)
		if err != nil {
			return nil, err
		}
	} else {
		own := fakeredis.Watched(t, fakeredis.Pool, st.network.leave)
		st.clients = append(st.clients, own)
		client = own
	}
	if st.cfg.Trouble.Has(trouble.Killed) {
		client.AddHook(kill.Hook)
	}
	client.AddHook(hooks.Redis(func(ctx context.Context, cmds []redis.Cmder, next func(context.Context) error) error {
		return st.network.send(ctx, to, cmds, next)
	}))
	store := storeHook{network: st.network, table: t, server: to.server, real: st.real != nil}
	chosen := sched.Hook{Answer: store.answer}
	if store.real {
		chosen.Answer = nil // a server may take its time
	}
	client.AddHook(chosen)
	client.AddHook(hooks.Redis(store.carryOut))
	return client, nil
}

// through are the instances that subjects are set up through, one for each Redis: what
// one region's sets up, another's does not see.
func (st *site) through() []int {
	through := []int{0}
	if st.cfg.Topology.apart() && needsRedis(st.Selection) {
		for r := 1; r < len(st.cfg.Topology.Regions); r++ {
			through = append(through, r*st.cfg.Instances)
		}
	}
	return through
}

// howToRead reads counters at this moment, after everything that happened in it.
func (st *site) howToRead(d *drive) harness.ReadConfig {
	how := harness.ReadConfig{Policy: d.policy, Now: func() int64 { return d.now() - d.epoch + 1 }}
	if topology := &st.cfg.Topology; topology.apart() {
		how.Region = func(instance int) string { return topology.Regions[topology.region(instance)] }
	}
	return how
}

// unknown is the first command that the Redis of a region does not have.
func (st *site) unknown() string {
	for _, redis := range st.tables {
		if text := redis.Unknown(); text != "" {
			return text
		}
	}
	return ""
}

func (st *site) close(ctx context.Context) error {
	st.scheduler.Close()
	errs := []error{st.Close(ctx)}
	for _, c := range st.clients {
		errs = append(errs, c.Close())
	}
	if st.real != nil {
		errs = append(errs, st.real.Wipe(context.WithoutCancel(ctx), scope))
	}
	return errors.Join(errs...)
}

// present brings all Redis up to this moment, as a command would.
func (st *site) present() {
	for i, redis := range st.tables {
		storeHook{network: st.network, table: redis, server: st.redis[i]}.present()
	}
}

// count is what there is in all Redis; nothing if that is not known at once: a real server
// which may serve others too would have to be searched.
func (st *site) count(ctx context.Context) (usage stores.Usage, err error) {
	if st.real == nil {
		return st.usage(ctx)
	}
	st.present() // the tables only know what expires there
	if counter, ok := st.real.(stores.Counter); ok && stores.PlaceOf(st.real) == stores.StartedHere {
		return counter.Count(ctx)
	}
	return usage, nil
}

// usage is what there is in all Redis. What a table takes in memory is no statement about
// a Redis, so only a real one tells bytes.
func (st *site) usage(ctx context.Context) (usage stores.Usage, err error) {
	st.present()
	if st.real != nil {
		return st.real.Usage(ctx, scope)
	}
	for _, redis := range st.tables {
		usage.Keys += int64(redis.Len())
		usage.WithoutTTL += redis.WithoutTTL()
	}
	return usage, nil
}
