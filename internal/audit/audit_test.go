package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/audit"
	"github.com/quotabench/quotabench/internal/clock"
	_ "github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// lab is a Redis of a test's own, whose figures are its own too, and a schema in PostgreSQL.
type lab struct {
	t     *testing.T
	redis *goredis.Client
	pool  *pgxpool.Pool
	// reader and rows are for the audit: Redis lets the one run nothing that writes, and PostgreSQL the other.
	reader *goredis.Client
	rows   *pgxpool.Pool
	shared strategies.Shared
}

func newLab(t *testing.T) *lab {
	t.Helper()
	storetest.Redis(t) // or skip
	s, err := redisstore.Open(t.Context(), "process", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, redis: s.Client(redisstore.ClientOptions{}), pool: storetest.PostgresPool(t)}
	t.Cleanup(func() { _ = l.redis.Close(); _ = s.Close() })
	acl := "ACL SETUSER reader on nopass ~* resetchannels -@all +@read +@connection +eval_ro +scan +dbsize +info"
	if err := l.redis.Do(t.Context(), words(acl)...).Err(); err != nil {
		t.Fatal(err)
	}
	o := *l.redis.Options()
	o.Username, o.Password = "reader", "any"
	l.reader = goredis.NewClient(&o)
	t.Cleanup(func() { _ = l.reader.Close() })
	if err := l.reader.Set(t.Context(), "planted", 1, 0).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Fatalf("the reader may write: %v", err)
	}
	cfg := l.pool.Config()
	cfg.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	if l.rows, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.rows.Close)
	return l
}

func words(command string) (out []any) {
	for _, w := range strings.Fields(command) {
		out = append(out, strings.Trim(w, `"`))
	}
	return out
}

func (l *lab) selection(name string) strategies.Selection {
	l.t.Helper()
	all, err := strategies.Parse(name)
	if err != nil {
		l.t.Fatal(err)
	}
	return all[0]
}

