// Package strategytest is the conformance suite of strategies. It knows no
// strategy by name: what it asks for follows from the [strategies.Meta] and from
// the optional interfaces that an instance implements.
//
// A strategy of one's own is tested with
//
//	func TestConformance(t *testing.T) {
//		meta, err := strategies.Lookup("my-strategy")
//		if err != nil {
//			t.Fatal(err)
//		}
//		strategytest.Run(t, meta)
//	}
//
// which tests it on an embedded Redis, and on a PostgreSQL of the test's own if it
// needs one; a redis-server is [Servers]. See the package storetest for what is
// skipped if PostgreSQL is missing.
//
// What is asked for:
//
//   - the Meta is complete and true, and every value of every option opens;
//   - one caller is admitted up to the limit and no further. A leak clause may
//     allow more, and a false-reject clause fewer; without a leak clause nothing
//     is said about more, but without a false-reject clause there may not be
//     fewer. The exception is a documented strategy that is no Provisioner, whose
//     record may never say where its quota comes from;
//   - if each process counts for itself, two admit two limits;
//   - a clause promises something: its bound can be broken;
//   - subjects do not share their quota, however many others come, nor do windows, as
//     far as the Meta says that they are reset;
//   - a request that is rejected is charged nothing, unless the Meta says that attempts
//     are counted, and one that is larger than the limit is rejected;
//   - refunds, commits, set-up and readings do what their interfaces say;
//   - many callers at once break no declared clause, judged by
//     [github.com/quotabench/quotabench/oracle] with the parameters that
//     were measured;
//   - the strategy works where it can be seen: through the clients that it was
//     given, with its callers' contexts, by its clock. What the suite did not see
//     it does not call right;
//   - a caller that gave up gets an error, a decision without the store is marked
//     Degraded, and nothing keeps running after Close.
package strategytest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// Stores are what strategies are tested on.
type Stores struct {
	// Redis returns a client that the caller has to itself, to break as it likes,
	// and closes it when the test ends. Keys begin with a prefix that no other
	// test has. nil: strategies that need Redis are skipped.
	Redis func(testing.TB) *redis.Client
	// Alone says that nothing else connects to the Redis server while the suite
	// runs. A connection that is not the client's is then the strategy's own, which
	// it may not have. Without it, only a strategy that leaves the client unused is
	// noticed.
	Alone bool
	// Postgres returns a pool that the caller has to itself, over an empty schema
	// of its own, and clears both away when the test ends. nil: strategies that
	// need PostgreSQL are skipped, and those that need a source get the model.
	Postgres func(testing.TB) *pgxpool.Pool
	// Clients return clients of other stores, by the name by which a strategy needs
	// them, e.g. "redis.replica". The suite sees the commands of Redis clients. A strategy
	// that needs one that is not here is skipped.
	Clients map[string]func(testing.TB) any
	// Break makes every store of Clients fail, for clients that were handed out, or
	// mends them. Without it strategies that need one of them are not tested in an
	// outage.
	Break func(broken bool)
	// Policy for the tests of a strategy that serves its kind of windows in none of the usual
	// policies, nor in one that is registered. Its limit is replaced. It may have a bucket of slow
	// refill, and windows of 20 s or more.
	Policy quota.Policy
	// Second is a further window of the strategy's own, by which it may reject requests that the policy admits; the zero
	// value is none. What is rejected is no error then. It has no meaning for a strategy whose requests name their second
	// window.
	Second quota.Policy

	// advance moves the time of all stores ahead; nil if that cannot be done.
	advance func(time.Duration)
}

// embedded reports whether there are no stores but those that are always there.
func (s Stores) embedded() bool {
	return s.Redis == nil && s.Postgres == nil && s.Clients == nil && s.Policy.Limit > 0
}

// lacks reports the first of the further stores in the list that is not here. A
// replica of the database of record has a model if that has one.
func (s Stores) lacks(list []strategies.Need) (need strategies.Need, lacks bool) {
	for _, need := range list {
		if slices.Contains(needs, need) || s.Clients[string(need)] != nil || need == strategies.NeedReplica &&
			s.Postgres == nil {
			continue
		}
		return need, true
	}
	return "", false
}

// Run tests one strategy on the stores, or on [embeddedStores] if none are given, or nothing but a
// policy. A [strategies.Library] of which no policy is served that could be tested is skipped: what Serves
// refuses, it need not do.
func Run(t *testing.T, meta *strategies.Meta, stores ...Stores) {
	t.Helper()
	if len(stores) == 0 {
		stores = []Stores{embeddedStores(t, meta)}
	}
	for _, s := range stores {
		if s.embedded() {
			given := s
			s = embeddedStores(t, meta)
			s.Policy = given.Policy
			s.Second = given.Second
		}
		if meta.Form == strategies.Library && len(meta.Kinds) > 0 && len(served(meta, s)) == 0 {
			t.Skipf("not tested: %s serves no policy that is known with limits of %d and %d, and a window of %v or more: if "+
				"it is right with such limits, have its Serves take them, and register a policy by quota.RegisterPolicy", meta.Name,
				smallest, largest, wholeRate)
		}
		for _, check := range checks {
			t.Run(check.name, func(t *testing.T) {
				recorder := observe(t, func(tb testing.TB) { check.run(tb, meta, s) })
				if text := recorder.text(); text != "" {
					t.Log(text)
				}
				switch {
				case recorder.Failed():
					t.Fail()
				case recorder.skipped:
					t.SkipNow()
				}
			})
		}
	}
}

