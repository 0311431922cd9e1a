package explore

import (
	"bytes"
	"time"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/isolate"
)

// What is done with an instance when a process dies, the first word of its trail. The
// schedule follows.
const (
	doingSteps = "steps"
	doingClose = "close" // after the steps
	doingProbe = "probe" // several windows later, at rest
)

// trailed is an engine of foreign code that leaves its schedule in the trail of its process.
type trailed struct {
	foreignEngine
	trail *isolate.Trail
	text  []byte
}

// foreignEngine is one of foreign code.
type foreignEngine interface {
	engine.Engine
	engine.Keeper
	engine.Passer
}

// Begin implements [engine.Engine].
func (e *trailed) Begin() error {
	e.text = append(e.text[:0], doingSteps...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.foreignEngine.Begin()
}

// Step implements [engine.Engine].
func (e *trailed) Step(c engine.Choice) error {
	e.text = append(append(e.text, ' '), c.String()...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.foreignEngine.Step(c)
}

// Pass implements [engine.Passer]. No token holds what follows.
func (e *trailed) Pass(d time.Duration) error {
	e.text = append(e.text[:0], doingProbe...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.foreignEngine.Pass(d)
}

// End implements [engine.Engine].
func (e *trailed) End() error {
	if bytes.HasPrefix(e.text, []byte(doingSteps)) {
		copy(e.text, doingClose)
		if err := e.trail.Set(e.text); err != nil {
			return err
		}
	}
	return e.foreignEngine.End()
}
