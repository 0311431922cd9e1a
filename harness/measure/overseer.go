package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/guard"
	"github.com/quotabench/quotabench/internal/stacks"
)

// What a worker does, in the low bits of its state. The bits above count how often it
// has begun something else: while they stay as they are, so does the worker.
const (
	waiting   uint64 = iota // for a request, or it has ended: no bit is set
	busy                    // with a share of the stream, most of the time in a call of the strategy
	cancelled               // as busy, and the call's context was cancelled
	givenUp                 // its goroutine is left to itself
	stateBits = 2
	stateMask = 1<<stateBits - 1
)

// longCall is from how many nanoseconds on a worker asks, when a call has returned,
// whether it was cancelled or given up meanwhile. Every deadline is longer.
const longCall = int64(time.Millisecond)

// oversight is the part of a worker that its pass's overseer uses, too.
type oversight struct {
	state     atomic.Uint64
	goroutine uint64 // its number
	mu        sync.Mutex
	cancel    context.CancelFunc // of the call under way; guarded by mu
}

// errOverdue is what a call's error is, too, where its context was cancelled since it
// took too long.
var errOverdue = fmt.Errorf("the decision took longer than it may (--decision-timeout): %w", context.DeadlineExceeded)

// renew gives the worker a context that is not cancelled.
func (k *worker) renew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel != nil {
		k.cancel()
	}
	k.ctx, k.cancel = context.WithCancel(k.base)
}

// beat announces that the worker begins something. It ends the goroutine where that
// was given up.
func (k *worker) beat() {
	k.beats++
	k.changed(k.state.Swap(k.beats<<stateBits | busy))
}

// rest announces that the worker waits.
func (k *worker) rest() {
	k.beats++
	k.changed(k.state.Swap(k.beats << stateBits))
}

// changed looks at the state that the worker was in, which its overseer may have set.
func (k *worker) changed(was uint64) (late bool) {
	switch was & stateMask {
	case givenUp:
		k.state.Store(was)
		runtime.Goexit()
	case cancelled:
		k.renew()
		return true
	}
	return false
}

// returned follows a call that took long, and says so in its error where it took too
// long.
func (k *worker) returned(err error) error {
	k.beats++
	was := k.state.Load()
	for was&stateMask != givenUp && !k.state.CompareAndSwap(was, k.beats<<stateBits|busy) {
		was = k.state.Load()
	}
	if k.changed(was) && err != nil {
		err = errors.Join(errOverdue, err)
	}
	return err
}

// ended notes that the worker's loop is over. It is false where it was given up.
func (k *worker) ended() bool {
	for {
		was := k.state.Load()
		if was&stateMask == givenUp {
			return false
		}
		if k.state.CompareAndSwap(was, (k.beats+1)<<stateBits) {
			return true
		}
	}
}

// hung is a worker that was given up.
type hung struct {
	guard.HungError
	k *worker
}

// abortWait is how long a call may go on after its context was cancelled because the
// run is to end.
const abortWait = 300 * time.Millisecond

// The distance between two looks at the workers.
const (
	leastLook = time.Millisecond
	mostLook  = 100 * time.Millisecond
)

// overseer looks at the workers of a pass once in a while, so that watching costs a
// decision nothing. It counts its looks and not the time: a program that stood still
// itself has let no call go on.
type overseer struct {
	d     *drive
	crew  []*worker
	seen  []uint64 // state, without its low bits
	looks []int    // since it changed
	done  func()

	each         time.Duration
	least, most  int // looks until a call is cancelled, and until it is given up
	aborted, cut int // looks since the context ended, and until calls are given up then
}

// oversee cancels calls that take longer than the deadline, and gives up those that do
// not return after that. done is called for each worker that is given up.
func (d *drive) oversee(ctx context.Context, crew []*worker, done func()) (end func()) {
	if d.deadline == 0 {
		return func() {}
	}
	each := min(max(d.deadline/20, leastLook), mostLook)
	o := &overseer{
		d: d, crew: crew, seen: make([]uint64, len(crew)), looks: make([]int, len(crew)), done: done, each: each,
		least: int((d.deadline + each - 1) / each), cut: int(abortWait / each),
	}
	o.most = o.least + max(int(guard.Grace(d.deadline)/each), 1)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(each)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				o.look(ctx.Err() != nil)
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// look looks at all workers.
func (o *overseer) look(aborted bool) {
	if aborted {
		o.aborted++
	}
	var overdue []int
	for i, k := range o.crew {
		v := k.state.Load()
		kind := v & stateMask
		switch {
		case kind == waiting || kind == givenUp || v>>stateBits != o.seen[i]:
			o.seen[i], o.looks[i] = v>>stateBits, 0
			continue
		}
		o.looks[i]++
		if o.looks[i] >= o.least && kind == busy {
			k.cancelCall(v)
		}
		if o.looks[i] >= o.most || o.aborted > o.cut && o.looks[i] >= o.cut {
			overdue = append(overdue, i)
		}
	}
	if len(overdue) > 0 {
		o.giveUp(overdue)
	}
}

// cancelCall cancels the context of the call that a worker in that state is in.
func (k *worker) cancelCall(state uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state.CompareAndSwap(state, state&^stateMask|cancelled) {
		k.cancel()
	}
}

// giveUp leaves those workers to themselves that stand in a call of the strategy, and
// ends the pass.
func (o *overseer) giveUp(overdue []int) {
	all := stacks.All()
	for _, i := range overdue {
		k := o.crew[i]
		after := time.Duration(o.looks[i]) * o.each
		o.looks[i] = 0
		v := k.state.Load()
		if !k.calling() {
			continue // it is the harness that is slow
		}
		g := all[k.goroutine]
		if v>>stateBits != o.seen[i] || v&stateMask == waiting || !k.state.CompareAndSwap(v, v|givenUp) {
			continue // it has returned after all
		}
		o.d.stop.Store(true)
		o.d.hung = append(o.d.hung, hung{guard.HungError{Where: k.doing(), At: g.Where(g.Frames()), After: after, Stack: []byte(g.Text)}, k})
		o.done()
	}
}

// calling reports whether the worker is in a call of the strategy. It may be read by others
// while all goroutines are stopped, or were since.
func (k *worker) calling() bool { return k.call != 0 || k.settling != nil }

// deadline is that of a call: calls return by the wall clock, and under any other one
// none is watched.
func (m *measurement) deadline() time.Duration {
	if m.tb != wallTime {
		return 0
	}
	return m.cfg.DecisionTimeout
}

// A strategy that has failed is left soon.
const lostDeadline = time.Second

// lose notes that the strategy has failed in a way after which it may not answer.
func (s *site) lose() {
	s.lost = true
	if s.Session != nil {
		s.Deadline = min(s.Deadline, lostDeadline)
	}
}

// hung notes so if err is that a call did not return.
func (s *site) hung(err error) {
	var h *guard.HungError
	if errors.As(err, &h) {
		s.lose()
	}
}

// aside is how long what belongs to several calls may take, such as a round of a job.
func (s *site) aside() time.Duration {
	if s.lost {
		return s.Deadline
	}
	return 4 * s.Deadline
}

// failure is why the strategy could not be driven to the end, or nil.
func (d *drive) failure() error {
	if err := d.crash.Load(); err != nil {
		return err
	}
	if len(d.hung) > 0 {
		return &d.hung[0].HungError
	}
	return nil
}
