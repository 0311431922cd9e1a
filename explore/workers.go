package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/quotabench/quotabench/explore/internal/engine"
)

// workersFrom is the number of states from which on several workers try steps: opening
// further engines takes longer than a small search.
const workersFrom = 256

// perWorker is how many steps a worker is given at once, at least.
const perWorker = 64

// workers try steps on several engines at once. What they lead to is taken in by the
// search alone, in the order of the steps, so it finds the same with any number of workers.
type workers struct {
	search *search
	ctx    context.Context // of the one walk that it serves
	// size is the number of workers, the search itself among them.
	size int
	// gaveUp is closed when nobody waits for the search any more.
	gaveUp <-chan struct{}
	// work is where each of the others gets its batches. It replies once it has been opened, to each batch, and when it
	// ends. If it is given up, that is its reply to the batch, too.
	work    []chan batch
	replies chan reply
	gone    int  // how many have ended
	last    *job // the batch of steps that was tried last
}

// reply is that of a worker. ended is set for its last one.
type reply struct {
	err   error
	ended bool
}

// errEnded is the error of a worker whose goroutine the strategy has ended, e.g. by the
// FailNow of a test.
var errEnded = errors.New("the strategy has ended the goroutine that it was called on")

// batch is work that several searches share, each over an engine of its own.
type batch interface {
	run(s *search)
	drop()
}

// turns have each worker take what no other one has begun.
type turns struct {
	next atomic.Int64
	of   int // how many there are
}

// begin returns the number of one that nobody has begun; ok is false if there is none.
func (t *turns) begin() (i int, ok bool) {
	i = int(t.next.Add(1)) - 1
	return i, i < t.of
}

// drop has nobody begin what has not been begun.
func (t *turns) drop() { t.next.Store(int64(t.of)) }

// job is a batch of steps.
type job struct {
	turns
	pass  *stateSearch
	edges []edge
	// groups are where the steps of each state begin and end.
	groups [][2]int
	// finished marks the edges whose outcome is there. A worker that was given up may yet
	// write that of another one.
	finished []atomic.Bool
}

func (s *search) newWorkers(ctx context.Context) *workers {
	c := &workers{search: s, ctx: ctx, size: 1, gaveUp: s.cfg.gaveUp}
	if _, ok := s.Engine.(engine.Forker); ok {
		c.size = s.cfg.Workers
	}
	return c
}

// batch is how many steps are tried at once in a walk that has met so many states.
func (c *workers) batch(states int) int {
	if _, branches := c.search.Engine.(engine.Brancher); c.size <= 1 && !branches || states < workersFrom {
		return 1
	}
	return c.size * perWorker
}

// visit tries steps. If a worker has ended with an error, some of them are not [visited].
func (c *workers) visit(search *stateSearch, edges []edge) error {
	j := &job{pass: search, edges: edges, finished: make([]atomic.Bool, len(edges))}
	for i := range edges {
		switch {
		case edges[i].known:
			j.finished[i].Store(true)
		case i == 0 || edges[i].open != edges[i-1].open:
			j.groups = append(j.groups, [2]int{i, i + 1})
		default:
			j.groups[len(j.groups)-1][1] = i + 1
		}
	}
	j.of = len(j.groups)
	c.last = j
	if j.of <= 1 {
		j.run(c.search)
		return nil
	}
	return c.share(j)
}

// share has all workers do a batch. If one has ended with an error, some of it is not done.
func (c *workers) share(j batch) error {
	if len(c.work) == 0 {
		c.replies = make(chan reply, 2*c.size)
		for range c.size - 1 {
			ch := make(chan batch, 1)
			c.work = append(c.work, ch)
			go c.worker(ch)
		}
		if err := c.replied(); err != nil {
			return err
		}
	}
	for _, ch := range c.work {
		ch <- j
	}
	j.run(c.search)
	return c.replied() // they read what the search writes once it goes on
}

// replied waits for a reply of each worker, and returns the first error.
func (c *workers) replied() (first error) {
	for range c.work {
		if reply := <-c.replies; reply.ended {
			c.gone++
			first = cmp.Or(first, reply.err, errEnded)
		}
	}
	return first
}

// visited reports whether the outcome of a step of the last batch is there.
func (c *workers) visited(i int) bool { return c.last.finished[i].Load() }

