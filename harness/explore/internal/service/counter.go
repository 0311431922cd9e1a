package service

import (
	"cmp"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
)

// Used implements [engine.Engine] by the counter that was named.
func (w *Engine) Used() ([]quota.Reading, bool) {
	if w.cmd.Counter == "" {
		return nil, false
	}
	units, err := w.cmd.Redis.Get(w.base, w.counter()).Int64()
	if err != nil && !errors.Is(err, redis.Nil) && w.Err == nil {
		w.Err = unfit("the key %s of --counter has no whole number: %v", w.plain(w.counter()), err)
	}
	return []quota.Reading{{Tier: quota.TierRedis, Units: units, Known: err == nil}}, true
}

func (w *Engine) counter() string { return strings.ReplaceAll(w.cmd.Counter, "{subject}", w.subject) }

// checkCounter sees whether there is such a key once the clients have come one after the other.
func (w *Engine) checkCounter() {
	if used, ok := w.Used(); !ok || w.Err != nil || used[0].Known {
		return
	}
	held, err := w.Holdings()
	names := format.List(held, ", ", func(h engine.Holding) string { return h.Name })
	w.Err = cmp.Or(err, unfit("no key is %s after requests that come one after the other: the keys are %s", w.plain(w.counter()),
		names))
}
