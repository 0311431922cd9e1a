package explore

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"github.com/quotabench/quotabench/harness/explore/engine"
)

// trail keeps the schedule that is being run in a file, so that another process knows it
// when this one has died of it.
type trail struct {
	f    *os.File
	text []byte // its length, then what is being done, then the schedule
	err  error
}

// What is done with an instance when a process dies.
const (
	doingSteps = "steps"
	doingClose = "close" // after the steps
	doingProbe = "probe" // several windows later, at rest
)

func openTrail(path string) (*trail, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the trail: %w", err)
	}
	return &trail{f: f}, nil
}

func (t *trail) begin(what string) {
	t.text = append(append(t.text[:0], make([]byte, 8)...), what...)
	t.write()
}

func (t *trail) step(c engine.Choice) {
	t.text = append(append(t.text, ' '), c.String()...)
	t.write()
}

// close says that the instances are being closed.
func (t *trail) close() {
	if len(t.text) > 8 {
		copy(t.text[8:], doingClose)
		t.write()
	}
}

func (t *trail) write() {
	binary.BigEndian.PutUint64(t.text, uint64(len(t.text)-8))
	if _, err := t.f.WriteAt(t.text, 0); err != nil && t.err == nil {
		t.err = fmt.Errorf("write the trail: %w", err)
	}
}

// readTrail is what was being done last, and the schedule of it. Both are empty where
// nothing had begun.
func readTrail(path string) (doing string, steps []engine.Choice, err error) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 8 {
		return "", nil, err
	}
	n := binary.BigEndian.Uint64(b)
	if n > uint64(len(b)-8) {
		return "", nil, fmt.Errorf("the trail of a search is cut short")
	}
	doing, rest, _ := strings.Cut(string(b[8:8+n]), " ")
	if steps, err = parsePath(rest); err != nil {
		return "", nil, fmt.Errorf("the trail of a search: %w", err)
	}
	return doing, steps, nil
}

// trailed is an engine that keeps its trail.
type trailed struct {
	foreignEngine
	t *trail
}

// foreignEngine is one of foreign code.
type foreignEngine interface {
	engine.Engine
	engine.Flights
	engine.Keeper
}

// Begin implements [engine.Engine].
func (e trailed) Begin() error {
	e.t.begin(doingSteps)
	return e.foreignEngine.Begin()
}

// Step implements [engine.Engine].
func (e trailed) Step(c engine.Choice) error {
	e.t.step(c)
	return e.foreignEngine.Step(c)
}

// Retrace implements [engine.Engine]. Engines of foreign code repeat all of a path.
func (e trailed) Retrace(path []engine.Choice, _ []engine.Digest) error {
	if err := e.Begin(); err != nil {
		return err
	}
	for _, c := range path {
		if err := e.Step(c); err != nil {
			return err
		}
	}
	return nil
}

// Probe implements [engine.Engine].
func (e trailed) Probe() (admitted, conclusive bool, err error) {
	e.t.begin(doingProbe)
	return e.foreignEngine.Probe()
}

// End implements [engine.Engine].
func (e trailed) End() error {
	e.t.close()
	return e.foreignEngine.End()
}

// pathText is a schedule as tokens hold it.
func pathText(path []engine.Choice) string {
	steps := make([]string, len(path))
	for i, c := range path {
		steps[i] = c.String()
	}
	return strings.Join(steps, " ")
}
