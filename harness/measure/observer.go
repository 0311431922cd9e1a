package measure

import "github.com/quotabench/quotabench/results"

// Observer is told how a measurement goes on. Calls come from one goroutine, except those of Filling.
type Observer interface {
	// Begin is told how many runs there will be.
	Begin(runs int)
	// Running is told which run starts.
	Running(strategy string, round, rounds int)
	// Filling is told which share of what subjects have used at the start is filled in, if that
	// takes requests. Calls come from several goroutines.
	Filling(share float64)
	// SoFar is given the runs of the round under way after each of them. What follows
	// from comparing runs is not yet in them.
	SoFar(round []results.Run)
	// Done is given each finished run of a round when that is complete, partial ones
	// included.
	Done(run results.Run)
	// EndRound is told that a round is complete.
	EndRound()
}

// Silent is an observer that does nothing.
var Silent Observer = silent{}

type silent struct{}

func (silent) Begin(int)                {}
func (silent) Running(string, int, int) {}
func (silent) Filling(float64)          {}
func (silent) SoFar([]results.Run)      {}
func (silent) Done(results.Run)         {}
func (silent) EndRound()                {}
