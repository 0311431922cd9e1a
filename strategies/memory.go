package strategies

import "sync/atomic"

// Tally is a running total for [Meter]. No decision may depend on it, so that an
// explorer need not tell two states apart that differ in nothing else.
type Tally struct{ atomic.Int64 }

// Flag asks for a round of a job. Only the job's Pending and Run may look at it,
// and only its setting is anybody's: an explorer takes it for the job's own, and
// not for something that a caller may have seen.
type Flag struct{ atomic.Bool }
