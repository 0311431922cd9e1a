// Package looks says how often a measurement looks whether its stores are as they
// were left. Tests of faults look more often, so that their runs can be short.
package looks

import "time"

// The distance between two looks, and how long a store may take to answer one.
var (
	Every   = 100 * time.Millisecond
	Timeout = 1500 * time.Millisecond
)
