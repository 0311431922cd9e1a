package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/internal/trouble/kill"
	"github.com/quotabench/quotabench/internal/trouble/network"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// site is everything that one strategy has to itself in one round: its session,
// connections, and a scope in each store that it needs.
type site struct {
	*harness.Session

	cfg      *Config
	timebase *timebase
	scope    stores.Scope
	// apart is set if peers do not end together: each removes what it may have written after the first did so.
	apart  bool
	stores map[string]*siteStore
	// model stands in for PostgreSQL; nil if there is one or none is needed.
	model           *strategies.Model
	modelStatements atomic.Int64
	strays          int64 // keys under our prefix before the first request

	// lost is set if the strategy may not answer any more.
	lost bool

	jobs    *jobRunner
	outages []*outage
	network trouble.List
	links   []*network.Link
	pauses  trouble.List
	clocks  []trouble.Clock  // of all instances; nil if none is wrong
	began   atomic.Int64     // when the pass did; 0 before
	paused  strategies.Tally // for how long an instance stood still at most, in nanoseconds
	round   uint64
	conns   []siteConn
}

// siteStore is one store of a site, with its traffic and what it says about itself
// around a pass.
type siteStore struct {
	stores.Store
	name          string
	meter         stores.Meter
	before, after stores.Stats
	traffic       stores.Counts // of the pass
	others        stores.Usage  // keys of the server that are not the site's
	absent        bool          // it did not answer when the pass was over
}

// openSite opens the instances of a strategy. If it fails, all that is open already is closed again.
func openSite(ctx context.Context, cfg *Config, timebase *timebase, sel strategies.Selection, name string,
	round int) (*site, error) {
	session := &harness.Session{Plan: &cfg.Plan, Selection: sel, Deadline: cfg.DecisionTimeout}
	site := &site{
		Session: session, cfg: cfg, timebase: timebase, scope: stores.Scope(name), round: uint64(round),
		jobs: newJobRunner(timebase), stores: map[string]*siteStore{},
	}
	site.network = cfg.Trouble.Of(trouble.Network)
	site.pauses = cfg.Trouble.Of(trouble.Pause).InTime()
	site.clocks = cfg.Trouble.Clocks(cfg.Instances, cfg.Duration)
	for _, event := range cfg.Trouble.Of(trouble.Outage) {
		site.outages = append(site.outages, &outage{Event: event, site: site, ctx: context.WithoutCancel(ctx)})
	}
	err := site.prepare(ctx)
	if err == nil {
		err = site.Open(ctx, cfg.Instances, round, site)
	}
	if err != nil {
		site.hung(err)
		return nil, errors.Join(err, site.close(context.WithoutCancel(ctx)))
	}
	return site, nil
}

