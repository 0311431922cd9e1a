package localsync

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/strategytest"
	_ "github.com/quotabench/quotabench/strategies/ttlcounter"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestConformance(t *testing.T) { strategytest.Run(t, testkit.Strategy(t, "local-sync").Meta) }

// wire is a hook that does with each call of a script what at says.
type wire struct{ at func(send func() error) error }

func (*wire) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		send := func() error { return next(ctx, cmd) }
		if cmd.Name() != "evalsha" || w.at == nil {
			return send()
		}
		err := w.at(send)
		if err != nil {
			cmd.SetErr(err)
		}
		return err
	}
}

var errLost = errors.New("no reply")

// late is a clock that is ahead.
type late struct {
	clock.Wall
	ahead time.Duration
}

func (l *late) Now() time.Time { return l.Wall.Now().Add(l.ahead) }

// rig has instances over a Redis of their own. The limit is 5 in a window of an hour, of which
// half is over.
type rig struct {
	*testing.T
	wire   wire
	clock  late
	env    strategies.Env
	policy *quota.Policy
}

func newRig(t *testing.T) *rig {
	t.Helper()
	c := storetest.EmbeddedRedis(t).Client(redisstore.ClientOptions{Pool: 4})
	t.Cleanup(func() { _ = c.Close() })
	r := &rig{T: t}
	c.AddHook(&r.wire)
	r.env = strategies.Env{
		Clock: &r.clock, Clients: map[string]any{"redis": c}, Prefix: storetest.Prefix(t), Shared: new(strategies.Shared),
	}
	r.policy = &quota.Policy{Name: "p", Limit: 5, Unit: "requests", Window: quota.Window{
		Kind: quota.Fixed, Length: time.Hour,
		Timeline: quota.Timeline{Real: clock.Wall{}.Now(), Policy: time.Date(2031, time.March, 15, 12, 30, 0, 0, time.UTC)},
	}}
	return r
}

// open opens the next instance.
func (r *rig) open(strategy string) strategies.Strategy {
	r.Helper()
	list := testkit.Strategy(r, strategy)
	env := r.env
	env.Options = list.Options
	env.Rand = seed.Rand(1, seed.Instance, 1, uint64(r.env.Instances))
	env.Instance = r.env.Instances
	r.env.Instances++
	s, err := list.Open(r.Context(), env)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

func (r *rig) take(s strategies.Strategy, units int64) quota.Decision {
	r.Helper()
	d, err := s.Take(r.Context(), quota.Request{Subject: "u", Policy: r.policy, Units: units})
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// exhaust counts the units that are admitted one by one.
func (r *rig) exhaust(s strategies.Strategy) (n int64) {
	r.Helper()
	for r.take(s, 1).Admitted {
		n++
	}
	return n
}

// sync runs a round of the job.
func (r *rig) sync(s strategies.Strategy, want error) {
	r.Helper()
	if _, err := s.(*localSync).sync(r.Context()); !errors.Is(err, want) {
		r.Errorf("the round ends with %v, want %v", err, want)
	}
}

// counted checks what Redis has, and what is shown.
func (r *rig) counted(s strategies.Strategy, inRedis, shown int64) {
	r.Helper()
	l := s.(*localSync)
	key := l.key("u", r.policy, r.policy.Window.Label(r.policy.Window.At(r.clock.Now()).Index))
	n, err := l.redis.HGet(r.Context(), key, "used").Int64()
	if err != nil && !errors.Is(err, redis.Nil) || n != inRedis {
		r.Errorf("Redis has %d units (%v), want %d", n, err, inRedis)
	}
	got, err := l.Used(r.Context(), "u", r.policy)
	if err != nil || len(got) != 1 || got[0].Units != shown {
		r.Errorf("shown is %+v (%v), want %d units", got, err, shown)
	}
}

// TestLost: without a reply a push comes again and is added once, or is forgotten.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		lost             string
		arrives          bool // the push takes effect
		inRedis1, shown1 int64
		inRedis2, shown2 int64 // after the next round, before which 1 unit is admitted
	}{
		{"again", true, 3, 3, 3, 4},
		{"again", false, 0, 3, 3, 4},
		{"drop", true, 3, 3, 4, 4},
		{"drop", false, 0, 0, 1, 1},
	} {
		r := newRig(t)
		s := r.open("local-sync:lost=" + c.lost)
		r.take(s, 3)
		r.wire.at = func(send func() error) error {
			if c.arrives {
				if err := send(); err != nil {
					t.Error(err)
				}
			}
			return errLost
		}
		r.sync(s, errLost)
		r.counted(s, c.inRedis1, c.shown1)
		r.wire.at = nil
		r.take(s, 1)
		r.sync(s, nil)
		r.counted(s, c.inRedis2, c.shown2)
		if t.Failed() {
			t.Fatalf("%+v", c)
		}
		r.sync(s, nil)
		r.counted(s, c.shown2, c.shown2)
	}
}