// RunAll tests every registered strategy on the stores that the function gives
// it. An empty registry fails: it means that an import is missing.
func RunAll(t *testing.T, stores func(*testing.T, *strategies.Meta) Stores) {
	t.Helper()
	all := strategies.All()
	notEmpty(t, all)
	for _, meta := range all {
		t.Run(meta.Name, func(t *testing.T) { Run(t, meta, stores(t, meta)) })
	}
}

func notEmpty(tb testing.TB, all []*strategies.Meta) {
	tb.Helper()
	if len(all) == 0 {
		tb.Fatal("no strategy is registered: import strategies/all, or your own")
	}
}

// check is one part of the suite. It skips what does not concern the strategy.
type check struct {
	name string
	run  func(testing.TB, *strategies.Meta, Stores)
}

var checks = []check{
	{"meta", checkMeta},
	{"options", checkOptions},
	{"clock", checkClock},
	{"sequential", checkSequential},
	{"per-process", checkPerProcess},
	{"costs", checkCosts},
	{"subjects", checkSubjects},
	{"others", checkOthers},
	{"rejected", checkRejected},
	{"next-window", checkNextWindow},
	{"rolling", checkRolling},
	{"provision", checkProvision},
	{"limit", checkLimit},
	{"refund", checkRefund},
	{"double-refund", checkDoubleRefund},
	{"commit", checkCommit},
	{"used", checkUsed},
	{"jobs", checkJobs},
	{"cancelled", checkCancelled},
	{"outage", checkOutage},
	{"close", checkClose},
	{"concurrent", checkConcurrent},
	{"at-once", checkAtOnce},
	{"concurrent-refunds", checkConcurrentRefunds},
}

// embeddedStores returns the stores that are always there for a strategy: a Redis in
// this process, and the model of PostgreSQL. Only a strategy that needs PostgreSQL
// itself gets a server, see [storetest.Postgres].
func embeddedStores(t testing.TB, meta *strategies.Meta) Stores {
	t.Helper()
	redis := storetest.EmbeddedRedis(t)
	stores := Stores{Redis: clients(redis), advance: redis.Advance}
	if meta.NeedsStore(strategies.NeedPostgres) {
		stores.Postgres = pools(storetest.Postgres(t))
		stores.advance = nil
	}
	return stores
}

// Servers returns a redis-server, a PostgreSQL and further Redis servers, as far as the
// strategy needs them, with any options. Servers are started once for the tests of a
// package, which stops them by [storetest.Main]. If one is missing, the test is
// skipped.
func Servers(t testing.TB, meta *strategies.Meta) Stores {
	t.Helper()
	var stores Stores
	if slices.Contains(allNeeds(meta), strategies.NeedRedis) {
		stores.Redis = clients(storetest.Redis(t))
	}
	if meta.NeedsStore(strategies.NeedPostgres) || meta.NeedsStore(strategies.NeedSource) {
		stores.Postgres = pools(storetest.Postgres(t))
	}
	stores.Clients = map[string]func(testing.TB) any{}
	const second = "postgres.2" // a schema of its own is a database of its own here
	if meta.NeedsStore(second) {
		open := pools(storetest.Postgres(t))
		stores.Clients[second] = func(tb testing.TB) any { return open(tb) }
	}
	for _, need := range allNeeds(meta) {
		if need != strategies.NeedRedis && strings.HasPrefix(string(need), string(strategies.NeedRedis)+".") {
			stores.Clients[string(need)] = func(tb testing.TB) any {
				return clients(storetest.Further(tb, string(need)).(*redisstore.Store))(tb)
			}
		}
	}
	return stores
}

// allNeeds are what a strategy needs with its default options, and with each value of
// an option that has a list of them.
func allNeeds(meta *strategies.Meta) []strategies.Need {
	out := slices.Clone(meta.Needs)
	add := func(given quota.Options) {
		if sel, err := meta.Select(given); err == nil {
			out = append(out, sel.Needs...)
		}
	}
	add(nil)
	for _, option := range meta.Options {
		for _, text := range option.Values {
			add(quota.Options{option.Name: text})
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func clients(server *redisstore.Store) func(testing.TB) *redis.Client {
	return func(tb testing.TB) *redis.Client {
		client := server.Client(redisstore.ClientOptions{Pool: 16})
		tb.Cleanup(func() {
			if err := client.Close(); err != nil {
				tb.Error(err)
			}
		})
		return client
	}
}

func pools(server *pgstore.Store) func(testing.TB) *pgxpool.Pool {
	return func(tb testing.TB) *pgxpool.Pool {
		pool, err := server.Pool(tb.Context(), pgstore.PoolOptions{Schema: storetest.Schema(tb, server), Size: 8})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(pool.Close)
		return pool
	}
}
