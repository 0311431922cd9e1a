package replicated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// one unit of a standing quota.
var one = &quota.Policy{Name: "one", Limit: 1, Unit: "units"}

// opened makes an instance of a strategy with clients of the stores that it needs; hook
// is put into the one of the main Redis, if it is not nil.
func opened[S strategies.Strategy](t *testing.T, meta *strategies.Meta, given quota.Options, prefix string,
	hook redis.Hook) S {
	t.Helper()
	sel, err := meta.Select(given)
	if err != nil {
		t.Fatal(err)
	}
	env := strategies.Env{
		Clock: clock.Wall{}, Rand: seed.Rand(1, seed.Instance, 1, 0), Shared: new(strategies.Shared), Prefix: prefix,
		Instances: 1, Options: sel.Options, Clients: map[string]any{},
	}
	for _, need := range sel.Needs {
		c := storetest.Further(t, string(need)).(*redisstore.Store).Client(redisstore.ClientOptions{Pool: 8})
		t.Cleanup(func() { _ = c.Close() })
		env.Clients[string(need)] = c
		if need == strategies.NeedRedis && hook != nil {
			c.AddHook(hook)
		}
	}
	s, err := sel.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return s.(S)
}

func take(t *testing.T, s strategies.Strategy, subject string) (admitted bool, err error) {
	t.Helper()
	d, err := s.Take(t.Context(), quota.Request{ID: 1, Subject: quota.Subject(subject), Policy: one, Units: 1})
	return d.Admitted, err
}

func used(t *testing.T, v strategies.Viewer, subject string) int64 {
	t.Helper()
	r, err := v.Used(t.Context(), quota.Subject(subject), one)
	if err != nil {
		t.Fatal(err)
	}
	return r[0].Units
}

// TestShortWaits asks for more replicas than there are, which do not have the charge
// in time.
func TestShortWaits(t *testing.T) {
	for few, want := range map[string]struct {
		admitted bool
		used     int64
	}{fewError: {false, 1}, fewUndo: {false, 0}, fewAdmit: {true, 1}} {
		given := quota.Options{"replicas": "5", "timeout": "20ms", "few": few}
		s := opened[*redisWait](t, &redisWaitMeta, given, storetest.Prefix(t), nil)
		admitted, err := take(t, s, "short")
		if admitted != want.admitted || (err == nil) != want.admitted || err != nil &&
			!errors.Is(err, strategies.ErrPrescribed) {
			t.Errorf("%s: admitted %v, %v", few, admitted, err)
		}
		if n := used(t, s, "short"); n != want.used {
			t.Errorf("%s: %d units are taken, want %d", few, n, want.used)
		}
		if m := s.Measures()[0]; m.Value != 1 {
			t.Errorf("%s: %+v, want 1", few, m)
		}
		// A rejection has written nothing that a replica could lack.
		full := opened[*redisWait](t, &redisWaitMeta, given, storetest.Prefix(t), nil)
		if err := full.Provision(t.Context(), one, []strategies.Grant{{Subject: "full", Limit: 1, Used: 1}}); err != nil {
			t.Fatal(err)
		}
		if admitted, err := take(t, full, "full"); admitted || err != nil {
			t.Errorf("%s: over the limit: %v, %v", few, admitted, err)
		}
	}
}