// TestFates: whatever becomes of each of four pushes, units that were admitted are shown while
// they wait, and are added once when a push arrives.
func TestFates(t *testing.T) {
	testenv.Sequential(t)
	const fates, rounds = 4, 4
	for all := range fates * fates * fates * fates {
		r := newRig(t)
		r.policy.Limit = 100
		a := r.open("local-sync")
		b := r.open("local-sync")
		left := all
		for round := range rounds {
			fate := left % fates
			left /= fates
			r.wire.at = nil
			r.take(a, int64(1+round))
			r.take(b, 1)
			r.sync(b, nil)
			r.wire.at = func(send func() error) error {
				switch fate {
				case 1: // fails before it arrives
					return errLost
				case 2: // the reply is lost
					return errors.Join(send(), errLost)
				case 3: // the client library repeats it
					return errors.Join(send(), send())
				}
				return send()
			}
			want := error(nil)
			if fate == 1 || fate == 2 {
				want = errLost
			}
			r.sync(a, want)
			if got, err := a.(*localSync).Used(t.Context(), "u", r.policy); err != nil ||
				got[0].Units != []int64{2, 5, 9, 14}[round] {
				t.Fatalf("fates %o, round %d: shown is %+v (%v)", all, round, got, err)
			}
		}
		r.wire.at = nil
		r.sync(a, nil) // sends again
		r.sync(a, nil)
		r.counted(a, 14, 14)
		if t.Failed() {
			t.Fatalf("fates %o", all)
		}
	}
}

// TestFlush: what is admitted during a push goes with the next one, or is forgotten.
func TestFlush(t *testing.T) {
	for flush, want := range map[string]int64{"keep": 5, "kong": 3} {
		r := newRig(t)
		s := r.open("local-sync:flush=" + flush)
		r.take(s, 3)
		r.wire.at = func(send func() error) error {
			r.take(s, 1)
			err := send()
			r.take(s, 1)
			return err
		}
		r.sync(s, nil)
		r.wire.at = nil
		if n := r.exhaust(s); n != 5-want {
			t.Errorf("flush=%s: %d units are admitted after 5", flush, n)
		}
		r.sync(s, nil)
		r.counted(s, 5, 5)
		if n := s.(*localSync).forgotten.Load(); n != 5-want {
			t.Errorf("flush=%s: %d units are forgotten", flush, n)
		}
	}
}

// TestCold: a new instance asks what others have used, or begins at zero.
func TestCold(t *testing.T) {
	for cold, want := range map[string]int64{coldFetch: 2, coldZero: 5} {
		r := newRig(t)
		first := r.open("local-sync:cold=" + cold)
		r.take(first, 3)
		r.sync(first, nil)
		second := r.open("local-sync:cold=" + cold)
		if n := r.exhaust(second); n != want {
			t.Errorf("cold=%s: %d units are admitted after 3 by another instance", cold, n)
		}
		r.counted(first, 3, 3+want)
		r.sync(second, nil)
		r.counted(second, 3+want, 3+want)
	}
}

