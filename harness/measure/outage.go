package measure

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/strategies"
)

// Outage takes a store away for part of every pass.
type Outage struct {
	// Store is [strategies.NeedRedis] or [strategies.NeedPostgres].
	Store strategies.Need
	// From and To are shares of the round's duration, 0 to 1.
	From, To float64
}

// ParseOutage reads "redis:0.3-0.6".
func ParseOutage(text string) (Outage, error) {
	bad := fmt.Errorf("%q is not of the form redis:0.3-0.6 or postgres:0.3-0.6, with shares of the round's duration", text)
	store, span, ok := strings.Cut(text, ":")
	from, to, ok2 := strings.Cut(span, "-")
	if !ok || !ok2 {
		return Outage{}, bad
	}
	o := Outage{Store: strategies.Need(store)}
	var err1, err2 error
	o.From, err1 = strconv.ParseFloat(from, 64)
	o.To, err2 = strconv.ParseFloat(to, 64)
	if err1 != nil || err2 != nil || !(o.From >= 0 && o.From < o.To && o.To <= 1) ||
		o.Store != strategies.NeedRedis && o.Store != strategies.NeedPostgres {
		return Outage{}, bad
	}
	return o, nil
}

// String renders the outage as [ParseOutage] reads it.
func (o Outage) String() string { return fmt.Sprintf("%s:%g-%g", o.Store, o.From, o.To) }

// outage is a planned outage of one store in one run. While it lasts, every read
// and write on the client's connections fails as if the server had gone.
type outage struct {
	Outage
	down     atomic.Bool
	from, to int64 // when it was, on the run's clock; set by the timers
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
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if !waitOr(time.Duration(o.From*float64(d)), done) {
			return
		}
		atomic.StoreInt64(&o.from, now())
		o.down.Store(true)
		waitOr(time.Duration((o.To-o.From)*float64(d)), done)
		o.down.Store(false)
		atomic.StoreInt64(&o.to, now())
	}()
	return func() {
		close(done)
		<-ended
	}
}

// waitOr waits for d and reports true, or false where done came first.
func waitOr(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}

// reconnectGrace is how long after an outage errors are still its doing: pooled
// connections are found dead one by one.
const reconnectGrace = int64(100 * time.Millisecond)

// explains reports whether an error in [call, reply] is the outage's doing.
func (o *outage) explains(e *oracle.Event, epoch int64) bool {
	from, to := atomic.LoadInt64(&o.from), atomic.LoadInt64(&o.to)
	return from != 0 && e.Reply+epoch >= from && (to == 0 || e.Call+epoch <= to+reconnectGrace)
}
