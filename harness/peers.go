package harness

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// Peers are other processes that put one load on the same subjects together with this one. Process n of N, counted from
// 0, has the operations n, n+N, n+2N and so on of one stream.
type Peers interface {
	// Run names what all of them keep in stores: lower-case letters and digits, the same for all.
	Run() string
	// Place is the number of this process, and how many there are.
	Place() (number, of int)
	// Meet returns once all have come to the same step of a run, with a moment of the clock that they have in common. For
	// steps that begin with "start" it lies so far ahead that each has the answer by then. An error says who was lost, or
	// why all end. ctx ends the wait.
	Meet(ctx context.Context, step string) (time.Time, error)
	// Clock is how far the clock of this process is ahead of the common one, and by how much that may be wrong.
	Clock() (ahead, wrong time.Duration)
	// Judged is told what is known here of a run. The verdict on it follows from the histories of all.
	Judged(run *results.Run, facts *Facts)
}

// Place is the number of this process, from 0, and how many drive the load together.
func (p *Plan) Place() (number, of int) {
	if p.Peers == nil {
		return 0, 1
	}
	return p.Peers.Place()
}

// First reports whether this process does what is done once for all that drive the load.
func (p *Plan) First() bool {
	number, _ := p.Place()
	return number == 0
}

// Ops is how many of the first n operations of the stream are this process' own.
func (p *Plan) Ops(n int64) int64 {
	number, of := p.Place()
	return (n + int64(of-1-number)) / int64(of)
}

// own are this process' own of the arrivals of the stream.
func (p *Plan) own(all workloads.Arrivals) workloads.Arrivals {
	if p.Peers == nil {
		return all
	}
	number, of := p.Place()
	return &everyNth{arrivals: all, skip: number, then: of - 1}
}

// everyNth passes over some arrivals before the first and between two.
type everyNth struct {
	arrivals   workloads.Arrivals
	skip, then int
}

func (e *everyNth) Next() (time.Duration, bool) {
	for range e.skip {
		if _, ok := e.arrivals.Next(); !ok {
			return 0, false
		}
	}
	e.skip = e.then
	return e.arrivals.Next()
}
