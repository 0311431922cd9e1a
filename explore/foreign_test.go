package explore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// The limiters here are written as published ones are: with the clock of package time,
// goroutines, mutexes and contexts of their own.

// foreign is a limiter that knows nothing of this module.
func foreign(t *testing.T, make func(env strategies.Env, p *quota.Policy) strategies.Allower,
	needs ...strategies.Need) strategies.Selection {
	t.Helper()
	m := strategies.FromFunc("foreign", []quota.Kind{quota.Fixed, quota.Rolling},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return make(env, p), nil
		})
	m.Needs, m.Foreign, m.Guarantee = needs, true, []quota.Clause{quota.Exactly(quota.FaultClock)}
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	return sel
}

func policy(t *testing.T, text string) quota.Policy {
	t.Helper()
	p, err := quota.ParsePolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// aligned counts in fixed windows of a minute by package time.
type aligned struct {
	mu    sync.Mutex
	start time.Time
	used  int64
	limit int64
	late  bool // the second that follows a window counts to it
}

func (a *aligned) Allow(context.Context, string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now() //nolint:forbidigo // what is tested is code that does this
	end := a.start.Add(time.Minute)
	if a.late && now.Unix() > end.Unix() || !a.late && !now.Before(end) {
		a.start = now.Truncate(time.Minute)
		a.used = 0
	}
	if a.used >= a.limit {
		return false, nil
	}
	a.used++
	return true, nil
}

func TestForeignClock(t *testing.T) {
	for _, late := range []bool{true, false} {
		sel := foreign(t, func(_ strategies.Env, p *quota.Policy) strategies.Allower {
			return &aligned{limit: p.Limit, late: late}
		})
		r, err := explore.Run(t.Context(), sel, explore.Config{
			Policy: policy(t, "1 request per fixed 1m"), Limit: 1, Instances: 1, Faults: []quota.Fault{quota.FaultClock},
		})
		if err != nil {
			t.Fatal(err)
		}
		f := r.Found(explore.FalseReject)
		if late != (f != nil) || late == strings.Contains(r.Claim, "false-reject") {
			t.Errorf("late %t: finding %+v, claim %q", late, f, r.Claim)
		}
		if f == nil {
			continue
		}
		again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{})
		if err != nil || !again.Broken {
			t.Errorf("the token gives %+v, %v", again, err)
		}
	}
}

// resetting forgets what was used on a goroutine of its own.
type resetting struct {
	mu    sync.Mutex
	used  int64
	limit int64
	stop  chan struct{}
}

func newResetting(limit int64, each time.Duration, stops bool) *resetting {
	r := &resetting{limit: limit, stop: make(chan struct{})}
	stop := r.stop
	if !stops {
		stop = nil
	}
	go func() {
		tick := time.NewTicker(each)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.mu.Lock()
				r.used = 0
				r.mu.Unlock()
			case <-stop:
				return
			}
		}
	}()
	return r
}

func (r *resetting) Allow(context.Context, string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used >= r.limit {
		return false, nil
	}
	r.used++
	return true, nil
}

func (r *resetting) Close() error {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
	return nil
}

// A goroutine that resets at the end of each window is correct, and one that resets more
// often is not.
func TestForeignGoroutine(t *testing.T) {
	if !testenv.Apart(t) {
		return
	}
	for each, leaks := range map[time.Duration]bool{time.Minute: false, 20 * time.Second: true} {
		var r *resetting
		sel := foreign(t, func(strategies.Env, *quota.Policy) strategies.Allower { return r })
		meta := *sel.Meta
		open := sel.Open
		meta.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			r = newResetting(1, each, true) // a window begins when instances are opened
			return open(ctx, env)
		}
		sel.Meta = &meta
		res, err := explore.Run(t.Context(), sel, explore.Config{
			Policy: policy(t, "1 request per fixed 1m"), Instances: 1, Faults: []quota.Fault{quota.FaultClock},
			Properties: []explore.Property{explore.Leak},
		})
		if err != nil {
			t.Fatal(err)
		}
		if f := res.Found(explore.Leak); leaks != (f != nil) || !leaks &&
			!strings.HasPrefix(res.Claim, "leak: no violation found in any schedule") {
			t.Errorf("each %v: %+v, claim %q", each, f, res.Claim)
		}
	}
}

// hasty admits whoever was held up for longer than a second.
type hasty struct{ rdb redis.UniversalClient }

