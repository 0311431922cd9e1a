package foreign

import (
	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/codes"
)

// lastNumber is the number of the last client, after those of all others and of all
// goroutines of the strategy's.
func (e *Engine) lastNumber() int { return e.last.Index + len(e.instances)*mostHelpers }

// lastRests reports whether the last client has not begun, or is between two requests.
func (e *Engine) lastRests() bool {
	client := e.last
	return !client.started || client.between()
}

// ask is one request of the last client, of that instance. If it has to wait within
// that, it goes on as everybody does.
func (e *Engine) ask(instance int) error {
	client := e.last
	if !e.MayAsk(instance) {
		return engine.ErrMisfit
	}
	client.instance = e.instances[instance]
	e.Run.Timeline.By(client.Name, codes.RoleClient, e.shown(client.column()), codes.EventCommand)
	return e.AskWhole(func() (goesOn bool, err error) {
		if client.started {
			err = e.act(engine.Choice{Kind: engine.StepActor}, client.at)
		} else {
			e.starts(client)
		}
		return client.at != nil && !e.lastRests(), err
	})
}
