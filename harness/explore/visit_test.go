package explore

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/strategies"
)

var (
	errFork = errors.New("no further engine")
	errStep = errors.New("no step")
)

// slowly is an engine that is had twice, the second time in vain, and only once the first
// one tries a step.
type slowly struct {
	engine.Engine
	forks           atomic.Int32
	trying, release chan struct{}
	refused         chan struct{}
	once            sync.Once
}

func (e *slowly) Fork(*sched.Beat) (engine.Engine, error) {
	if e.forks.Add(1) == 1 {
		return e, nil
	}
	<-e.trying
	close(e.refused)
	return nil, errFork
}

func (e *slowly) Retrace([]engine.Choice, []engine.Digest) error {
	e.once.Do(func() { close(e.trying) })
	<-e.release
	return errStep
}

func (*slowly) Trail() []engine.Digest     { return nil }
func (*slowly) Begin() error               { return nil }
func (*slowly) End() error                 { return nil }
func (*slowly) Close() error               { return nil }
func (*slowly) Snapshot() *engine.Snapshot { return &engine.Snapshot{} }

func (e *slowly) Common() *engine.World {
	w := &engine.World{}
	w.Connect(e, &engine.Setup{})
	return w
}

// If a worker ends before it is handed a batch, the search waits for one that has begun
// with it: they share the graph, to which the search adds.
func TestVisitWaitsForWorkers(t *testing.T) { synctest.Test(t, testVisitWaitsForWorkers) }

func testVisitWaitsForWorkers(t *testing.T) {
	e := &slowly{trying: make(chan struct{}), release: make(chan struct{}), refused: make(chan struct{})}
	s := newSearch(e, strategies.Selection{Meta: &strategies.Meta{}}, Config{Workers: 3, DecisionTimeout: harness.MaxDecisionTimeout})
	w := &stateSearch{search: s, graph: newGraph(engine.Digest{})}
	edges := make([]edge, 2)
	for range edges {
		w.graph.add(0, 0, open{actor: -1}, []engine.Choice{{Kind: engine.StepActor}})
	}
	for i := range edges {
		edges[i].of = &w.graph.at(0, 0)[i]
	}
	c := s.newWorkers(t.Context())
	c.tried, c.left = make(chan struct{}, c.size), make(chan departure, c.size)
	for range c.size - 1 {
		ch := make(chan batch)
		c.work = append(c.work, ch)
		go c.worker(ch)
		for e.forks.Load() == 0 {
			_ = clock.Wall{}.Sleep(t.Context(), time.Millisecond)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.visit(w, edges) }()
	<-e.refused
	synctest.Wait()
	select {
	case err := <-ended:
		t.Errorf("it ended with %v, and a worker tries a step", err)
		ended <- err
	default:
	}
	close(e.release)
	if err := <-ended; !errors.Is(err, errFork) {
		t.Errorf("it ended with %v", err)
	}
	w.graph.seen[engine.Digest{A: 1}] = struct{}{}
	if err := c.end(); err != nil || c.gone != 1 || c.visited(0) == c.visited(1) {
		t.Errorf("the other one ended with %v, %d before, and steps were tried: %t, %t", err, c.gone, c.visited(0), c.visited(1))
	}
}
