package monitor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/stacks"
)

// What a caller does, in the low bits of its state. The bits above count how often it
// has begun something else: while they do not change, the caller stays where it is.
const (
	waiting   uint64 = iota // for a request, or it has ended: no bit is set
	busy                    // with a share of the stream, most of the time in a call of the strategy
	cancelled               // as busy, and the call's context was cancelled
	givenUp                 // its goroutine is left to itself
	stateBits = 2
	stateMask = 1<<stateBits - 1
)

// LongCall is from how many nanoseconds on a caller calls [Caller.Returned]. Every deadline is longer.
const LongCall = int64(time.Millisecond)

// errOverdue is part of a call's error if its context was cancelled because it took too long.
var errOverdue = fmt.Errorf("the decision took longer than it may (--decision-timeout): %w", context.DeadlineExceeded)

// Caller is a goroutine that calls the strategy. Its methods are for that goroutine alone.
type Caller struct {
	state     atomic.Uint64
	goroutine uint64 // its number
	beats     uint64
	base      context.Context // of the pass
	ctx       context.Context // of its calls, until one takes too long
	calls     func() string
	mu        sync.Mutex
	cancel    context.CancelFunc // of the call under way; guarded by mu
}

// Init prepares a caller. Calls tells which call of the strategy it is in; "" is none. It is called while the caller
// stands still.
func (c *Caller) Init(ctx context.Context, calls func() string) {
	c.base = ctx
	c.calls = calls
	c.renew()
}

// Start announces that the caller runs in this goroutine, and waits.
func (c *Caller) Start() {
	c.goroutine = stacks.Current()
	c.Rest()
}

// Context is that of the caller's next call.
func (c *Caller) Context() context.Context { return c.ctx }

// renew gives the caller a context that is not cancelled.
func (c *Caller) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
	c.ctx, c.cancel = context.WithCancel(c.base)
}

// Beat announces that the caller begins something. It ends the goroutine if that was given up.
func (c *Caller) Beat() {
	c.beats++
	c.changed(c.state.Swap(c.beats<<stateBits | busy))
}

// Rest announces that the caller waits.
func (c *Caller) Rest() {
	c.beats++
	c.changed(c.state.Swap(c.beats << stateBits))
}

// changed looks at the state that the caller was in, which a look may have set.
func (c *Caller) changed(was uint64) (late bool) {
	switch was & stateMask {
	case givenUp:
		c.state.Store(was)
		runtime.Goexit()
	case cancelled:
		c.renew()
		return true
	}
	return false
}

// Returned follows a call that took at least [LongCall]. The error says so if it took too long.
func (c *Caller) Returned(err error) error {
	c.beats++
	was := c.state.Load()
	for was&stateMask != givenUp && !c.state.CompareAndSwap(was, c.beats<<stateBits|busy) {
		was = c.state.Load()
	}
	if c.changed(was) && err != nil {
		err = errors.Join(errOverdue, err)
	}
	return err
}

// Ended notes that the caller's loop is over. It is false if the caller was given up.
func (c *Caller) Ended() bool {
	for {
		was := c.state.Load()
		if was&stateMask == givenUp {
			return false
		}
		if c.state.CompareAndSwap(was, (c.beats+1)<<stateBits) {
			return true
		}
	}
}

// Close frees the caller's context. Any goroutine may call it.
func (c *Caller) Close() { c.cancel() }

// abortWait is how long a call may go on after its context was cancelled because the
// run is to end.
const abortWait = 300 * time.Millisecond

// The distance between two looks at the callers.
const (
	leastLook = time.Millisecond
	mostLook  = 100 * time.Millisecond
)

// calls looks at the callers of a pass once in a while, so that watching costs a
// decision nothing. It counts its looks and not the time: a program that stood still
// itself has let no call go on.
type calls struct {
	crew   []*Caller
	seen   []uint64 // state, without its low bits
	looks  []int    // since it changed
	giveUp func(caller int, err *guard.HungError)

	each         time.Duration
	least, most  int // looks until a call is cancelled, and until it is given up
	aborted, cut int // looks since the context ended, and until calls are given up then
}

// WatchCalls cancels calls that take longer than the deadline, and gives up those that do not return after that. It
// calls giveUp for each. A deadline of 0 watches nothing. The returned function ends it.
func WatchCalls(ctx context.Context, deadline time.Duration, crew []*Caller,
	giveUp func(caller int, err *guard.HungError)) (end func()) {
	if deadline == 0 {
		return func() {}
	}
	each := min(max(deadline/20, leastLook), mostLook)
	o := &calls{
		crew: crew, seen: make([]uint64, len(crew)), looks: make([]int, len(crew)), giveUp: giveUp, each: each,
		least: int((deadline + each - 1) / each), cut: int(abortWait / each),
	}
	o.most = o.least + max(int(guard.Grace(deadline)/each), 1)
	return clock.Aside(func(wait func(time.Duration) bool) {
		for wait(each) {
			o.look(ctx.Err() != nil)
		}
	})
}

// look looks at all callers.
func (o *calls) look(aborted bool) {
	if aborted {
		o.aborted++
	}
	var overdue []int
	for i, caller := range o.crew {
		v := caller.state.Load()
		kind := v & stateMask
		if kind == waiting || kind == givenUp || v>>stateBits != o.seen[i] {
			o.seen[i], o.looks[i] = v>>stateBits, 0
			continue
		}
		o.looks[i]++
		if o.looks[i] >= o.least && kind == busy {
			caller.cancelCall(v)
		}
		if o.looks[i] >= o.most || o.aborted > o.cut && o.looks[i] >= o.cut {
			overdue = append(overdue, i)
		}
	}
	if len(overdue) > 0 {
		o.leave(overdue)
	}
}

// cancelCall cancels the context of the call that a caller in that state is in.
func (c *Caller) cancelCall(state uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.CompareAndSwap(state, state&^stateMask|cancelled) {
		c.cancel()
	}
}

// leave leaves those callers to themselves that stand in a call of the strategy.
func (o *calls) leave(overdue []int) {
	all := stacks.All()
	for _, i := range overdue {
		caller := o.crew[i]
		after := time.Duration(o.looks[i]) * o.each
		o.looks[i] = 0
		v := caller.state.Load()
		call := caller.calls()
		if call == "" {
			continue // it is the harness that is slow
		}
		goroutine := all[caller.goroutine]
		if v>>stateBits != o.seen[i] || v&stateMask == waiting || !caller.state.CompareAndSwap(v, v|givenUp) {
			continue // it has returned after all
		}
		o.giveUp(i, &guard.HungError{Where: call, At: goroutine.Where(goroutine.Frames()), After: after,
			Stack: []byte(goroutine.Text)})
	}
}
