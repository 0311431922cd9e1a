package measure

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/results"
)

// outage is a planned outage of one store in one run. While it lasts, every read
// and write on the client's connections fails as if the server had gone.
type outage struct {
	harness.Outage
	down     atomic.Bool
	from, to atomic.Int64 // when it was, on the run's clock; set by the timers
	// gone and back are when it was away for certain: the switch is turned between from and gone, and between back and to.
	gone, back atomic.Int64
	// wipe removes what the store holds of the run; detach and failOver are those of
	// [stores.FailsOver].
	wipe, detach, failOver func() error
	// lags is set if the replica gets each write later, and need not be detached.
	lags bool
	// inflict does to the store what is done instead of taking it away; mend ends that.
	inflict func() (mend func() error, err error)
	// err is of these, and may be read when the outage has ended.
	err error
}

// errOutage is what a client sees: a connection that was reset.
var errOutage = &net.OpError{Op: "read", Net: "tcp", Err: errors.Join(errors.New("planned outage"), syscall.ECONNRESET)}

// wrap puts the switch into a connection.
func (o *outage) wrap(c net.Conn) net.Conn { return &cutConn{Conn: c, o: o} }

type cutConn struct {
	net.Conn
	o *outage
}

func (c *cutConn) Read(b []byte) (int, error) {
	if c.o.down.Load() {
		return 0, errOutage
	}
	n, err := c.Conn.Read(b)
	if c.o.down.Load() { // the reply is lost with the connection
		return 0, errOutage
	}
	return n, err
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.o.down.Load() {
		return 0, errOutage
	}
	return c.Conn.Write(b)
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
			if o.err = o.detach(); o.err != nil || !wait(behind) {
				return
			}
		}
		began := now()
		o.from.Store(began)
		if o.Fault != "" {
			var mend func() error
			if mend, o.err = o.inflict(); mend != nil {
				wait(to - from - time.Duration(now()-began))
				o.err = errors.Join(o.err, mend())
			}
			o.to.Store(now())
			return
		}
		o.down.Store(true)
		o.gone.Store(now())
		if o.Failover {
			o.err = o.failOver()
		}
		wait(to - from - time.Duration(now()-began))
		if o.Empty {
			o.err = o.wipe()
		}
		o.back.Store(now())
		o.down.Store(false)
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
