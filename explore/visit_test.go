package explore

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

var (
	errFork = errors.New("no further engine")
	errStep = errors.New("no step")
)

// twice is an engine that is had twice, the second time in vain.
type twice struct {
	engine.Engine
	forks atomic.Int32
	steps atomic.Int32
}

func (e *twice) Fork(*sched.Beat) (engine.Engine, error) {
	if e.forks.Add(1) == 1 {
		return e, nil
	}
	return nil, errFork
}

func (e *twice) Step(engine.Choice) error {
	e.steps.Add(1)
	return errStep
}

func (*twice) Begin() error               { return nil }
func (*twice) End() error                 { return nil }
func (*twice) Close() error               { return nil }
func (*twice) Snapshot() *engine.Snapshot { return &engine.Snapshot{} }

func (e *twice) Common() *engine.World {
	w := &engine.World{}
	w.Connect(e, &engine.Setup{})
	return w
}

// If a worker cannot be opened, no step is tried, and the others end.
func TestVisitEndsWithoutWorkers(t *testing.T) {
	e := new(twice)
	s := newSearch(e, strategies.Selection{Meta: &strategies.Meta{}},
		Config{Resources: Resources{Workers: 3}, Bounds: Bounds{DecisionTimeout: bounds.MaxDecisionTimeout}})
	w := &stateSearch{search: s, graph: newGraph(engine.Digest{})}
	edges := make([]edge, 2)
	for range edges {
		w.graph.add(0, 0, open{actor: -1}, []engine.Choice{{Kind: engine.StepActor}})
	}
	for i := range edges {
		edges[i].open = &w.graph.at(0, 0)[i]
	}
	c := s.newWorkers(t.Context())
	if err := c.visit(w, edges); !errors.Is(err, errFork) || e.steps.Load() > 0 || c.visited(0) || c.visited(1) {
		t.Errorf("it ended with %v, %d steps were tried", err, e.steps.Load())
	}
	before := c.gone
	if err := c.end(); err != nil || before != 1 || c.gone != 2 {
		t.Errorf("the other one ended with %v, %d before, %d in all", err, before, c.gone)
	}
}
