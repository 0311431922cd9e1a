package combine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// wire is a hook that counts calls of the script, from 1, and does with them what at says.
type wire struct {
	calls atomic.Int64
	at    func(call int64, send func() error) error
}

func (*wire) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		send := func() error { return next(ctx, cmd) }
		if cmd.Name() != "evalsha" {
			return send()
		}
		call := w.calls.Add(1)
		if w.at == nil {
			return send()
		}
		err := w.at(call, send)
		if err != nil {
			cmd.SetErr(err)
		}
		return err
	}
}

var errLost = errors.New("no reply")

// rig is an instance over a Redis of its own.
type rig struct {
	*combine
	t      *testing.T
	wire   *wire
	policy *quota.Policy
	ids    uint64
}

// onBoth runs a test on miniredis and on a redis-server.
func onBoth(t *testing.T, lost string, test func(r *rig)) {
	t.Helper()
	run := func(server func(testing.TB) *redisstore.Store) func(*testing.T) {
		return func(t *testing.T) {
			c := server(t).Client(redisstore.ClientOptions{Pool: 4})
			t.Cleanup(func() { _ = c.Close() })
			r := &rig{t: t, wire: &wire{},
				policy: &quota.Policy{Name: "p", Limit: 10, Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}}}
			c.AddHook(r.wire)
			s, err := open(t.Context(), strategies.Env{
				Clock: clock.Wall{}, Clients: map[string]any{"redis": c}, Prefix: storetest.Prefix(t), Instances: 1,
				Rand: seed.Rand(1, seed.Instance, 1, 0), Options: quota.Options{"lost": lost},
			})
			if err != nil {
				t.Fatal(err)
			}
			r.combine = s.(*combine)
			test(r)
		}
	}
	t.Run("embedded", run(storetest.EmbeddedRedis))
	t.Run("server", run(storetest.Redis))
}

// answer is what a caller got.
type answer struct {
	quota.Decision
	err error
}

// ask has a caller of its own ask for units, and returns once that is in the queue or done.
func (r *rig) ask(ctx context.Context, units int64) <-chan answer {
	r.t.Helper()
	r.ids++
	req := quota.Request{ID: r.ids, Subject: "u1", Policy: r.policy, Units: units}
	out := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("panic: %v", p)
			}
			out <- a
		}()
		a.Decision, a.err = r.Take(ctx, req)
	}()
	r.until(func() bool { return r.state(req.ID) != nil || len(out) > 0 })
	return out
}

// state is how far the caller with the request's ID has come; nil if it is not in the queue.
func (r *rig) state(id uint64) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.queues[family.Account{Policy: "p", Subject: "u1"}]; q != nil {
		for _, c := range q.callers {
			if c.id == id {
				return new(c.state)
			}
		}
	}
	return nil
}

func (r *rig) until(so func() bool) {
	for !so() {
		runtime.Gosched()
	}
}

// hold has the script's first call wait until what it returns is called, and returns when
// its caller has sent it.
func (r *rig) hold() (first <-chan answer, release func()) {
	gate := make(chan struct{})
	then := r.wire.at
	r.wire.at = func(call int64, send func() error) error {
		if call == 1 {
			<-gate
		}
		if then != nil {
			return then(call, send)
		}
		return send()
	}
	first = r.ask(r.t.Context(), 1)
	r.until(func() bool { return r.wire.calls.Load() == 1 })
	return first, func() { close(gate) }
}

func (r *rig) used(want int64) {
	r.t.Helper()
	got, err := r.Used(r.t.Context(), "u1", r.policy)
	if err != nil || got[0].Units != want {
		r.t.Errorf("%+v is used (%v), want %d units", got, err, want)
	}
}

func (r *rig) measure(name string) int64 {
	r.t.Helper()
	for _, m := range r.Measures() {
		if m.Name == name {
			return m.Value
		}
	}
	r.t.Fatalf("no figure is called %s", name)
	return 0
}

// atRest checks that no caller is left in a queue, and no queue.
func (r *rig) atRest() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queues) > 0 {
		r.t.Errorf("%d queues are left", len(r.queues))
	}
}