// prepare makes room in every store that the strategy needs.
func (s *site) prepare(ctx context.Context) error {
	for _, need := range s.Selection.Needs {
		name := need.Store()
		store, ok := s.cfg.Stores.Get(name)
		switch {
		case !ok && need == strategies.NeedSource:
			s.model = strategies.NewModel(func(_ context.Context, _ string, run func() error) error {
				s.modelStatements.Add(1)
				return run()
			})
		case !ok && need == strategies.NeedReplica && s.model != nil: // a model has a model of a replica
		case !ok:
			return missing(name)
		case s.stores[name] == nil:
			if err := s.prepareStore(ctx, name, store); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepareStore makes room in a store, counts its stray keys, and counts the keys that are not the site's.
func (s *site) prepareStore(ctx context.Context, name string, store stores.Store) error {
	if s.cfg.First() { // which has the lease
		strays, err := store.Prepare(ctx, s.scope)
		if err != nil {
			return fmt.Errorf("open %s: %w", s.Selection, err)
		}
		s.strays += strays
	}
	others, err := monitor.Count(ctx, store)
	if err != nil {
		return fmt.Errorf("open %s: %w", s.Selection, err)
	}
	s.stores[name] = &siteStore{Store: store, name: name, others: others}
	return nil
}

// Furnish serves [harness.Session.Open].
func (s *site) Furnish(ctx context.Context, env *strategies.Env) error {
	env.Clock = s.timebase.clock
	env.TrueClock = s.timebase.clock
	if i := env.Instance; i < len(s.clocks) {
		env.Clock = skewed{Clock: s.clocks[i], site: s}
	}
	env.Model = s.model
	env.Prefix = s.scope.Prefix()
	env.Wake = s.jobs.waker(env.Instance)
	env.Clients = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.stores)) {
		store := s.stores[name]
		options := stores.ConnOptions{
			Pool: s.cfg.poolFor(s.Selection, name, store.Driver()), Cold: s.cfg.Cold, Retries: s.cfg.ClientRetries,
			Redirected: slices.ContainsFunc(s.outages, (*outage).moves), Meter: &store.meter,
			Wrap: s.dialWrap(name, env.Instance),
		}
		conn, err := store.Connect(ctx, s.scope, options)
		if err != nil {
			return err
		}
		if client, ok := conn.Client().(redis.UniversalClient); ok && s.cfg.Trouble.Has(trouble.Killed) {
			client.AddHook(kill.Hook)
		}
		s.conns = append(s.conns, siteConn{conn, name})
		env.Clients[name] = conn.Client()
	}
	return nil
}

// Provision sets subjects up, and waits until replicas have all that this has written.
func (s *site) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant, instances ...int) error {
	if err := s.Session.Provision(ctx, policy, grants, instances...); err != nil {
		return err
	}
	for name, store := range s.stores {
		replica, ok := store.Store.(stores.Follower)
		if !ok || !replica.Follows() {
			continue
		}
		of, _ := stores.PrimaryOf(name)
		primary, ok := s.cfg.Stores.Get(of)
		if !ok {
			return fmt.Errorf("%s is a replica, and this run has no primary of it: give it as NAME.replica in addition to NAME",
				name)
		}
		if err := replica.CatchUp(ctx, primary); err != nil {
			return err
		}
	}
	return nil
}

// Adopt serves [harness.Session.Open].
func (s *site) Adopt(_ int, jobs []*harness.Job) error {
	s.jobs.add(jobs)
	return nil
}

// dialWrap puts the planned outages of a store, the network to it, and pauses, into the connections of an instance; nil
// if there are none.
func (s *site) dialWrap(store string, instance int) func(net.Conn) net.Conn {
	wrap := s.link(store, instance)
	if link := wrap; len(s.pauses) > 0 {
		wrap = func(conn net.Conn) net.Conn {
			conn = (heldConn{conn, func() { s.stand(instance) }})
			if link != nil {
				conn = link(conn)
			}
			return conn
		}
	}
	for _, outage := range s.outages {
		if !s.concerns(outage.Where.Name, store) {
			continue
		}
		inner := wrap
		wrap = func(conn net.Conn) net.Conn {
			if inner != nil {
				conn = inner(conn)
			}
			return outage.Wrap(conn)
		}
	}
	return wrap
}

// close closes the instances and removes everything they left in the stores.
func (s *site) close(ctx context.Context) error {
	var errs []error
	ended := func(err error) {
		if !s.lost || !errors.As(err, new(*guard.HungError)) { // which was told already
			errs = append(errs, err)
		}
	}
	ended(s.Close(ctx))
	for _, conn := range s.conns { // a pool waits for connections that are in use
		_, err := guard.Within(ctx, s.Deadline, guard.Grace(s.Deadline), "its connections being closed",
			func(context.Context) (any, error) {
				return nil, conn.Close()
			})
		ended(err)
	}
	for _, store := range s.stores {
		if s.cfg.First() || s.apart {
			errs = append(errs, s.wipe(ctx, store))
		}
	}
	errs = append(errs, s.recover(ctx))
	s.conns = nil
	s.stores = nil
	return errors.Join(errs...)
}

// wipe removes what the strategy left in a store. One that did not answer when the pass
// was over is not waited for: it removes that when it is closed, if it is back by then.
func (s *site) wipe(ctx context.Context, store *siteStore) error {
	if store.absent {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, monitor.Timeout)
		defer cancel()
	}
	return store.Wipe(ctx, s.scope)
}

// observe reads what the stores say about themselves. One that does not answer
// says nothing: the run itself shows that it is gone.
func (s *site) observe(ctx context.Context, into func(*siteStore) *stores.Stats) {
	for _, store := range s.stores {
		if store.absent {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, monitor.Timeout)
		if stats, err := store.Stats(asked); err == nil {
			*into(store) = stats
		}
		cancel()
	}
}

// traffic is what all connections carried: statements of SQL, and commands of all others. Allocations are the
// program's.
type traffic struct{ commands, sql, model, trips, bytes, allocs int64 }

