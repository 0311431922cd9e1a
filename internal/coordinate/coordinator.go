package coordinate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Plan is what a coordinator knows of a run before its generators join.
type Plan struct {
	Welcome
	// Generators is how many there are.
	Generators int
	// Fingerprint of the plan that all must have.
	Fingerprint string
	// Token that generators have to show; empty if the transport sees to that.
	Token string
	// Wait is how long all have to join.
	Wait time.Duration
	// Keep makes a file for what a generator sends under a name. It is called if the plan
	// says to collect.
	Keep func(index int, name string) (io.WriteCloser, error)
}

// ending is how long generators have to end after they were told to stop.
const ending = 15 * time.Second

// Coordinator serves the generators of one run.
type Coordinator struct {
	plan   Plan
	ctx    context.Context // ends when the run has to, with the reason
	cancel context.CancelCauseFunc
	over   chan struct{} // the connections of all generators that joined have ended

	mu      sync.Mutex
	changed *sync.Cond // what generators wait for
	stopped string
	soft    bool // nothing has failed: generators end together
	failed  bool
	apart   string // why no step is met any longer; empty if that is not so
	members map[int]*member
	started bool // all have joined
	waiting int  // at the next step
	left    int  // those whose connections have ended
	conns   map[net.Conn]bool
}

// member is a generator as the coordinator sees it.
type member struct {
	Hello
	State
	at     string // the step that it waits at; empty for none
	begins int64  // when the last one that was met does
	ended  bool
	file   io.WriteCloser
}

// State of a generator.
type State struct {
	// Text says what it does, in one line.
	Text string
	// Share of the whole that it has done, 0 to 1.
	Share float64
}

// StoppedError ends all generators of a run.
type StoppedError struct{ Reason string }

func (e *StoppedError) Error() string { return e.Reason }

// NewCoordinator returns one that serves a plan.
func NewCoordinator(p Plan) *Coordinator {
	c := &Coordinator{plan: p, members: map[int]*member{}, conns: map[net.Conn]bool{}, over: make(chan struct{})}
	c.changed = sync.NewCond(&c.mu)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// Run serves until all generators have ended, and closes l. If one is lost, or ctx ends, it
// stops the others, and returns why: a [StoppedError], or the cause of ctx.
func (c *Coordinator) Run(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })()
	var serving sync.WaitGroup
	serving.Go(func() { c.accept(l, &serving) })
	late := time.AfterFunc(c.plan.Wait, c.missing)
	select {
	case <-c.over:
	case <-c.ctx.Done():
		c.stop(context.Cause(c.ctx))
		select {
		case <-c.over:
		case <-time.After(ending):
		}
	}
	late.Stop()
	c.mu.Lock()
	for conn := range c.conns {
		_ = conn.Close() // it may have been closed at this moment
	}
	c.mu.Unlock()
	err := l.Close()
	serving.Wait()
	return cmp.Or(context.Cause(c.ctx), err)
}

func (c *Coordinator) accept(l net.Listener, serving *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			c.mu.Lock()
			c.fail("the coordinator cannot be reached any longer: %v", err)
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
		c.conns[conn] = true
		c.mu.Unlock()
		serving.Go(func() {
			c.serve(conn)
			c.mu.Lock()
			delete(c.conns, conn)
			c.mu.Unlock()
		})
	}
}

// fail ends the run. Only the first reason counts. It is called under mu.
func (c *Coordinator) fail(format string, args ...any) {
	why := &StoppedError{fmt.Sprintf(format, args...)}
	c.failed = true
	c.cancel(why)
	c.soft = false // generators wait for what will not be
	c.changed.Broadcast()
}

// Gone says that the process of a generator has ended. Of one that has joined its connection says so.
func (c *Coordinator) Gone(index int, words string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[index] == nil {
		c.fail("generator %d of %d has ended: %s", index, c.plan.Generators, words)
	}
}

// missing ends the run if not all have joined in time.
func (c *Coordinator) missing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var who []string
	for i := range c.plan.Generators {
		if c.members[i+1] == nil {
			who = append(who, fmt.Sprint(i+1))
		}
	}
	if len(who) > 0 && !c.started {
		c.fail("generators %s of %d did not join within %v", strings.Join(who, ", "), c.plan.Generators, c.plan.Wait)
	}
}

// stop tells all generators to end. If nothing has failed they do so at the same step.
func (c *Coordinator) stop(why error) {
	_, failed := errors.AsType[*StoppedError](why)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped, c.soft = why.Error(), !failed; errors.Is(why, context.Canceled) {
		c.stopped = "interrupted"
	}
	c.checkOver()
}

// States are those of all generators; of those that have not joined it says so.
func (c *Coordinator) States() []State {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Repeat([]State{{Text: "has not joined"}}, c.plan.Generators)
	for i, g := range c.members {
		all[i-1] = g.State
	}
	return all
}

// Summary is all states in one line, e.g. "3 generators: round 2 of 8; 1: has not joined", and the least share
// that one has done.
func Summary(states []State) (text string, share float64) {
	counts, share := map[string]int{}, 1.0
	for _, s := range states {
		counts[s.Text]++
		share = min(share, s.Share)
	}
	texts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	for i, t := range texts {
		unit := ""
		if i == 0 {
			unit = " generators"
		}
		texts[i] = fmt.Sprintf("%d%s: %s", counts[t], unit, t)
	}
	return strings.Join(texts, "; "), share
}