// TestHears: a round tells an instance what others have told Redis, also if it has nothing to
// tell itself.
func TestHears(t *testing.T) {
	for _, tells := range []bool{true, false} {
		r := newRig(t)
		a := r.open("local-sync")
		b := r.open("local-sync")
		r.take(a, 1)
		r.take(b, 4)
		if !tells {
			r.sync(a, nil)
			r.take(a, 5) // is rejected
		}
		r.sync(b, nil)
		r.sync(a, nil)
		if d := r.take(a, 1); d.Admitted || d.RetryAfter <= 0 || d.RetryAfter > time.Hour || d.Tier != quota.TierProcess {
			t.Errorf("all units are used, and the next one gets %+v", d)
		}
		r.counted(a, 5, 5)
	}
}

// TestWithoutRedis: who cannot ask begins at zero and says so, until Redis is there again.
func TestWithoutRedis(t *testing.T) {
	r := newRig(t)
	a := r.open("local-sync")
	b := r.open("local-sync")
	r.take(a, 5)
	r.sync(a, nil)
	r.wire.at = func(func() error) error { return errLost }
	for range 2 {
		if d := r.take(b, 1); !d.Admitted || !d.Degraded {
			t.Errorf("without Redis: %+v", d)
		}
	}
	r.wire.at = nil
	r.sync(b, nil)
	if d := r.take(b, 1); d.Admitted || d.Degraded {
		t.Errorf("with Redis again: %+v", d)
	}
	r.counted(b, 7, 7)
}

// TestMemoryIsBounded: a count goes after a period without requests, and after its window once
// Redis has the last units.
func TestMemoryIsBounded(t *testing.T) {
	r := newRig(t)
	s := r.open("local-sync")
	holds := func(want int) {
		t.Helper()
		if n := len(s.(*localSync).counts); n != want {
			t.Errorf("%d counts, want %d", n, want)
		}
	}
	r.take(s, 3)
	r.sync(s, nil)
	holds(1)
	r.sync(s, nil)
	holds(0)
	r.take(s, 1) // knows of the 3
	if n := r.exhaust(s); n != 1 {
		t.Errorf("%d more units after 4", n)
	}
	r.clock.ahead = time.Hour
	if n := r.exhaust(s); n != 5 {
		t.Errorf("%d units in the next window", n)
	}
	holds(2)
	r.sync(s, nil)
	r.counted(s, 5, 5)
	r.sync(s, nil)
	r.sync(s, nil)
	holds(0)
	r.clock.ahead = 0
	r.counted(s, 5, 5)
}

// TestWindowEndsMeanwhile: a request that asks for the count is decided in the window that it
// began in, however long the answer takes.
func TestWindowEndsMeanwhile(t *testing.T) {
	r := newRig(t)
	s := r.open("local-sync")
	r.wire.at = func(send func() error) error {
		r.clock.ahead += time.Hour
		return send()
	}
	if d := r.take(s, 2); !d.Admitted || d.Degraded || d.Remaining != 3 {
		t.Errorf("%+v", d)
	}
	r.counted(s, 0, 0)
	r.clock.ahead = 0
	r.counted(s, 0, 2)
}

// TestEveryRequestAsks: with a period of 0 the answers are those of incr-expire-atomic.
func TestEveryRequestAsks(t *testing.T) {
	r := newRig(t)
	r.policy.Limit = 20
	ours := []strategies.Strategy{}
	theirs := []strategies.Strategy{}
	for range 2 {
		ours = append(ours, r.open("local-sync:period=0s"))
		theirs = append(theirs, r.open("incr-expire-atomic"))
	}
	if jobs := ours[0].(*localSync).Jobs(); len(jobs) > 0 {
		t.Errorf("jobs %+v", jobs)
	}
	for i, units := range []int64{7, 8, 9, 3, 5, 1, 2, 1, 1, 1} {
		a := r.take(ours[i%2], units)
		b := r.take(theirs[i%2], units)
		a.RetryAfter = b.RetryAfter
		if a != b {
			t.Errorf("request %d, of %d units: %+v, and incr-expire-atomic says %+v", i, units, a, b)
		}
	}
	r.counted(ours[0], 20, 20)
}

