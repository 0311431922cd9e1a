// Package monitor watches a run on the wall clock: whether threads got a core ([Cores]), whether calls of the strategy
// return ([WatchCalls]), whether the stores are there and keep what was put there ([Stores]), and how many keys they
// hold ([Keys]).
package monitor

import "time"

// The distance between two looks at a store, and how long it may take to answer one. Tests of faults look more often,
// so that their runs can be short.
var (
	Every   = 100 * time.Millisecond
	Timeout = 1500 * time.Millisecond
)
