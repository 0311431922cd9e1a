package measure

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// outage is a planned outage of one store in one run. While it lasts, every read
// and write on the client's connections fails as if the server had gone.
type outage struct {
	harness.Outage
	network.Switch
	site     *site
	ctx      context.Context // of what is done to the store
	from, to atomic.Int64    // when it was, on the run's clock; set by the timers
	// gone and back are when it was away for certain: the switch is turned between from and gone, and between back and to.
	gone, back atomic.Int64
	// lags is set if the replica gets each write later, and need not be detached.
	lags bool
	// err is of what was done to the store, and may be read when the outage has ended.
	err error
}

// schedule plans the outage of a pass that starts now and lasts for d. The end is
// counted from the actual beginning, so that a late timer does not shorten it. The
// returned function ends it at once.
func (o *outage) schedule(now func() int64, d time.Duration) (stop func()) {
	from, to := o.Within(d)
	behind := o.Behind
	if o.lags {
		behind = 0
	}
	return clock.Aside(func(wait func(time.Duration) bool) {
		if !wait(from - behind) {
			return
		}
		if behind > 0 {
			if o.err = o.failing(o.ctx, stores.FailsOver.Detach); o.err != nil || !wait(behind) {
				return
			}
		}
		began := now()
		o.from.Store(began)
		if o.Fault != "" {
			o.err = o.inflict(func() { wait(to - from - time.Duration(now()-began)) })
			o.to.Store(now())
			return
		}
		o.Set(true)
		o.gone.Store(now())
		if o.Failover {
			o.err = o.failing(o.ctx, stores.FailsOver.FailOver)
		}
		wait(to - from - time.Duration(now()-began))
		if st := o.befallen(); o.Empty && st != nil {
			o.err = st.Wipe(o.ctx, o.site.scope)
		}
		o.back.Store(now())
		o.Set(false)
		o.to.Store(now())
	})
}

// reconnectGrace is how long after an outage errors are still its doing: pooled
// connections are found dead one by one. After as many failed dials as its pool has
// connections, go-redis looks for the server once a second.
const reconnectGrace = int64(1100 * time.Millisecond)

// span is when the outage was, since the epoch; ok is false if it never began.
func (o *outage) span(epoch int64) (s results.Span, ok bool) {
	from, to := o.from.Load(), o.to.Load()
	away := [2]int64{o.gone.Load() - epoch, o.back.Load() - epoch}
	return results.Span{Store: o.Store, FromNS: from - epoch, ToNS: to - epoch, Away: away}, from != 0
}