// TestAllocatesNothing: a request that asks nobody allocates no memory.
func TestAllocatesNothing(t *testing.T) {
	r := newRig(t)
	s := r.open("local-sync")
	req := quota.Request{Subject: "u", Policy: r.policy, Units: 1}
	if n := testing.AllocsPerRun(20, func() {
		if _, err := s.Take(t.Context(), req); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestClose: what is left goes to Redis.
func TestClose(t *testing.T) {
	r := newRig(t)
	s := r.open("local-sync")
	r.take(s, 4)
	r.counted(s, 0, 4)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.counted(s, 4, 4)
}

// TestExplore: instances leak, and break no clause, in any order of commands and rounds and if a
// command of a caller or of a push fails. Only a crash, flush=kong, and with lost=drop a push that
// does not reach Redis, lose units.
func TestExplore(t *testing.T) {
	testenv.Sequential(t)
	search := func(options string, c explore.Config) *explore.Result {
		t.Helper()
		list := testkit.Strategy(t, "local-sync"+options)
		res, err := explore.Run(t.Context(), list, c)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	counts := []explore.Property{explore.Guarantee, explore.FalseReject, explore.Drift, explore.Negative, explore.TTL,
		explore.Stuck}
	for _, c := range []struct {
		options   string
		instances int
		rounds    int
		fault     quota.Fault
		want      explore.Property
	}{
		{"", 2, 2, quota.FaultLostReply, ""}, {"", 1, 2, quota.FaultOutage, ""}, {"", 2, 1, quota.FaultCrash, explore.Drift},
		{":lost=drop,cold=zero", 2, 1, quota.FaultLostReply, ""}, {":flush=kong", 1, 1, quota.FaultLostReply, explore.Drift},
		{"", 1, 2, quota.FaultRetry, ""}, {":lost=drop", 1, 1, quota.FaultOutage, explore.Drift},
	} {
		r := search(c.options, explore.Config{
			Instances: c.instances, Limit: 2, Faults: []quota.Fault{c.fault},
			Scope: explore.Scope{JobRounds: c.rounds, Asks: -1}, Properties: counts,
		})
		if c.want == "" && (len(r.Findings) > 0 || r.Capped != "") || c.want != "" && r.Found(c.want) == nil {
			t.Errorf("%s with %s: %+v %s", c.options, c.fault, r.Findings, r.Capped)
		}
	}
	for lost, leaks := range map[string]bool{"again": false, "drop": true} {
		r := search(":lost="+lost, explore.Config{
			Instances: 1, Limit: 1, Faults: []quota.Fault{quota.FaultLostReply}, Properties: []explore.Property{explore.Leak},
		})
		f := r.Found(explore.Leak)
		if (f != nil) != leaks || r.Capped != "" {
			t.Errorf("one instance that may lose the reply to a push, lost=%s: %+v %s", lost, f, r.Capped)
		}
		if f != nil && !slices.ContainsFunc(f.Steps, func(s results.Step) bool {
			return s.Event == codes.EventLostReply && s.Role == codes.RoleJob
		}) {
			t.Errorf("no push has lost its reply: %+v", f.Steps)
		}
	}
	leak := explore.Config{Properties: []explore.Property{explore.Leak}}
	if search("", leak).Found(explore.Leak) == nil {
		t.Error("two instances do not leak")
	}
	leak.Faults = []quota.Fault{quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultClock}
	if r := search(":period=0s", leak); len(r.Findings) > 0 {
		t.Errorf("with a period of 0: %+v", r.Findings)
	}
}