// worker tries steps on an engine of its own until there is no more work.
func (c *workers) worker(work <-chan batch) {
	var busy atomic.Bool
	busy.Store(true)
	done := func() bool {
		ok := busy.Swap(false) // else it was given up meanwhile
		if ok {
			c.replies <- reply{}
		}
		return ok
	}
	ended := func(err error) {
		busy.Store(false)
		c.replies <- reply{err, true}
	}
	c.search.beside(c.ctx, ended, func(own *search) error {
		for done() {
			select {
			case j, more := <-work:
				if !more {
					return own.control(c.ctx)
				}
				busy.Store(true)
				j.run(own)
			case <-c.gaveUp:
				return nil
			}
		}
		return nil
	})
}

// beside calls f with a search over an engine of its own, which is given up as the search
// is if the strategy does not return. left is told what that ended with, in any case.
func (s *search) beside(ctx context.Context, left func(error), f func(own *search) error) {
	err := errEnded
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Where: "a step", Value: value, Stack: debug.Stack()}
		}
		left(err)
	}()
	alone := func(setup *engine.Setup) (struct{}, error) {
		e, err := s.Engine.(engine.Forker).Fork(setup.Beat)
		if err != nil {
			return struct{}{}, fmt.Errorf("open another engine: %w", err)
		}
		own := *s
		own.Engine, own.World = e, e.Common()
		// Its runs must begin with the scripts that the search's begin with.
		if brancher, ok := e.(engine.Brancher); ok {
			brancher.Trace(s.traced)
		}
		err = own.serially()
		if err == nil {
			own.normal = s.normal // which knows the orders of the clients, too
			err = f(&own)
		}
		return struct{}{}, errors.Join(err, e.Close())
	}
	if s.Traits.Wall { // whose engine gives up what hangs by itself
		_, err = alone(s.cfg.setup())
		return
	}
	_, err = watched(ctx, &s.cfg, alone)
}

// run tries steps until there are none left.
func (j *job) run(s *search) {
	for i, ok := j.begin(); ok; i, ok = j.begin() {
		j.group(s, j.groups[i][0], j.groups[i][1])
	}
}

// group tries steps from one state, several in one run if the engine can.
func (j *job) group(s *search, from, to int) {
	for left := to - from; left > 0; {
		left -= j.together(s, from, to, left > 1)
	}
}

// together tries those of a group that one run can, one at least, and returns how many. The
// last ones come first: the first instance is asked what is in use, which ends a run if
// an actor of it has gone on, and these are mostly among the first.
func (j *job) together(s *search, from, to int, several bool) (n int) {
	graph := j.pass.graph
	path := append(graph.pathTo(j.edges[from].open.node, nil), engine.Choice{})
	brancher, ok := s.Engine.(engine.Brancher)
	several = several && ok
	for i := to - 1; i >= from; i-- {
		if j.finished[i].Load() {
			continue
		}
		edge := &j.edges[i]
		path[len(path)-1] = graph.choices[edge.open.next[edge.number]]
		if n == 0 {
			choice := path[len(path)-1]
			edge.outcome = s.look(j.pass, choice, edge.open.actor, s.retrace(path, edge.open.trail, several))
			if edge.err == nil && !several && len(path) >= aheadFrom {
				edge.ahead = s.goAhead(j.pass, &edge.outcome)
			}
		} else {
			ok, err := brancher.Again(path[len(path)-1])
			if !ok && err == nil {
				continue
			}
			outcome := s.look(j.pass, path[len(path)-1], edge.open.actor, err)
			if outcome.err != nil {
				return n // it is tried in a run of its own, which tells whether that is so
			}
			if !brancher.Sound() {
				continue
			}
			edge.outcome = outcome
		}
		n++
		j.finished[i].Store(true)
		if edge.err != nil {
			return n
		}
		if !several {
			break
		}
	}
	if err := s.End(); err != nil {
		j.edges[from].err = errors.Join(j.edges[from].err, err)
	}
	return n
}

// end has the workers end, and waits for that.
func (c *workers) end() (first error) {
	for _, ch := range c.work {
		close(ch)
	}
	for c.gone < len(c.work) { // those that were at work reply to their batch first
		if reply := <-c.replies; reply.ended {
			c.gone++
			first = cmp.Or(first, reply.err)
		}
	}
	return first
}
