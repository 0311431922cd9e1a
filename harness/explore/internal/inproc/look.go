package inproc

import (
	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Holdings implements [engine.Engine].
func (w *Engine) Holdings() ([]engine.Holding, error) {
	w.s.Sync()
	keys, err := w.store.keys()
	w.holdings = engine.Held(w.holdings[:0], keys)
	return w.holdings, err
}

// Used implements [engine.Engine].
func (w *Engine) Used() (readings []quota.Reading, ok bool) {
	v, ok := w.instances[0].strategy.(strategies.Viewer)
	if !ok {
		return nil, false
	}
	w.footAsks()
	readings, err := v.Used(setupContext, engine.Subject, w.Run.Truth.Policy)
	return readings, err == nil
}