// TestWaitConfirms takes a unit, and finds it in the replica without waiting for it.
func TestWaitConfirms(t *testing.T) {
	storetest.Redis(t) // or skip
	master, err := redisstore.Open(t.Context(), "process:replicas=1", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set := stores.NewSet()
	defer func() {
		if err := errors.Join(set.Close(), master.Close()); err != nil {
			t.Error(err)
		}
	}()
	d, err := stores.DriverOf("redis.replica")
	if err != nil {
		t.Fatal(err)
	}
	replica, err := d.Further(t.Context(),
		stores.Further{Name: "redis.replica", Main: master, MainSpec: "process:replicas=1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Add("redis.replica", replica); err != nil {
		t.Fatal(err)
	}
	sel, err := redisWaitMeta.Select(quota.Options{"timeout": "4s"}) // also if the machine is busy
	if err != nil {
		t.Fatal(err)
	}
	client := master.Client(redisstore.ClientOptions{Pool: 2})
	defer func() { _ = client.Close() }()
	s, err := sel.Open(t.Context(), strategies.Env{
		Clock: clock.Wall{}, Prefix: "p:", Instances: 1, Options: sel.Options,
		Clients: map[string]any{string(strategies.NeedReplicated): client},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := master.Admin().Do(t.Context(), "SCRIPT", "FLUSH").Err(); err != nil { // as after a restart
			t.Fatal(err)
		}
		if admitted, err := take(t, s, "s"); !admitted || err != nil {
			t.Fatalf("%v, %v", admitted, err)
		}
		key := s.(*redisWait).key(one, 0, "s")
		if n, err := replica.(*redisstore.Store).Admin().Get(t.Context(), key).Int(); err != nil || n != 1 {
			t.Fatalf("the replica has %d, %v, want 1", n, err)
		}
		if err := s.(*redisWait).Refund(t.Context(),
			quota.Reservation{Request: quota.Request{Subject: "s", Policy: one, Units: 1}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaitOnACluster kills the replica of the first master: charges that this master has
// are short of one, and those that others have are not.
func TestWaitOnACluster(t *testing.T) {
	testenv.Long(t)
	storetest.Redis(t) // or skip
	cluster, err := redisstore.Open(t.Context(), "process:cluster=3,replicas=1", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	}()
	sel, err := redisWaitMeta.Select(quota.Options{"timeout": "1s"})
	if err != nil {
		t.Fatal(err)
	}
	open := func(o stores.ConnOptions) (strategies.Strategy, *redis.ClusterClient, error) {
		c, err := cluster.Connect(t.Context(), storetest.Scope(t), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		s, err := sel.Open(t.Context(), strategies.Env{
			Clock: clock.Wall{}, Prefix: "p:", Instances: 1, Options: sel.Options,
			Clients: map[string]any{string(strategies.NeedReplicated): c.Client()},
		})
		client, _ := c.Client().(*redis.ClusterClient)
		return s, client, err
	}
	s, client, err := open(stores.ConnOptions{Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	pids, err := cluster.Processes(t.Context())
	if err != nil || len(pids) != 6 {
		t.Fatalf("processes %v, %v, want three masters' and three replicas'", pids, err)
	}
	replica, err := os.FindProcess(pids[3])
	if err == nil {
		err = replica.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	shorts := map[bool]int{}
	for i := range 24 {
		subject := fmt.Sprint("s", i)
		slot, err := client.ClusterKeySlot(t.Context(), s.(*redisWait).key(one, 0, quota.Subject(subject))).Result()
		if err != nil {
			t.Fatal(err)
		}
		ofFirst := slot < 16384/3
		admitted, err := take(t, s, subject)
		if admitted == ofFirst || errors.Is(err, strategies.ErrPrescribed) != ofFirst {
			t.Errorf("%s in slot %d: admitted %v, %v", subject, slot, admitted, err)
		}
		shorts[ofFirst]++
	}
	if shorts[true] == 0 || shorts[false] == 0 {
		t.Errorf("short by master: %v", shorts)
	}
}

// TestExplored: neither leaks under the faults that they tolerate, and a refund that is
// repeated makes them leak, which they do not promise otherwise.
func TestExplored(t *testing.T) {
	testenv.Sequential(t)
	names := []string{"redis-durable", "redis-wait"}
	for _, name := range testenv.Pick(names[:1], names) {
		sel := testkit.Strategy(t, name)
		res, err := explore.Run(t.Context(), sel,
			explore.Config{Faults: []quota.Fault{quota.FaultCrash, quota.FaultClock}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range res.Findings {
			if f.Property == explore.Leak || f.Property == explore.Guarantee {
				t.Errorf("%s: %s: %s", name, f.Property, f.Detail)
			}
		}
		scripts, err := explore.ParseScripts("take,refund;take,take,take")
		if err != nil {
			t.Fatal(err)
		}
		standing := testkit.Policy(t, "agent-sandboxes")
		res, err = explore.Run(t.Context(), sel, explore.Config{
			Policy: standing, Limit: 2, Scripts: scripts, Faults: []quota.Fault{quota.FaultLostReply},
			Properties: []explore.Property{explore.Leak, explore.Guarantee},
		})
		if err != nil {
			t.Fatal(err)
		}
		leaks := 0
		for _, f := range res.Findings {
			switch f.Property {
			case explore.Guarantee:
				t.Errorf("%s: %s", name, f.Detail)
			case explore.Leak:
				leaks++
			}
		}
		if leaks == 0 {
			t.Errorf("%s: a refund that is repeated gives nothing back twice", name)
		}
	}
}

// stall is a hook that stops the first GET until it is released.
type stall struct {
	once             sync.Once
	reached, release chan struct{}
}

func (*stall) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *stall) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "get" {
			s.once.Do(func() {
				close(s.reached)
				<-s.release
			})
		}
		return err
	}
}

func (*stall) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestHolderThatOutlivesItsLock stops a holder between its GET and its SET until its
// lock has expired and another one has used the quota up: both are admitted, which is
// what the guarantee excepts.
func TestHolderThatOutlivesItsLock(t *testing.T) {
	for expiry := 100 * time.Millisecond; ; expiry *= 2 {
		if waited := holderThatOutlives(t, expiry); waited || t.Failed() {
			return
		}
		if expiry > 20*time.Second {
			t.Fatal("the second holder did not wait for the lock")
		}
		t.Logf("the lock may have expired within %v, before anybody else asked for it", expiry)
	}
}

// holderThatOutlives is one attempt. It reports whether the second holder waited: on a
// slow machine the lock may be free again when it comes.
func holderThatOutlives(t *testing.T, expiry time.Duration) (waited bool) {
	t.Helper()
	given := quota.Options{"expiry": expiry.String(), "delay": "10ms", "tries": "10000"}
	hook := &stall{reached: make(chan struct{}), release: make(chan struct{})}
	prefix := storetest.Prefix(t)
	slow := opened[*redlock](t, &redlockMeta, given, prefix, hook)
	quick := opened[*redlock](t, &redlockMeta, given, prefix, nil)
	type outcome struct {
		admitted bool
		err      error
	}
	first := make(chan outcome)
	go func() {
		admitted, err := take(t, slow, "s")
		first <- outcome{admitted, err}
	}()
	<-hook.reached
	if admitted, err := take(t, quick, "s"); !admitted || err != nil {
		t.Errorf("the second holder: %v, %v", admitted, err)
	}
	close(hook.release)
	if o := <-first; !o.admitted || o.err != nil {
		t.Errorf("the holder that was late: %+v", o)
	}
	if n := used(t, quick, "s"); n != 1 {
		t.Errorf("%d units are counted, want 1 of the 2 that were admitted", n)
	}
	if slow.late.Load() != 1 {
		t.Error("the holder did not notice that its lock had expired")
	}
	return quick.retries.Load() > 0
}

// refused lets a client fail at everything.
type refused struct{}

func (refused) DialHook(next redis.DialHook) redis.DialHook { return next }

func (refused) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return errors.New("refused") }
}

func (refused) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// patient is an expiry that no step outlives on a slow machine. A server may take a
// twentieth of it to answer.
const patient = "1h"

// TestMajority: a lock over three survives the loss of one, and not of two.
func TestMajority(t *testing.T) {
	for lost, works := range []bool{true, true, false} {
		sel, err := redlockMeta.Select(quota.Options{"n": "3", "tries": "2", "delay": "1ms", "expiry": patient})
		if err != nil {
			t.Fatal(err)
		}
		env := strategies.Env{Clock: clock.Wall{}, Rand: seed.Rand(1, seed.Instance, 1, 0), Prefix: storetest.Prefix(t),
			Instances: 1, Options: sel.Options, Clients: map[string]any{}}
		for i, need := range sel.Needs {
			c := storetest.Further(t, string(need)).(*redisstore.Store).Client(redisstore.ClientOptions{Pool: 2})
			t.Cleanup(func() { _ = c.Close() })
			if i > 0 && i <= lost {
				c.AddHook(refused{})
			}
			env.Clients[string(need)] = c
		}
		s, err := sel.Open(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		if admitted, err := take(t, s, "s"); admitted != works || (err == nil) != works {
			t.Errorf("%d of 3 lost: admitted %v, %v", lost, admitted, err)
		}
	}
}

// TestLockThatIsHeld is an error of the algorithm, counted.
func TestLockThatIsHeld(t *testing.T) {
	s := opened[*redlock](t, &redlockMeta, quota.Options{"n": "1", "tries": "3", "delay": "1ms", "expiry": patient},
		storetest.Prefix(t), nil)
	unlock, err := s.lock(t.Context(), one, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(t, s, "s"); !errors.Is(err, strategies.ErrPrescribed) {
		t.Errorf("%v", err)
	}
	unlock()
	if admitted, err := take(t, s, "s"); !admitted || err != nil {
		t.Errorf("once it is free: %v, %v", admitted, err)
	}
	got := map[string]int64{}
	for _, m := range s.Measures() {
		got[m.Name] = m.Value
	}
	if got["lock-retries"] != 2 || got["no-lock"] != 1 || got["lock-wait"] <= 0 {
		t.Errorf("%v", got)
	}
}
