package sched_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"

	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

func TestSleepEndsWithVirtualTime(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	clock := s.Clock(0)
	var woke []string
	for _, x := range []struct {
		name string
		d    time.Duration
	}{{"month", 31 * 24 * time.Hour}, {"second", time.Second}, {"not at all", 0}} {
		begin(s, x.name, func(ctx context.Context) {
			check(t, clock.Sleep(ctx, x.d))
			woke = append(woke, x.name+" "+clock.Now().Format(time.DateTime))
		})
	}
	check(t, s.Run(first))
	want := "not at all 2026-11-20 10:00:00, second 2026-11-20 10:00:01, month 2026-12-21 10:00:00"
	if got := strings.Join(woke, ", "); got != want {
		t.Errorf("woke %s\nwant %s", got, want)
	}
}

func TestSkewedClock(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	ahead := s.Clock(3 * time.Second)
	if got := ahead.Now(); !got.Equal(start.Add(3 * time.Second)) {
		t.Errorf("skewed clock shows %v", got)
	}
	begin(s, "a", func(ctx context.Context) { check(t, ahead.Sleep(ctx, time.Second)) })
	check(t, s.Run(first))
	if !s.Now().Equal(start.Add(time.Second)) {
		t.Errorf("a second's sleep ended at %v", s.Now())
	}
}

func TestWaitsEndWithTheirContext(t *testing.T) {
	for name, wait := range map[string]func(c quota.Clock, ctx context.Context) error{
		"sleep": func(c quota.Clock, ctx context.Context) error { return c.Sleep(ctx, time.Hour) },
		"lock": func(c quota.Clock, ctx context.Context) error {
			m := c.NewMutex()
			if err := m.Lock(context.Background()); err != nil {
				return err
			}
			return m.Lock(ctx)
		},
		"event": func(c quota.Clock, ctx context.Context) error { return c.NewEvent().Wait(ctx) },
	} {
		for _, how := range []string{"run", "simulate"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				s := sched.New(sched.Config{Start: start})
				var cancel context.CancelFunc
				var err error
				s.Go("waits", func(ctx context.Context) {
					ctx, cancel = context.WithCancel(ctx)
					err = wait(s.Clock(0), ctx)
				})
				s.Go("cancels", func(ctx context.Context) {
					check(t, s.Clock(0).Sleep(ctx, time.Second))
					cancel()
				})
				if how == "run" {
					check(t, s.Run(first))
				} else {
					check(t, s.Simulate(start.Add(2*time.Hour), instantly))
				}
				if !errors.Is(err, context.Canceled) || !s.Now().Equal(start.Add(time.Second)) {
					t.Errorf("ended with %v at %v", err, s.Now())
				}
			})
		}
	}
}

func instantly(*sched.Actor, *sched.Op) time.Duration { return 0 }

// A mutex of the clock may be held across a store call, which is what the plain
// one may not: under every order, two callers with a read and a write each count
// to two.
func TestMutexHeldAcrossCommands(t *testing.T) {
	w := newWorld(t)
	var tree sched.Tree
	runs := 0
	for ok := true; ok; ok = tree.Next() {
		runs++
		s := w.scheduler(sched.Config{})
		m := s.Clock(0).NewMutex()
		for _, name := range []string{"a", "b"} {
			begin(s, name, func(ctx context.Context) {
				check(t, m.Lock(ctx))
				defer m.Unlock()
				increment(w)(ctx)
			})
		}
		check(t, s.Run(tree.Pick))
		if got := w.get(t, "n"); got != "2" {
			t.Fatalf("choices %v: counted to %s", tree.Path(), got)
		}
	}
	check(t, tree.Err())
	if runs != 2 {
		t.Errorf("%d orders, want 2: the lock decides everything", runs)
	}
}