func (h *hasty) Allow(ctx context.Context, key string) (bool, error) {
	began := time.Now() //nolint:forbidigo // what is tested is code that does this
	first, err := h.rdb.SetNX(ctx, key, 1, 0).Result()
	late := time.Since(began) > time.Second //nolint:forbidigo // likewise
	return first || late, err
}

// For how long calls of foreign code are held up is told, and goes into the bounds of clauses.
func TestForeignCallsThatAreHeldUp(t *testing.T) {
	testenv.Sequential(t)
	sel := foreign(t, func(env strategies.Env, _ *quota.Policy) strategies.Allower {
		return &hasty{strategies.Redis(env)}
	}, strategies.NeedRedis)
	sel.Guarantee = []quota.Clause{{
		Property: quota.PropertyLeak, Tolerates: []quota.Fault{quota.FaultClock}, Formula: "0, or 1 if a call is held up",
		Bound: func(p quota.Params) int64 { return min(1, int64(p.Pause/time.Second)) },
	}}
	r, err := explore.Run(t.Context(), sel, explore.Config{
		Policy: policy(t, "1 request per fixed 1m"), Limit: 1, Scope: explore.Scope{Asks: -1},
		Faults:     []quota.Fault{quota.FaultClock},
		Properties: []explore.Property{explore.Leak, explore.Guarantee},
	})
	if err != nil {
		t.Fatal(err)
	}
	if f := found(t, r, explore.Leak); f.Paused != 30001*time.Millisecond {
		t.Errorf("held up for %v: %s", f.Paused, words(f))
	}
	if f := r.Found(explore.Guarantee); f != nil {
		t.Errorf("the clause allows it: %s: %s", f.Detail, words(f))
	}
}

// lookThenAdd reads a counter and then raises it.
type lookThenAdd struct {
	mu    sync.Mutex
	rdb   redis.UniversalClient
	limit int64
	lock  bool // the mutex is held meanwhile
	aside bool // the commands come from another goroutine
}

func (c *lookThenAdd) Allow(_ context.Context, key string) (bool, error) {
	if c.lock {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	if !c.aside {
		return c.ask(key)
	}
	var ok bool
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		ok, err = c.ask(key)
	}()
	<-done
	return ok, err
}

func (c *lookThenAdd) ask(key string) (bool, error) {
	ctx := context.Background()
	n, err := c.rdb.Get(ctx, key).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	if n >= c.limit {
		return false, nil
	}
	if err := c.rdb.Incr(ctx, key).Err(); err != nil {
		return false, err
	}
	return true, c.rdb.Expire(ctx, key, time.Minute).Err()
}

// Commands without the caller's context, and from goroutines of the strategy's own, are
// steps like any others.
func TestForeignContext(t *testing.T) {
	for _, aside := range []bool{false, true} {
		sel := foreign(t, func(env strategies.Env, p *quota.Policy) strategies.Allower {
			return &lookThenAdd{rdb: strategies.Redis(env), limit: p.Limit, aside: aside}
		}, strategies.NeedRedis)
		r, err := explore.Run(t.Context(), sel, explore.Config{Policy: policy(t, "1 request per fixed 1m")})
		if err != nil {
			t.Fatal(err)
		}
		f := r.Found(explore.Leak)
		if f == nil || f.Units != 1 {
			t.Fatalf("aside %t: findings %+v", aside, r.Findings)
		}
		if again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{}); err != nil || again.Leak != 1 {
			t.Errorf("the token gives %+v, %v", again, err)
		}
	}
}

// A mutex that is held across a store call keeps other callers of the same instance
// waiting where no bubble sees it.
func TestForeignMutex(t *testing.T) {
	sel := foreign(t, func(env strategies.Env, p *quota.Policy) strategies.Allower {
		return &lookThenAdd{rdb: strategies.Redis(env), limit: p.Limit, lock: true}
	}, strategies.NeedRedis)
	cfg := explore.Config{Policy: policy(t, "1 request per fixed 1m"), Instances: 1}
	r, err := explore.Run(t.Context(), sel, cfg)
	var hung *explore.HungError
	if !errors.As(err, &hung) || !strings.Contains(hung.At, "sync.Mutex.Lock") ||
		!strings.Contains(hung.At, "foreign_test.go") ||
		!strings.Contains(err.Error(), "nothing is said of the limiter") {
		t.Errorf("error %v", err)
	}
	if r != nil && r.Claim != "" {
		t.Errorf("claims %s", r.Claim)
	}
	cfg.Instances = 2
	r, err = explore.Run(t.Context(), sel, cfg)
	if err != nil || r.Found(explore.Leak) == nil {
		t.Errorf("on two instances: %+v, %v", r, err)
	}
	// A caller that dies does not keep the mutex, which a deferred function unlocks.
	cfg.Faults = []quota.Fault{quota.FaultCrash}
	cfg.Properties = []explore.Property{explore.TTL, explore.Stuck}
	r, err = explore.Run(t.Context(), sel, cfg)
	if err != nil || r.Claim == "" {
		t.Errorf("with a crash: %+v, %v", r, err)
	}
}

