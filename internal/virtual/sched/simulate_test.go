package sched_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/virtual/sched"
)

func TestSimulateTakesOperationsInTheOrderOfTheirTimes(t *testing.T) {
	w := newWorld(t)
	var trace []string
	s := w.scheduler(sched.Config{SplitReplies: true, Observe: func(e *sched.Event) {
		trace = append(trace, fmt.Sprintf("%d %s %s", e.Since.Milliseconds(), e.Actor.Name, e.Op))
	}})
	for _, name := range []string{"near", "far"} {
		s.Go(name, func(ctx context.Context) {
			w.rdb.Incr(ctx, "n")
			w.rdb.Get(ctx, "n")
		})
	}
	check(t, s.Simulate(start.Add(time.Hour), func(a *sched.Actor, op *sched.Op) time.Duration {
		switch {
		case op.Kind == sched.Start:
			return 0
		case a.Name == "far":
			return 5 * time.Millisecond
		default:
			return 2 * time.Millisecond
		}
	}))
	want := strings.Join([]string{
		"0 near start", "0 far start", "2 near INCR n", "4 near reply to INCR n", "5 far INCR n", "6 near GET n",
		"8 near reply to GET n", "10 far reply to INCR n", "15 far GET n", "20 far reply to GET n",
	}, "\n")
	if got := strings.Join(trace, "\n"); got != want {
		t.Errorf("trace\n%s\nwant\n%s", got, want)
	}
}

// simulated runs 30 clients of a lost update in virtual time and fingerprints
// every step.
func simulated(t *testing.T, w *world, seed uint64) (fingerprint uint64, n string) {
	h := fnv.New64a()
	s := w.scheduler(sched.Config{SplitReplies: true, Observe: func(e *sched.Event) {
		fmt.Fprintln(h, e.Since, e)
	}})
	rng := rand.New(rand.NewPCG(seed, 1))
	m := s.Clock(0).NewMutex()
	for i := range 30 {
		s.Go(fmt.Sprint(i), func(ctx context.Context) {
			for range 5 {
				increment(w)(ctx)
				check(t, s.Clock(0).Sleep(ctx, time.Millisecond))
			}
			check(t, m.Lock(ctx))
			defer m.Unlock()
			check(t, w.rdb.Incr(ctx, "serial").Err())
		})
	}
	check(t, s.Simulate(start.Add(time.Hour), func(*sched.Actor, *sched.Op) time.Duration {
		return time.Duration(rng.Int64N(int64(time.Millisecond)))
	}))
	if len(s.Alive(nil)) != 0 || w.get(t, "serial") != "30" {
		t.Fatalf("%d actors left, %s of 30 serial steps", len(s.Alive(nil)), w.get(t, "serial"))
	}
	return h.Sum64(), w.get(t, "n")
}

func TestSimulateIsAFunctionOfItsSeed(t *testing.T) {
	w := newWorld(t)
	f1, n1 := simulated(t, w, 7)
	f2, n2 := simulated(t, w, 7)
	f3, _ := simulated(t, w, 8)
	if f1 != f2 || n1 != n2 {
		t.Errorf("one seed gave two runs: %x with n=%s, %x with n=%s", f1, n1, f2, n2)
	}
	if f1 == f3 {
		t.Error("two seeds gave the same run")
	}
}

func TestSimulateStopsAndGoesOn(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	woke := false
	s.Go("a", func(ctx context.Context) {
		check(t, s.Clock(0).Sleep(ctx, time.Hour))
		woke = true
	})
	check(t, s.Simulate(start.Add(time.Minute), instantly))
	if woke || !s.Now().Equal(start.Add(time.Minute)) {
		t.Fatalf("stopped at %v, woke %v", s.Now(), woke)
	}
	late := false
	s.Go("made between", func(ctx context.Context) { late = true })
	check(t, s.Simulate(start.Add(2*time.Hour), instantly))
	if !woke || !late || !s.Now().Equal(start.Add(time.Hour)) {
		t.Errorf("ended at %v, woke %v, late %v", s.Now(), woke, late)
	}
}

func TestSimulateMutexIsFirstComeFirstServed(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	m := s.Clock(0).NewMutex()
	var order []string
	for i := range 4 {
		s.Go(fmt.Sprint(i), func(ctx context.Context) {
			check(t, s.Clock(0).Sleep(ctx, time.Duration(10-i)*time.Millisecond))
			check(t, m.Lock(ctx))
			order = append(order, fmt.Sprint(i))
			check(t, s.Clock(0).Sleep(ctx, time.Second))
			m.Unlock()
		})
	}
	check(t, s.Simulate(start.Add(time.Hour), instantly))
	if got := strings.Join(order, ""); got != "3210" {
		t.Errorf("served in order %s, want 3210", got)
	}
}

// One whose turn has come may die before it takes it; the next one must not wait
// for the dead.
func TestSimulateMutexOutlivesTheNextInLine(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	m := s.Clock(0).NewMutex()
	var got []string
	actors := map[string]*sched.Actor{}
	for _, name := range []string{"holder", "doomed", "heir"} {
		actors[name] = s.Go(name, func(ctx context.Context) {
			check(t, m.Lock(ctx))
			got = append(got, name)
			check(t, s.Clock(0).Sleep(ctx, time.Minute))
			m.Unlock()
		})
	}
	check(t, s.Simulate(start.Add(time.Second), instantly))
	s.Advance(time.Minute)
	s.Step(actors["holder"])
	s.Kill(actors["doomed"])
	check(t, s.Simulate(start.Add(time.Hour), instantly))
	if strings.Join(got, " ") != "holder heir" {
		t.Errorf("the mutex went to %v", got)
	}
}

