package foreign

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// handing has a goroutine that is older than all callers', and waits, send commands in
// addition to those of the goroutine that decides.
type handing struct {
	rdb  redis.UniversalClient
	wake chan struct{}
}

func newHanding(rdb redis.UniversalClient) *handing {
	h := &handing{rdb: rdb, wake: make(chan struct{}, 1)}
	go func() {
		for range h.wake {
			for range 2 {
				_ = rdb.Get(context.Background(), "woken").Err() // what it answers does not matter
			}
		}
	}()
	return h
}

func (h *handing) Allow(ctx context.Context, key string) (bool, error) {
	done := make(chan error)
	go func() {
		err := h.rdb.Incr(ctx, key).Err()
		h.wake <- struct{}{}
		done <- errors.Join(err, h.rdb.Expire(ctx, key, time.Minute).Err())
	}()
	err := <-done
	return err == nil, errors.Join(err, h.rdb.Persist(ctx, key).Err())
}

func (h *handing) Close() error {
	close(h.wake)
	return nil
}

// A goroutine keeps its number while it goes on, although one that was started before it
// comes to the store; what has another's number is not in flight in its place.
func TestFlight(t *testing.T) {
	m := strategies.FromFunc("handing", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, _ *quota.Policy) (strategies.Allower, error) {
			return newHanding(strategies.Redis(env)), nil
		})
	m.Foreign = true
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	setup := engine.Setup{
		Policy: quota.Policy{Name: "calls", Unit: "calls", Limit: 1,
			Window: quota.Window{Kind: quota.Fixed, Length: time.Minute}},
		Clients: 1, Instances: 1, Scripts: []engine.Script{{{Kind: engine.Take, Units: 1}, {Kind: engine.Take, Units: 1}}},
		Times: 1, Seed: 1, Patience: bounds.DecisionTimeout,
	}
	_, err = Search(sel, setup, func(e *Engine) (any, error) {
		if err := e.Begin(); err != nil {
			return nil, err
		}
		const caller, decides, woken = 0, 1, 2
		const rests, asks, answered = engine.Waiting, engine.Asking, engine.Answering
		is := func(what string, want ...engine.Place) {
			t.Helper()
			for actor, f := range want {
				got := e.Flight(actor)
				if !got.InFlight() {
					got = rests
				}
				if got != f {
					t.Errorf("%s: actor %d is %d, want %d", what, actor, got, f)
				}
			}
		}
		step := func(actor int) {
			t.Helper()
			if err := e.Step(engine.Choice{Kind: engine.StepActor, ID: actor}); err != nil {
				t.Fatal(err)
			}
		}
		is("before the start", rests, rests, rests)
		step(caller)
		is("the caller waits, and who decides has not gone on", rests, rests, rests)
		step(decides)
		is("the count is raised", rests, answered, rests)
		step(decides)
		is("it goes on, and another is woken", rests, asks, rests)
		if got := e.parkedAt(decides).op.String() + ", " + e.parkedAt(woken).op.String(); got[:6] != "EXPIRE" {
			t.Errorf("the numbers are of %s", got)
		}
		step(woken)
		is("the other one's command", rests, rests, answered)
		step(decides)
		is("the time to live is set", rests, answered, rests)
		step(decides)
		is("the caller was woken", asks, rests, rests)
		step(woken)
		is("the other one goes on", asks, rests, asks)
		step(woken)
		step(woken)
		is("it waits again", asks, rests, rests)
		step(caller)
		is("its own command", answered, rests, rests)
		step(caller)
		is("between two actions", rests, rests, rests)
		step(caller)
		is("the next call waits", rests, rests, rests)
		return nil, e.End()
	})
	if err != nil {
		t.Fatal(err)
	}
}