// TestEachIsAnswered: requests of one batch are decided in the order of arrival, and a
// large one that does not fit leaves its room to the small ones behind it.
func TestEachIsAnswered(t *testing.T) {
	onBoth(t, lostError, func(r *rig) {
		first, release := r.hold()
		var got []<-chan answer
		wants := []quota.Decision{
			{Admitted: true, Remaining: 5}, {Remaining: 5}, {Admitted: true, Remaining: 2}, {Remaining: 2}, {Admitted: true},
		}
		for _, units := range []int64{4, 6, 3, 5, 2} {
			got = append(got, r.ask(t.Context(), units))
		}
		release()
		if a := <-first; a.err != nil || !a.Admitted || a.Remaining != 9 {
			t.Errorf("the first caller got %+v", a)
		}
		for i, want := range wants {
			a := <-got[i]
			if retry := a.RetryAfter > 0 && a.RetryAfter <= time.Hour; retry == want.Admitted {
				t.Errorf("caller %d is to wait for %v", i, a.RetryAfter)
			}
			a.RetryAfter = 0
			want.Tier = quota.TierRedis
			if a.err != nil || a.Decision != want {
				t.Errorf("caller %d got %+v, want %+v", i, a, want)
			}
		}
		r.used(10)
		if n := r.wire.calls.Load(); n != 2 {
			t.Errorf("%d calls of the script, want 2", n)
		}
		r.atRest()
	})
}

// TestFewCalls: two hundred callers who ask at once take two calls.
func TestFewCalls(t *testing.T) {
	onBoth(t, lostError, func(r *rig) {
		const callers = 200
		first, release := r.hold()
		got := []<-chan answer{first}
		for range callers - 1 {
			got = append(got, r.ask(t.Context(), 1))
		}
		release()
		admitted := 0
		for _, c := range got {
			if a := <-c; a.err != nil {
				t.Error(a.err)
			} else if a.Admitted {
				admitted++
			}
		}
		if n := r.wire.calls.Load(); n != 2 || admitted != 10 {
			t.Errorf("%d calls of the script admitted %d of %d, want 2 and 10", n, admitted, callers)
		}
		if n, most := r.measure("batches"), r.measure("largest-batch"); n != 2 || most != callers-1 {
			t.Errorf("%d batches, %d callers in the largest; want 2 and %d", n, most, callers-1)
		}
	})
}

// TestOtherLimit: a caller with another limit goes with a batch of its own.
func TestOtherLimit(t *testing.T) {
	onBoth(t, lostError, func(r *rig) {
		_, release := r.hold()
		a := r.ask(t.Context(), 1)
		raised := *r.policy
		raised.Limit = 20
		r.policy = &raised
		b := r.ask(t.Context(), 15)
		release()
		if x, y := <-a, <-b; x.Remaining != 8 || !y.Admitted || y.Remaining != 3 || r.wire.calls.Load() != 3 {
			t.Errorf("%+v, %+v in %d calls; want 8 and 3 units left, and 3 calls", x, y, r.wire.calls.Load())
		}
	})
}