// An actor may make more of its kind: that is how an open loop issues requests.
func TestSimulateOpenLoop(t *testing.T) {
	w := newWorld(t)
	s := w.scheduler(sched.Config{})
	inFlight := 0
	most := 0
	s.Go("arrivals", func(ctx context.Context) {
		for i := range 100 {
			s.Go(fmt.Sprint(i), func(ctx context.Context) {
				inFlight++
				most = max(most, inFlight)
				w.rdb.Incr(ctx, "n")
				inFlight--
			})
			check(t, s.Clock(0).Sleep(ctx, time.Millisecond))
		}
	})
	check(t, s.Simulate(start.Add(time.Hour), func(_ *sched.Actor, op *sched.Op) time.Duration {
		if op.Kind == sched.Start {
			return 0
		}
		return 4500 * time.Microsecond
	}))
	if got := w.get(t, "n"); got != "100" || most != 5 {
		t.Errorf("%s arrivals, at most %d in flight; want 100 and 5", got, most)
	}
}

func TestStoreLivesOnVirtualTime(t *testing.T) {
	w := newWorld(t)
	s := w.scheduler(sched.Config{})
	s.Go("a", func(ctx context.Context) {
		w.rdb.Set(ctx, "k", 1, time.Hour)
		check(t, s.Clock(0).Sleep(ctx, time.Hour-time.Millisecond))
		if ttl := w.rdb.PTTL(ctx, "k").Val(); ttl != time.Millisecond {
			t.Errorf("a millisecond before its end the key has %v left", ttl)
		}
		check(t, s.Clock(0).Sleep(ctx, time.Millisecond))
		if v, err := w.rdb.Get(ctx, "k").Result(); err == nil {
			t.Errorf("expired key still holds %s", v)
		}
		if got := w.rdb.Time(ctx).Val(); !got.Equal(start.Add(time.Hour)) {
			t.Errorf("the store's clock shows %v", got)
		}
		w.rdb.Set(ctx, "k", 2, time.Minute)
	})
	check(t, s.Run(first))
	s.Advance(time.Minute)
	if w.get(t, "k") != "2" {
		t.Error("aged before a look")
	}
	s.Sync()
	if w.get(t, "k") != "" {
		t.Error("did not age when asked to")
	}
}

// Whether callers go on by themselves, and commands are answered without waking them,
// changes no step: if a caller overtook another, or an answer came at another moment,
// the traces would differ. "switching" has every caller go through the scheduler.
func TestShortCutsChangeNoStep(t *testing.T) {
	for seed := range uint64(20) {
		var want []string
		for _, how := range []string{"switching", "alone", "answered", "half answered", "in pieces"} {
			w := newWorld(t)
			answers := map[string]int64{}
			asked := 0
			answer := func(cmd redis.Cmder) (error, bool) {
				asked++
				if how == "half answered" && asked%2 == 0 {
					return nil, false
				}
				key, _ := cmd.Args()[1].(string)
				n, err := w.mini.Incr(key, 1)
				answers[key]++
				cmd.(*redis.IntCmd).SetVal(int64(n))
				return err, true
			}
			if how != "answered" && how != "half answered" {
				answer = nil
			}
			rdb := w.clientWith(sched.Hook{Answer: answer})
			defer func() { _ = rdb.Close() }()
			var trace []string
			s := w.scheduler(sched.Config{SplitReplies: true, Observe: func(e *sched.Event) {
				trace = append(trace, fmt.Sprint(e.Since, e.Actor.ID, e.Op.Kind, e.Op.Cmd))
			}, Travel: func(a *sched.Actor, _ *sched.Op) time.Duration { return time.Duration(a.ID) * time.Microsecond }})
			if how == "switching" {
				s.Switch()
			}
			rng := rand.New(rand.NewPCG(seed, 1))
			latency := func(*sched.Actor, *sched.Op) time.Duration {
				return time.Duration(rng.Int64N(3)) * time.Millisecond // many at the same moment
			}
			mutex := s.Clock(0).NewMutex()
			event := s.Clock(0).NewEvent()
			for i := range 4 {
				s.Go("caller", func(ctx context.Context) {
					for j := range 5 {
						check(t, rdb.Incr(ctx, fmt.Sprint("n", j%2)).Err())
						check(t, s.Clock(0).Sleep(ctx, time.Duration(i*j)*time.Millisecond))
					}
					check(t, mutex.Lock(ctx))
					check(t, rdb.Incr(ctx, "serial").Err())
					mutex.Unlock()
					if i == 3 {
						event.Set()
					}
					check(t, event.Wait(ctx))
				})
			}
			for until := start; how == "in pieces" &&
				until.Before(start.Add(30*time.Millisecond)); until = until.Add(700 * time.Microsecond) {
				check(t, s.Simulate(until, latency))
				if s.Now().After(until) {
					t.Fatalf("seed %d: a caller went on to %v, beyond %v", seed, s.Now().Sub(start), until.Sub(start))
				}
			}
			check(t, s.Simulate(start.Add(time.Hour), latency))
			if answered := len(answers) > 0; answered != (answer != nil) {
				t.Fatalf("%s: answered without the client: %v", how, answers)
			}
			if w.get(t, "serial") != "4" {
				t.Fatalf("%s: %s of 4 came through the mutex", how, w.get(t, "serial"))
			}
			if want == nil {
				want = trace
			} else if !slices.Equal(trace, want) {
				t.Fatalf("seed %d, %s:\n%s\nwithout short cuts\n%s", seed, how, strings.Join(trace, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}
