package clock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestNanoRunsWithTheWall(t *testing.T) {
	a := Nano()
	now := Wall{}.Now()
	b := Nano()
	if b < a {
		t.Errorf("went back from %d to %d", a, b)
	}
	if now.Before(Time(a)) || now.After(Time(b)) {
		t.Errorf("the wall shows %v between %v and %v", now, Time(a), Time(b))
	}
}

func TestNanoDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Nano() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSleep(t *testing.T) {
	begin := Nano()
	if err := (Wall{}).Sleep(t.Context(), 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if d := time.Duration(Nano() - begin); d < 5*time.Millisecond {
		t.Errorf("slept for %v", d)
	}
	for _, d := range []time.Duration{0, -1} {
		if err := (Wall{}).Sleep(t.Context(), d); err != nil {
			t.Errorf("sleep of %v: %v", d, err)
		}
	}
}

func TestWaitsEndWithTheirContext(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context) error{
		"sleep":      func(ctx context.Context) error { return Wall{}.Sleep(ctx, time.Hour) },
		"zero sleep": func(ctx context.Context) error { <-ctx.Done(); return Wall{}.Sleep(ctx, 0) },
		"event":      func(ctx context.Context) error { return Wall{}.NewEvent().Wait(ctx) },
		"mutex": func(ctx context.Context) error {
			m := Wall{}.NewMutex()
			if err := m.Lock(context.Background()); err != nil {
				return err
			}
			return m.Lock(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

func TestMutexExcludes(t *testing.T) {
	m := Wall{}.NewMutex()
	n := 0 // the race detector watches it, too
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if err := m.Lock(t.Context()); err != nil {
					t.Error(err)
					return
				}
				n++
				m.Unlock()
			}
		})
	}
	wg.Wait()
	if n != 1600 {
		t.Errorf("counted %d of 1600", n)
	}
}

// A lock that was given up on is not held.
func TestMutexGivenUpOn(t *testing.T) {
	m := Wall{}.NewMutex()
	if err := m.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Lock(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a held mutex was locked: %v", err)
	}
	m.Unlock()
	if err := m.Lock(t.Context()); err != nil {
		t.Errorf("free mutex: %v", err)
	}
}

// It must not wait for a lock that will never come, as a channel would.
func TestUnlockOfAnUnlockedMutexPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Wall{}.NewMutex().Unlock()
}

func TestEventReleasesAllAndStaysSet(t *testing.T) {
	e := Wall{}.NewEvent()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := e.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	e.Set()
	e.Set()
	wg.Wait()
	if err := e.Wait(t.Context()); err != nil {
		t.Errorf("after the event: %v", err)
	}
}