// A pool of the strategy's own reaches the store past the client that it was given.
func TestForeignPool(t *testing.T) {
	sel := foreign(t, func(env strategies.Env, p *quota.Policy) strategies.Allower {
		return &lookThenAdd{rdb: redis.NewClient(strategies.Redis(env).(*redis.Client).Options()), limit: p.Limit}
	}, strategies.NeedRedis)
	r, err := explore.Run(t.Context(), sel, explore.Config{Policy: policy(t, "1 request per fixed 1m")})
	if !errors.Is(err, explore.ErrUnseen) || r.Claim != "" {
		t.Fatalf("error %v, claim %q", err, r.Claim)
	}
	if got := withheldCodes(r); len(got) == 0 || got[0] != witness.OtherClient {
		t.Errorf("withheld for %v", r.Withheld)
	}
}

// lasting admits one caller of each instance, by how long a key lives: that is for whoever wrote it last to say.
type lasting struct {
	rdb              redis.UniversalClient
	writes, admitted time.Duration
	asked            atomic.Bool
}

func (l *lasting) Allow(ctx context.Context, key string) (bool, error) {
	if l.asked.Swap(true) {
		return false, nil
	}
	if err := l.rdb.Set(ctx, key, 1, l.writes).Err(); err != nil {
		return false, err
	}
	left, err := l.rdb.TTL(ctx, key).Result()
	return left == l.admitted, err
}

// States that differ in how long a key lives are two, whichever of them comes first.
func TestForeignTimeToLive(t *testing.T) {
	for _, admitted := range []time.Duration{time.Hour, 2 * time.Hour} {
		sel := foreign(t, func(env strategies.Env, _ *quota.Policy) strategies.Allower {
			return &lasting{rdb: strategies.Redis(env), writes: time.Duration(env.Instance+1) * time.Hour, admitted: admitted}
		}, strategies.NeedRedis)
		r, err := explore.Run(t.Context(), sel,
			explore.Config{Policy: policy(t, "1 request per fixed 1m"), Properties: []explore.Property{explore.Leak}})
		if r == nil || r.Found(explore.Leak) == nil {
			t.Errorf("%v: %+v, %v", admitted, r, err)
		}
	}
}

// patient tries again after a pause, as optimistic limiters do.
type patient struct {
	rdb   redis.UniversalClient
	limit int64
}