// TestLost: the reply to the second call gets lost. With lost=error all callers of its batch
// get an error and the units stay charged; with lost=again they get their decisions, and are
// charged once. If all replies get lost, they get errors then, too.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		lost           string
		losses         int64
		fails          bool
		repeats, calls int64
	}{{lostError, 1, true, 0, 2}, {lostAgain, 1, false, 1, 3}, {lostAgain, 2, false, 2, 4}, {lostAgain, 9, true, 2, 4}} {
		t.Run(fmt.Sprintf("%s/%d", c.lost, c.losses), func(t *testing.T) {
			onBoth(t, c.lost, func(r *rig) {
				r.wire.at = func(call int64, send func() error) error {
					if err := send(); err != nil || call == 1 || call > 1+c.losses {
						return err
					}
					return errLost
				}
				first, release := r.hold()
				got := []<-chan answer{r.ask(r.t.Context(), 4), r.ask(r.t.Context(), 9), r.ask(r.t.Context(), 2)}
				release()
				if a := <-first; !a.Admitted {
					r.t.Errorf("the first caller got %+v", a)
				}
				for i, admitted := range []bool{true, false, true} {
					a := <-got[i]
					if c.fails && !errors.Is(a.err, errLost) || !c.fails && (a.err != nil || a.Admitted != admitted) {
						r.t.Errorf("caller %d got %+v", i, a)
					}
				}
				r.used(7)
				want := []int64{0, 0, c.repeats}
				if c.fails {
					want = []int64{1, 3, c.repeats}
				}
				figures := []int64{r.measure("lost-batches"), r.measure("lost-requests"), r.measure("repeats")}
				if !slices.Equal(figures, want) || r.wire.calls.Load() != c.calls {
					r.t.Errorf("lost batches, their requests and repeats: %d in %d calls, want %d in %d", figures, r.wire.calls.Load(),
						want, c.calls)
				}
				if a := <-r.ask(r.t.Context(), 1); c.losses < 9 && (!a.Admitted || a.Remaining != 2) {
					r.t.Errorf("the next batch got %+v, want 2 units left", a)
				}
			})
		})
	}
}

// TestCallerLeaves: a caller who gives up leaves at once, and the others do not notice. It is
// charged if its batch was on the way.
func TestCallerLeaves(t *testing.T) {
	onBoth(t, lostError, func(r *rig) {
		second := make(chan struct{})
		r.wire.at = func(call int64, send func() error) error {
			if call == 2 {
				<-second
			}
			return send()
		}
		first, release := r.hold()
		ctx, cancel := context.WithCancel(t.Context())
		waits := []<-chan answer{r.ask(ctx, 1), r.ask(ctx, 1)} // the first of them would send next
		late, endLate := context.WithCancel(t.Context())
		sends := r.ask(t.Context(), 2)
		leaves := r.ask(late, 3)
		cancel()
		for _, c := range waits {
			if a := <-c; !errors.Is(a.err, context.Canceled) || a.Admitted {
				t.Errorf("who waits and gives up gets %+v", a)
			}
		}
		release()
		<-first
		r.until(func() bool { return r.wire.calls.Load() == 2 })
		endLate()
		if a := <-leaves; !errors.Is(a.err, context.Canceled) {
			t.Errorf("who gives up while its batch is on the way gets %+v", a)
		}
		if n := r.measure("left-while-sent"); n != 1 {
			t.Errorf("%d left while their batch was on the way, want 1", n)
		}
		close(second)
		if a := <-sends; a.err != nil || !a.Admitted || a.Remaining != 7 {
			t.Errorf("the sender got %+v", a)
		}
		r.used(6)
		r.atRest()
	})
}

// TestSenderLeaves: the context of the sender ends while its batch is on the way, which the
// others do not notice; the sender stays until the reply.
func TestSenderLeaves(t *testing.T) {
	onBoth(t, lostError, func(r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		r.wire.at = func(call int64, send func() error) error {
			if call == 2 {
				cancel()
			}
			return send()
		}
		_, release := r.hold()
		sends := r.ask(ctx, 1)
		rides := r.ask(t.Context(), 1)
		release()
		if a := <-sends; a.err != nil || !a.Admitted {
			t.Errorf("the sender got %+v", a)
		}
		if a := <-rides; a.err != nil || !a.Admitted {
			t.Errorf("the other one got %+v", a)
		}
	})
}

// TestManyGiveUp: many callers at once, a third of whom may give up at any moment. All return,
// and what is used is what was admitted, and at most what those asked for who got an error.
func TestManyGiveUp(t *testing.T) {
	onBoth(t, lostError, func(r *rig) {
		r.policy.Limit = 500
		var admitted, unknown atomic.Int64
		var wg sync.WaitGroup
		for w := range 12 {
			wg.Go(func() {
				for i := range 40 {
					ctx, cancel := context.WithCancel(t.Context())
					units := int64(1 + (w+i)%3)
					if (w+i)%3 == 0 {
						go cancel()
					}
					d, err := r.Take(ctx, quota.Request{ID: uint64(100*w + i), Subject: "u1", Policy: r.policy, Units: units})
					cancel()
					switch {
					case err != nil && !errors.Is(err, context.Canceled):
						t.Error(err)
					case err != nil:
						unknown.Add(units)
					case d.Admitted:
						admitted.Add(units)
					}
				}
			})
		}
		wg.Wait()
		got, err := r.Used(t.Context(), "u1", r.policy)
		if err != nil {
			t.Fatal(err)
		}
		if n, least, most := got[0].Units, admitted.Load(), admitted.Load()+unknown.Load(); n < least || n > most || n > 500 {
			t.Errorf("%d units are used, want %d to %d and at most 500", n, least, most)
		}
		r.atRest()
	})
}