// The first caller at the store need not be the first to get the lock.
func TestLockIsAChoiceOfItsOwn(t *testing.T) {
	w := newWorld(t)
	var tree sched.Tree
	seen := map[string]bool{}
	for ok := true; ok; ok = tree.Next() {
		s := w.scheduler(sched.Config{})
		m := s.Clock(0).NewMutex()
		var order string
		for _, name := range []string{"a", "b"} {
			begin(s, name, func(ctx context.Context) {
				order += name + w.rdb.Incr(ctx, "n").String()[len("incr n: "):] + " "
				check(t, m.Lock(ctx))
				order += name + "L "
				m.Unlock()
			})
		}
		check(t, s.Run(tree.Pick))
		seen[order] = true
	}
	if !seen["a1 b2 bL aL "] {
		t.Errorf("never saw b overtake a between its command and its lock: %v", seen)
	}
}

func TestDeadlockNamesWhoWaits(t *testing.T) {
	never := strategies.Job{Name: "job", Every: time.Hour, Run: func(context.Context) (bool, error) { return false, nil }}
	for name, run := range map[string]func(s *sched.Scheduler) error{
		"run":      func(s *sched.Scheduler) error { return s.Run(first) },
		"simulate": func(s *sched.Scheduler) error { return s.Simulate(start.Add(time.Hour), instantly) },
		"run beside a periodic job": func(s *sched.Scheduler) error {
			s.NewJobs("").Start([]strategies.Job{never})
			return s.Run(first)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sched.New(sched.Config{Start: start})
			defer s.Close()
			a := s.Clock(0).NewMutex()
			b := s.Clock(0).NewMutex()
			both := func(first, second quota.Mutex) func(ctx context.Context) {
				return func(ctx context.Context) {
					check(t, first.Lock(ctx))
					check(t, s.Clock(0).Sleep(ctx, time.Second))
					check(t, second.Lock(ctx))
				}
			}
			s.Go("left", both(a, b))
			s.Go("right", both(b, a))
			err := run(s)
			var stuck *sched.StuckError
			if !errors.As(err, &stuck) || strings.Join(stuck.Waiting, ", ") != "left: lock, right: lock" {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestEventReleasesAll(t *testing.T) {
	for _, how := range []string{"run", "simulate"} {
		s := sched.New(sched.Config{Start: start})
		e := s.Clock(0).NewEvent()
		released := 0
		for range 3 {
			s.Go("waits", func(ctx context.Context) {
				check(t, e.Wait(ctx))
				released++
			})
		}
		s.Go("sets", func(ctx context.Context) {
			check(t, s.Clock(0).Sleep(ctx, time.Second))
			if released != 0 {
				t.Error("released before the event")
			}
			e.Set()
			e.Set()
		})
		if how == "run" {
			check(t, s.Run(first))
		} else {
			check(t, s.Simulate(start.Add(time.Hour), instantly))
		}
		if released != 3 || e.Wait(context.Background()) != nil {
			t.Errorf("%s: %d of 3 released", how, released)
		}
	}
}

func TestWaitingOutsideOfActors(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	c := s.Clock(0)
	ctx := context.Background()
	m := c.NewMutex()
	check(t, m.Lock(ctx))
	for name, err := range map[string]error{
		"sleep": c.Sleep(ctx, time.Second), "lock": m.Lock(ctx), "event": c.NewEvent().Wait(ctx),
	} {
		if err == nil {
			t.Errorf("%s answered nil without an actor that could wait", name)
		}
	}
	m.Unlock()
	check(t, m.Lock(ctx))
}

func TestKilledCallerLeavesItsMutexFree(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	m := s.Clock(0).NewMutex()
	holder := begin(s, "holder", func(ctx context.Context) {
		check(t, m.Lock(ctx))
		defer m.Unlock()
		_ = s.Clock(0).Sleep(ctx, time.Hour)
		t.Error("went on after its death")
	})
	s.Step(holder)
	got := false
	waiter := begin(s, "waiter", func(ctx context.Context) { got = m.Lock(ctx) == nil })
	if waiter.Ready() {
		t.Fatal("the mutex is free while it is held")
	}
	s.Kill(holder)
	check(t, s.Run(first))
	if !got {
		t.Error("the waiter never got the mutex")
	}
}