func policy(t *testing.T, name string) quota.Policy {
	t.Helper()
	p, err := quota.LookupPolicy(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// open opens an instance of the strategy as a service would, and provisions subjects with 10 units each.
func (l *lab) open(name string, p *quota.Policy, subjects ...quota.Subject) strategies.Strategy {
	l.t.Helper()
	sel := l.selection(name)
	s, err := sel.Open(l.t.Context(), strategies.Env{Clock: clock.Wall{}, Rand: rand.New(rand.NewPCG(1, 1)), Shared: &l.shared, //nolint:gosec // has to repeat
		Clients: map[string]any{"redis": l.redis, "postgres": l.pool}, Instances: 1, Options: sel.Options, Wake: func(string) {}})
	if err != nil {
		l.t.Fatal(err)
	}
	var grants []strategies.Grant
	for _, x := range subjects {
		grants = append(grants, strategies.Grant{Subject: x, Limit: p.Limit, Used: 10})
	}
	if err := s.(strategies.Provisioner).Provision(l.t.Context(), p, grants); err != nil {
		l.t.Fatal(err)
	}
	return s
}

var id uint64

func (l *lab) take(s strategies.Strategy, p *quota.Policy, subject quota.Subject, settles bool) quota.Reservation {
	l.t.Helper()
	id++
	return l.takeAgain(s, quota.Request{ID: id, Subject: subject, Policy: p, Units: 1, Settles: settles})
}

func (l *lab) takeAgain(s strategies.Strategy, q quota.Request) quota.Reservation {
	l.t.Helper()
	d, err := s.Take(l.t.Context(), q)
	if err != nil || !d.Admitted {
		l.t.Fatalf("%+v, %v", d, err)
	}
	return d.Reservation
}

func (l *lab) commit(s strategies.Strategy, r quota.Reservation) {
	l.t.Helper()
	if err := s.(strategies.Committer).Commit(l.t.Context(), r, 1); err != nil {
		l.t.Fatal(err)
	}
}

// run runs a job until it has nothing to do.
func (l *lab) run(s strategies.Strategy, job string) {
	l.t.Helper()
	for _, j := range s.(strategies.Jobber).Jobs() {
		for j.Name == job && (j.Pending == nil || j.Pending()) {
			if changed, err := j.Run(l.t.Context()); err != nil {
				l.t.Fatal(err)
			} else if !changed {
				break
			}
		}
	}
}

// pausing does something in the pause.
type pausing struct {
	clock.Wall
	do func()
}

func (p pausing) Sleep(context.Context, time.Duration) error { p.do(); return nil }

func (l *lab) audit(name string, p *quota.Policy, meanwhile ...func()) audit.Report {
	l.t.Helper()
	a := audit.Audit{Strategy: l.selection(name), Policy: *p, Redis: l.reader, Postgres: l.rows, Most: 1000, Clock: pausing{do: func() {
		for _, f := range meanwhile {
			f()
		}
	}}}
	r, err := a.Run(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// repair runs the commands that the report prints.
func (l *lab) repair(r audit.Report) {
	l.t.Helper()
	for _, d := range r.Differences {
		var err error
		if strings.HasPrefix(d.Repair, "UPDATE") {
			_, err = l.pool.Exec(l.t.Context(), d.Repair)
		} else {
			err = l.redis.Do(l.t.Context(), words(d.Repair)...).Err()
		}
		if err != nil {
			l.t.Fatalf("%s: %v", d.Repair, err)
		}
	}
}

// found is what a report says of mechanisms, and of subjects.
func found(r audit.Report) (out []string) {
	for _, m := range r.Mechanisms {
		out = append(out, fmt.Sprintf("%s: %+d in %d", m.Name, m.Units, m.Subjects))
	}
	for _, d := range r.Differences {
		out = append(out, fmt.Sprintf("%s %+d", d.Name, d.Units))
	}
	return out
}

func same(t *testing.T, r audit.Report, want ...string) {
	t.Helper()
	if got := found(r); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n%s", got, want, strings.Join(r.Evidence, "\n"))
	}
}

var tenants = []quota.Subject{"a", "b", "c", "d's", "e"}

// TestPlanted: what was planted comes back, to the unit and by its mechanism, and is gone once the commands have run that the
// audit prints. The audit itself reads as users who may not write.
func TestPlanted(t *testing.T) {
	t.Run("lost write-backs", func(t *testing.T) {
		l, p := newLab(t), policy(t, "agent-tokens")
		s := l.open("redis-hash:lag=0s,batch=256", &p, tenants...)
		for _, x := range tenants {
			l.take(s, &p, x, false)
		}
		l.run(s, "write-back")
		if r := l.audit("redis-hash", &p); len(r.Differences) > 0 || r.Looked != 5 || !slices.Equal(r.Stores, []audit.Sum{{"redis", 5, 55, 0}, {"postgres", 5, 55, 0}}) {
			t.Errorf("stores that agree: %+v", r)
		}
		gone := l.open("redis-hash:lag=0s", &p)
		for _, x := range []quota.Subject{"a", "a", "a", "d's", "d's", "d's", "d's"} { // whose queue ends with it
			l.take(gone, &p, x, false)
		}
		r := l.audit("redis-hash", &p)
		same(t, r, "lost write-back: +7 in 2", "d's +4", "a +3")
		l.repair(r)
		same(t, l.audit("redis-hash", &p))
	})
	t.Run("erased reservations", func(t *testing.T) {
		l, p := newLab(t), policy(t, "tenant-uploads")
		s := l.open("lua-reserve", &p, tenants...)
		under := []quota.Reservation{l.take(s, &p, "a", true), l.take(s, &p, "a", true), l.take(s, &p, "b", true)}
		l.run(s, "sync")
		for _, r := range under {
			l.commit(s, r)
		}
		r := l.audit("lua-reserve", &p)
		same(t, r, "erased reservation: -3 in 2", "a -2", "b -1")
		same(t, l.audit("lua-reserve:sync=0s", &p), "none that is known: -3 in 2", "a -2", "b -1") // it erases none
		l.repair(r)
		same(t, l.audit("lua-reserve", &p))
	})
	t.Run("double counts by retry", func(t *testing.T) {
		l, p := newLab(t), policy(t, "tenant-uploads")
		s := l.open("lua-reserve", &p, tenants...)
		for _, x := range []quota.Subject{"b", "d's"} {
			r := l.take(s, &p, x, true)
			l.takeAgain(s, r.Request) // its reply was lost
			l.commit(s, r)
		}
		r := l.audit("lua-reserve", &p)
		same(t, r, "unsettled reservation or double count by retry: +2 in 2", "b +1", "d's +1")
		l.repair(r)
		same(t, l.audit("lua-reserve", &p))
	})
	t.Run("expired keys", func(t *testing.T) {
		l, p := newLab(t), policy(t, "tenant-uploads")
		l.open("lua-reserve", &p, tenants...)
		for i, x := range tenants {
			life := time.Hour
			if i < 2 {
				life = time.Millisecond
			}
			l.redis.PExpire(t.Context(), "quota:tenant:"+string(x)+":used", life)
		}
		for l.redis.Exists(t.Context(), "quota:tenant:a:used", "quota:tenant:b:used").Val() > 0 {
			runtime.Gosched()
		}
		r := l.audit("lua-reserve", &p)
		same(t, r, "expiry: -20 in 2", "a -10", "b -10")
		if !slices.Contains(r.Evidence, "eviction is ruled out: evicted_keys is 0") || !slices.Contains(r.Evidence, "lost data is ruled out: agreeing is 3") {
			t.Errorf("%q", r.Evidence)
		}
		l.repair(r)
		same(t, l.audit("lua-reserve", &p))
	})
	t.Run("an emptied Redis", func(t *testing.T) {
		l, p := newLab(t), policy(t, "tenant-uploads")
		l.open("lua-reserve", &p, tenants...)
		l.redis.FlushAll(t.Context())
		same(t, l.audit("lua-reserve", &p), "lost data: -50 in 5", "a -10", "b -10", "c -10", "d's -10", "e -10")
	})
	t.Run("changes that a hardened ledger lacks", func(t *testing.T) {
		l, p := newLab(t), policy(t, "tenant-uploads")
		s := l.open("lua-reserve-hardened", &p, tenants...)
		l.take(s, &p, "c", true) // is under way, and no difference
		l.redis.HIncrBy(t.Context(), "quota:{tenant:a}:used", "stored", -4)
		same(t, l.audit("lua-reserve-hardened", &p), "lost write-back: -4 in 1", "a -4")
	})
}

// TestMoving: a difference that passes is none, and one whose stores still change is not explained by a loss alone.
func TestMoving(t *testing.T) {
	l, p := newLab(t), policy(t, "agent-tokens")
	late, lost := l.open("redis-hash:lag=0s", &p, tenants...), l.open("redis-hash:lag=0s", &p)
	l.take(late, &p, "a", false)
	l.take(lost, &p, "b", false)
	l.take(lost, &p, "c", false)
	r := l.audit("redis-hash", &p, func() { l.run(late, "write-back"); l.take(lost, &p, "c", false) })
	same(t, r, "lost write-back: +1 in 1", "lost write-back or under way: +1 in 1", "b +1", "c +1")
	if r.Passing != 1 || r.Differences[0].Repair == "" || r.Differences[1].Repair != "" {
		t.Errorf("%+v", r)
	}
	var text bytes.Buffer
	if err := audit.Text.Execute(&text, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5 of about 5 subjects", "1 differences had passed", "+1 to +9                            2              +2", "lost write-back or under way",
		"b: +1 (11 in Redis, 10 in PostgreSQL, expires in ",
		"    UPDATE quotas SET tokens_used = 11 WHERE agent_id = 'b';\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// TestBounds: of many subjects some are looked at, and a strategy in one store is compared with its limit and its window.
func TestBounds(t *testing.T) {
	l, p := newLab(t), policy(t, "user-links")
	for i := range 3000 {
		l.redis.Set(t.Context(), fmt.Sprintf("links:%d:%s", i, p.Window.Label(p.Window.At(clock.Wall{}.Now()).Index)), 21-i%2, 0)
	}
	l.redis.RPush(t.Context(), "links:list:"+p.Window.Label(p.Window.At(clock.Wall{}.Now()).Index), 1)
	a := audit.Audit{Strategy: l.selection("combine"), Policy: p, Redis: l.reader, Clock: clock.Wall{}, Most: 100, Key: "links:{subject}:{window}"}
	r, err := a.Run(t.Context())
	if err != nil || r.Looked != 100 || r.About < 2000 || r.About > 4000 || r.Endless < 99 || len(r.Differences) > 0 {
		t.Errorf("%v, %+v", err, r)
	}
	if n := r.Stores[0].Over; n < 25 || n > 75 || r.Stores[0].Units < 100*20 || len(r.Stores) != 1 {
		t.Errorf("%+v", r.Stores)
	}
}

// TestRefused: what would write fails, and what is not known is asked for.
func TestRefused(t *testing.T) {
	l, p := newLab(t), policy(t, "agent-tokens")
	l.open("redis-hash", &p, tenants...)
	if _, err := l.pool.Exec(t.Context(), "CREATE SEQUENCE planted"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ strategy, key, query, want string }{
		{"redis-hash", "", "SELECT agent_id, nextval('planted') FROM quotas", "read-only transaction"},
		{"redis-hash", "", "SELECT nothing", "read PostgreSQL"},
		{"combine", "", "SELECT 1", "give --key"},
		{"combine", "a:{subject}", "", "--query"},
	} {
		a := audit.Audit{Strategy: l.selection(c.strategy), Policy: p, Redis: l.redis, Postgres: l.pool, Clock: clock.Wall{}, Most: 10, Key: c.key, Query: c.query}
		if _, err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := l.redis.EvalRO(t.Context(), "return redis.call('SET', KEYS[1], 1)", []string{"planted"}).Err(); err == nil {
		t.Error("EVAL_RO writes")
	}
}

// TestKnowledge: all that strategies tell of their stores can be read.
func TestKnowledge(t *testing.T) {
	l := newLab(t)
	told := 0
	for _, m := range strategies.All() {
		if m.Audit == "" {
			continue
		}
		told++
		for _, p := range quota.Policies() {
			if m.ServesPolicy(&p) == nil {
				sel, _ := m.Select(nil)
				a := audit.Audit{Strategy: sel, Policy: p, Redis: l.reader, Clock: clock.Wall{}, Most: 1}
				if _, err := a.Run(t.Context()); err != nil || strings.ContainsAny(strings.ReplaceAll(a.Key, "{subject}", ""), "{") && m.Name != "lua-reserve-hardened" {
					t.Errorf("%s, %s: %q, %v", m.Name, p.Name, a.Key, err)
				}
			}
		}
	}
	if told < 4 {
		t.Errorf("%d strategies tell of their stores", told)
	}
}