// deaf is a clock whose events are waited for in spite of the context's end.
type deaf struct{ clock.Wall }

func (c deaf) NewEvent() quota.Event { return deafEvent{c.Wall.NewEvent()} }

type deafEvent struct{ quota.Event }

func (e deafEvent) Wait(ctx context.Context) error { return e.Event.Wait(context.WithoutCancel(ctx)) }

// TestTurnPassesOn: a caller whose turn to send comes when its context has ended leaves the
// sending to the next one.
func TestTurnPassesOn(t *testing.T) {
	onBoth(t, lostError, func(r *rig) {
		r.clock = deaf{}
		ctx, cancel := context.WithCancel(t.Context())
		first, release := r.hold()
		gone := r.ask(ctx, 5)
		next := r.ask(t.Context(), 1)
		cancel()
		release()
		<-first
		if a := <-gone; !errors.Is(a.err, context.Canceled) {
			t.Errorf("who has given up gets %+v", a)
		}
		if a := <-next; a.err != nil || a.Remaining != 8 {
			t.Errorf("the next one gets %+v", a)
		}
		r.atRest()
	})
}

// TestSenderPanics: the others of its batch get an error, and those who wait their turn.
func TestSenderPanics(t *testing.T) {
	onBoth(t, lostError, func(r *rig) {
		second := make(chan struct{})
		r.wire.at = func(call int64, send func() error) error {
			if call == 2 {
				<-second
				panic("out of order")
			}
			return send()
		}
		first, release := r.hold()
		sends := r.ask(t.Context(), 1)
		rides := r.ask(t.Context(), 1)
		release()
		<-first
		r.until(func() bool { return r.wire.calls.Load() == 2 })
		next := r.ask(t.Context(), 1)
		close(second)
		if a := <-sends; a.err == nil || !strings.Contains(a.err.Error(), "out of order") {
			t.Errorf("the sender got %+v", a)
		}
		if a := <-rides; !errors.Is(a.err, errEnded) || !strategies.IsPrescribed(a.err) {
			t.Errorf("the other one got %+v", a)
		}
		if a := <-next; a.err != nil || !a.Admitted {
			t.Errorf("the next one got %+v", a)
		}
		r.atRest()
	})
}

