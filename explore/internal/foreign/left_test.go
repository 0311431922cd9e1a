package foreign

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Goroutines that do not end with Close are counted, whether or not they wait for time that
// passes, and nothing else of their bubble stays behind.
func TestLeft(t *testing.T) {
	m := strategies.FromFunc("leaving", []quota.Kind{quota.Fixed},
		func(context.Context, strategies.Env, *quota.Policy) (strategies.Allower, error) {
			go func() { select {} }()
			go func() {
				for {
					time.Sleep(time.Second)
				}
			}()
			return strategies.AllowFunc(func(context.Context, string) (bool, error) { return true, nil }), nil
		})
	m.Foreign = true
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	setup := engine.Setup{
		Policy: quota.Policy{Name: "calls", Unit: "calls", Limit: 1,
			Window: quota.Window{Kind: quota.Fixed, Length: time.Minute}},
		Clients: 1, Instances: 1, Scripts: []engine.Script{{{Kind: engine.Take, Units: 1}}}, Times: 1, Seed: 1,
		Patience: bounds.DecisionTimeout,
	}
	_, err = Search(sel, setup, func(e *Engine) (any, error) {
		before := runtime.NumGoroutine()
		left := leaving()
		const runs = 3
		for range runs {
			if err := e.Begin(); err != nil {
				return nil, err
			}
			// A strategy is made with its first request.
			if err := e.Step(engine.Choice{Kind: engine.StepActor, ID: 0}); err != nil {
				return nil, err
			}
			if err := e.End(); err != nil {
				return nil, err
			}
			if e.Run.Left != 2 {
				t.Errorf("%d goroutines are left, want 2", e.Run.Left)
			}
		}
		stay := 0
		for range 1000 { // those of the bubble itself may be about to end
			stay = runtime.NumGoroutine() - before
			if stay <= 2*runs {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		// Fewer in all stay if one that was there before has ended.
		if left := leaving() - left; stay > 2*runs || left != 2*runs {
			t.Errorf("%d goroutines of the strategy and %d in all stay behind, want %d", left, stay, 2*runs)
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// leaving counts the goroutines of the strategy.
func leaving() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "/foreign.TestLeft.func1 in goroutine")
}