func (p *patient) Allow(ctx context.Context, key string) (bool, error) {
	for range 20 {
		ok, err := p.rdb.SetNX(ctx, key+":lock", 1, time.Minute).Result()
		if err != nil {
			return false, err
		}
		if !ok {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		n, err := p.rdb.Incr(ctx, key).Result()
		if err := errors.Join(err, p.rdb.Expire(ctx, key, time.Minute).Err(), p.rdb.Del(ctx, key+":lock").Err()); err != nil {
			return false, err
		}
		return n <= p.limit, nil
	}
	return false, errors.New("the lock is held")
}

// A sleeper is woken by time that passes, which is no fault if nothing else is left.
func TestForeignSleep(t *testing.T) {
	sel := foreign(t, func(env strategies.Env, p *quota.Policy) strategies.Allower {
		return &patient{strategies.Redis(env), p.Limit}
	}, strategies.NeedRedis)
	r, err := explore.Run(t.Context(), sel,
		explore.Config{Policy: policy(t, "1 request per fixed 1m"),
			Properties: []explore.Property{explore.Leak, explore.Stuck}})
	if err != nil || len(r.Findings) > 0 ||
		!strings.HasPrefix(r.Claim, "leak, stuck: no violation found in any schedule") {
		t.Errorf("%+v, %v", r, err)
	}
}

// sender sends its one command from a goroutine and waits for it, as many libraries do to
// give up when a context ends.
type sender struct {
	rdb   redis.UniversalClient
	limit int64
	loses bool // the reply
}

func (s *sender) Allow(ctx context.Context, key string) (bool, error) {
	reply := make(chan int64)
	go func() {
		n := s.rdb.Incr(ctx, key).Val()
		if !s.loses {
			reply <- n
		}
	}()
	return <-reply <= s.limit, nil
}

// Whoever waits for a command of a goroutine of its own is not stuck as long as that has
// not been carried out.
func TestForeignSender(t *testing.T) {
	if !testenv.Apart(t) {
		return
	}
	for _, loses := range []bool{false, true} {
		sel := foreign(t, func(env strategies.Env, p *quota.Policy) strategies.Allower {
			return &sender{strategies.Redis(env), p.Limit, loses}
		}, strategies.NeedRedis)
		r, err := explore.Run(t.Context(), sel, explore.Config{
			Policy: policy(t, "1 request per fixed 1m"), Clients: 1, Faults: []quota.Fault{quota.FaultClock},
			Properties: []explore.Property{explore.Stuck},
		})
		if err != nil {
			t.Fatal(err)
		}
		if found := r.Found(explore.Stuck); (found != nil) != loses {
			t.Errorf("a reply is lost: %t; findings %+v, claim %q", loses, r.Findings, r.Claim)
		}
	}
}

// Goroutines that do not end with Close leave a bubble behind for each schedule, and no
// wrong verdict.
func TestForeignLeftover(t *testing.T) {
	if !testenv.Apart(t) {
		return
	}
	sel := foreign(t, func(_ strategies.Env, p *quota.Policy) strategies.Allower {
		return newResetting(p.Limit, time.Second, false)
	})
	cfg := explore.Config{Policy: policy(t, "1 request per rolling 1m"), Limit: 1, Instances: 1,
		Faults: []quota.Fault{quota.FaultClock}, Properties: []explore.Property{explore.Leak}}
	r, err := explore.Run(t.Context(), sel, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Runs == 0 || r.Claim == "" && r.Found(explore.Leak) == nil {
		t.Errorf("%+v", r)
	}
}

func TestForeignUnfit(t *testing.T) {
	sel := foreign(t, func(env strategies.Env, p *quota.Policy) strategies.Allower { return &aligned{limit: p.Limit} })
	_, err := explore.Run(t.Context(), sel,
		explore.Config{Policy: policy(t, "1 request per fixed 1m"), Skew: []time.Duration{time.Second}})
	var unfit *explore.UnfitError
	if !errors.As(err, &unfit) {
		t.Errorf("a skewed clock: %v", err)
	}
}

// A caller is not stuck if time passes and what it waits for is about to go on: another
// goroutine, or a caller that has what it needs.
func TestForeignWaitsForOthers(t *testing.T) {
	if !testenv.Apart(t) {
		return
	}
	for name, sel := range map[string]strategies.Selection{
		"goroutine": foreign(t, func(env strategies.Env, p *quota.Policy) strategies.Allower {
			return &lookThenAdd{rdb: strategies.Redis(env), limit: p.Limit, aside: true}
		}, strategies.NeedRedis),
		"caller": foreign(t, func(env strategies.Env, p *quota.Policy) strategies.Allower {
			return &oneByOne{c: &lookThenAdd{rdb: strategies.Redis(env), limit: p.Limit}, turn: make(chan struct{}, 1)}
		}, strategies.NeedRedis),
		"nobody": foreign(t, func(strategies.Env, *quota.Policy) strategies.Allower {
			return &oneByOne{turn: nil}
		}),
	} {
		r, err := explore.Run(t.Context(), sel, explore.Config{
			Policy: policy(t, "1 request per fixed 1m"), Instances: 1, Faults: []quota.Fault{quota.FaultClock},
			Properties: []explore.Property{explore.Stuck}, Bounds: explore.Bounds{MaxStates: 200, Preemptions: -1},
		})
		if err != nil {
			t.Fatal(err)
		}
		if stuck := r.Found(explore.Stuck) != nil; stuck != (name == "nobody") ||
			stuck == strings.HasPrefix(r.Claim, "stuck: no") {
			t.Errorf("%s: %+v, %s", name, r.Findings, r.Claim)
		}
	}
}

// oneByOne serves one caller at a time.
type oneByOne struct {
	c    *lookThenAdd
	turn chan struct{} // nobody's if it is nil
}

func (o *oneByOne) Allow(ctx context.Context, key string) (bool, error) {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	return o.c.Allow(ctx, key)
}
