package inproc

import (
	"strings"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Holdings implements [engine.Engine].
func (w *Engine) Holdings() ([]engine.Holding, error) {
	w.s.Sync()
	keys, err := w.store.keys(w.s.Now())
	if err != nil {
		return nil, err
	}
	w.holdings = w.holdings[:0]
	for _, k := range keys {
		h := engine.Holding{Name: k.name, Forever: k.left == 0, Left: k.left}
		if k.numeric && engine.Negative(k.content) {
			h.Negative = strings.Join(k.content, " ")
		}
		w.holdings = append(w.holdings, h)
	}
	return w.holdings, nil
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
