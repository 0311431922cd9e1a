package explore

import (
	"bytes"
	"time"

	"github.com/quotabench/quotabench/harness/explore/internal/bubble"
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
	*bubble.Engine
	trail *isolate.Trail
	text  []byte
}

// Begin implements [engine.Engine].
func (e *trailed) Begin() error {
	e.text = append(e.text[:0], doingSteps...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.Engine.Begin()
}

// Step implements [engine.Engine].
func (e *trailed) Step(c engine.Choice) error {
	e.text = append(append(e.text, ' '), c.String()...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.Engine.Step(c)
}

// Pass implements [engine.Local]. No token holds what follows.
func (e *trailed) Pass(d time.Duration) error {
	e.text = append(e.text[:0], doingProbe...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.Engine.Pass(d)
}

// End implements [engine.Engine].
func (e *trailed) End() error {
	if bytes.HasPrefix(e.text, []byte(doingSteps)) {
		copy(e.text, doingClose)
		if err := e.trail.Set(e.text); err != nil {
			return err
		}
	}
	return e.Engine.End()
}