func (t traffic) sub(o traffic) traffic {
	return traffic{t.commands - o.commands, t.sql - o.sql, t.model - o.model, t.trips - o.trips, t.bytes - o.bytes,
		t.allocs - o.allocs}
}

func (t traffic) add(o traffic) traffic {
	return traffic{t.commands + o.commands, t.sql + o.sql, t.model + o.model, t.trips + o.trips, t.bytes + o.bytes,
		t.allocs + o.allocs}
}

// cost is what each of n decisions cost that made this traffic.
func (t traffic) cost(n float64) results.ProbeCost {
	return results.ProbeCost{
		Commands: float64(t.commands) / n, SQL: float64(t.sql) / n, ModelSQL: float64(t.model) / n,
		RoundTrips: float64(t.trips) / n, Bytes: float64(t.bytes) / n, Allocs: float64(t.allocs) / n,
	}
}

// asksSQL reports whether clients of a store send statements.
func asksSQL(store stores.Store) bool { return stores.ClassOf(store.Driver()) == stores.ClassSQL }

// traffic is that up to now, and so many allocations.
func (s *site) traffic(allocs uint64) traffic {
	t := traffic{model: s.modelStatements.Load(), allocs: int64(allocs)}
	for _, store := range s.stores {
		counts := store.meter.Snapshot()
		if asksSQL(store) {
			t.sql += counts.Commands
		} else {
			t.commands += counts.Commands
		}
		t.trips += counts.RoundTrips
		t.bytes += counts.BytesIn + counts.BytesOut
	}
	return t
}

// setUps counts what connections took in addition to decisions: each that was opened, and what
// that needed, statements that were prepared, and each that was lost. A client that opens one for
// each statement is to do so.
func (s *site) setUps() (n int64) {
	if s.cfg.Cold {
		return 0
	}
	for _, store := range s.stores {
		counts := store.meter.Snapshot()
		n += counts.Connections + counts.SetupCommands + counts.Lost
	}
	return n
}

// CheckRoom reports the first strategy whose connections a store has no room for: it
// would fail in every round. Stores is set.
func (c *Config) CheckRoom(ctx context.Context) error {
	selected, _ := c.Split()
	type room struct {
		left    int
		setting string
	}
	rooms := map[string]*room{}
	for _, selection := range selected {
		for _, name := range storesOf(selection) {
			store, here := c.Stores.Get(name)
			roomer, can := store.(bounded)
			if !here || !can {
				continue
			}
			if _, asked := rooms[name]; !asked {
				rooms[name] = nil
				if left, setting, known := roomer.Room(ctx); known {
					rooms[name] = &room{left, setting}
				}
			}
			has := rooms[name]
			each := c.poolFor(selection, name, store.Driver())
			if has == nil || each*c.Instances <= has.left {
				continue
			}
			return fmt.Errorf("strategy %s opens %d connections to %s in each of %d instances, %d in all, "+
				"and the server has room for %d (%s): give a smaller --client pool=N, fewer --instances, or raise that",
				selection, each, name, c.Instances, each*c.Instances, has.left, has.setting)
		}
	}
	return nil
}

// siteConn is an instance's client of one of the site's stores.
type siteConn struct {
	stores.Conn
	store string
}

// poolUse is how the pools of all instances were used, by store. Clients that do not
// tell have none.
func (s *site) poolUse() map[string]stores.PoolUse {
	out := map[string]stores.PoolUse{}
	for _, conn := range s.conns {
		if pooled, ok := conn.Conn.(stores.Pooled); ok {
			out[conn.store] = out[conn.store].Add(pooled.PoolUse())
		}
	}
	return out
}

// poolWaits is how long callers waited for connections between two such readings.
func poolWaits(before, after map[string]stores.PoolUse) (out []results.PoolWait) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		poolUse := after[name].Sub(before[name])
		out = append(out, results.PoolWait{Store: name, Taken: poolUse.Taken, Waited: poolUse.Waited,
			WaitNS: int64(poolUse.Wait)})
	}
	return out
}

// bounded is a store that can tell how many more connections it takes.
type bounded interface {
	// Room is how many more connections there may be, and the setting that bounds them,
	// e.g. "maxclients". known is false if the server does not tell.
	Room(ctx context.Context) (left int, setting string, known bool)
}
