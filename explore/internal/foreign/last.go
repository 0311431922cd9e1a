package foreign

import (
	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/results"
)

// lastNumber is the number of the last client, after those of all others and of all
// goroutines of the strategy's.
func (e *Engine) lastNumber() int { return e.last.Index + len(e.instances)*mostHelpers }

// lastRests reports whether the last client has not begun, or is between two requests.
func (e *Engine) lastRests() bool {
	c := e.last
	return !c.started || c.between()
}

// ask is one request of the last client, of that instance. If it has to wait within
// that, it goes on as everybody does.
func (e *Engine) ask(instance int) error {
	c := e.last
	if !e.MayAsk(instance) {
		return engine.ErrMisfit
	}
	c.in = e.instances[instance]
	e.Run.Timeline.By(c.Name, results.RoleClient, e.named(c.Name), results.EventCommand)
	return e.AskWhole(func() (goesOn bool, err error) {
		if c.started {
			err = e.act(engine.Choice{Kind: engine.StepActor}, c.at)
		} else {
			e.starts(c)
		}
		return c.at != nil && !e.lastRests(), err
	})
}
