package inproc

import (
	"context"
	"testing"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Two states that differ in a loaded script alone are two: the next to send it needs one
// command or two.
func TestStateSeesScripts(t *testing.T) {
	sel := strategies.Selection{Meta: &strategies.Meta{
		Name: "planted",
		Open: func(context.Context, strategies.Env) (strategies.Strategy, error) { return newTiers(), nil },
	}}
	setup := engine.Setup{
		Policy: quota.Policy{Name: "p", Limit: 1}, Clients: 1, Instances: 1,
		Scripts: []engine.Script{{{Kind: engine.Take, Units: 1}}},
	}
	_, err := Search(sel, setup, func(e *Engine) (struct{}, error) {
		var states [3]engine.Digest
		e.Keep()
		for i := range states {
			if err := e.Begin(); err != nil {
				return struct{}{}, err
			}
			if i == 1 {
				if err := e.store.client().Eval(setupContext, "return 1", nil).Err(); err != nil {
					return struct{}{}, err
				}
			}
			var err error
			states[i], err = e.State()
			if err != nil {
				return struct{}{}, err
			}
		}
		if states[0] == states[1] || states[0] != states[2] {
			t.Errorf("states %x", states)
		}
		return struct{}{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