// TestShared: the context of a call of several has no end of one of them, and the latest of
// their deadlines.
func TestShared(t *testing.T) {
	s := &combine{clock: clock.Wall{}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	now := clock.Wall{}.Now()
	soon := now.Add(time.Hour)
	later := now.Add(2 * time.Hour)
	for what, c := range map[string]struct {
		deadlines []time.Time
		ends      bool
		deadline  time.Time
	}{
		"alone":           {[]time.Time{soon}, true, time.Time{}},
		"all have one":    {[]time.Time{soon, later, soon}, false, later},
		"one has none":    {[]time.Time{soon, {}}, false, time.Time{}},
		"the first, none": {[]time.Time{{}, soon}, false, time.Time{}},
	} {
		var batch []*caller
		for _, d := range c.deadlines {
			batch = append(batch, &caller{deadline: d})
		}
		ctx, cancel := s.shared(ended, batch)
		got, _ := ctx.Deadline()
		if (ctx.Err() != nil) != c.ends || got.Sub(c.deadline).Abs() > time.Minute {
			t.Errorf("%s: ends at %v, with %v", what, got, ctx.Err())
		}
		cancel()
	}
}

// behind is a clock that reads moments ago, the last one forever.
type behind struct {
	clock.Wall
	ago []time.Duration
}

func (b *behind) Now() time.Time {
	ago := b.ago[0]
	if len(b.ago) > 1 {
		b.ago = b.ago[1:]
	}
	return b.Wall.Now().Add(-ago)
}

// TestLate: a batch for a window whose counter is gone is asked for the next one, and if the
// clock stays behind, it is rejected without a decision of Redis.
func TestLate(t *testing.T) {
	onBoth(t, lostError, func(r *rig) {
		r.policy.Window.Length = time.Minute
		r.policy.Window.Timeline = quota.Timeline{Real: r.clock.Now(), Policy: time.Date(2031, 3, 1, 12, 0, 30, 0, time.UTC)}
		r.clock = &behind{ago: []time.Duration{2 * time.Minute, 0}}
		if a := <-r.ask(t.Context(), 1); !a.Admitted || a.Degraded || r.wire.calls.Load() != 2 {
			t.Errorf("%+v after %d calls, want admitted after 2", a, r.wire.calls.Load())
		}
		r.used(1)
		r.clock = &behind{ago: []time.Duration{2 * time.Minute}}
		if a := <-r.ask(t.Context(), 1); a.Admitted || !a.Degraded || a.err != nil || r.wire.calls.Load() != 4 {
			t.Errorf("%+v after %d calls, want rejected without Redis after 4", a, r.wire.calls.Load())
		}
	})
}

// TestExpiry: a counter outlives its window by the grace, and an answer is remembered for a
// minute.
func TestExpiry(t *testing.T) {
	onBoth(t, lostAgain, func(r *rig) {
		<-r.ask(t.Context(), 1)
		left := r.policy.Window.At(r.clock.Now()).End.Add(grace).Sub(r.clock.Now())
		keys := r.redis.Keys(t.Context(), r.prefix+"*").Val()
		if len(keys) != 2 {
			t.Fatalf("keys %q, want two", keys)
		}
		for _, key := range keys {
			want := left
			if !strings.HasSuffix(key, "}") {
				want = remembered
			}
			const off = 20 * time.Second // the machine may be slow
			if ttl := r.redis.PTTL(t.Context(), key).Val(); (ttl - want).Abs() > off {
				t.Errorf("%s lives for %v, want %v", key, ttl, want)
			}
		}
	})
}

// TestSearched: in every order of the steps of three callers of one instance, whatever is
// tolerated happens, no clause breaks; and only if a batch is known by its number, no lost
// reply and no repetition leaves units charged that nobody has.
func TestSearched(t *testing.T) {
	testenv.Sequential(t)
	scripts, err := explore.ParseScripts("take=2;take;take")
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{lostError, lostAgain} {
		sel, err := meta.Select(quota.Options{"lost": lost})
		if err != nil {
			t.Fatal(err)
		}
		search := func(properties []explore.Property, faults ...quota.Fault) *explore.Result {
			cfg := explore.Config{Clients: 3, Instances: 1, Limit: 3, Scripts: scripts, Faults: faults, Properties: properties}
			res, err := explore.Run(t.Context(), sel, cfg)
			if err != nil || res.Capped != "" || res.Runs < 10 {
				t.Fatalf("lost=%s under %v: %+v, %v", lost, faults, res, err)
			}
			return res
		}
		promised := []explore.Property{explore.Leak, explore.Guarantee, explore.TTL, explore.Stuck}
		for _, faults := range [][]quota.Fault{
			nil, {quota.FaultCrash, quota.FaultLostReply}, {quota.FaultRetry, quota.FaultOutage}, {quota.FaultClock},
		} {
			if res := search(promised, faults...); len(res.Findings) > 0 {
				t.Errorf("lost=%s under %v: %+v", lost, faults, res.Findings)
			}
		}
		for _, fault := range []quota.Fault{quota.FaultLostReply, quota.FaultRetry} {
			if res := search([]explore.Property{explore.Stranded}, fault); (len(res.Findings) > 0) != (lost == lostError) {
				t.Errorf("lost=%s under %s strands units: %+v", lost, fault, res.Findings)
			}
		}
	}
}
