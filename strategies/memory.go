package strategies

import "sync/atomic"

// Tally is a running total for [Meter]. No decision may depend on it, so that an
// explorer need not tell two states apart that differ in nothing else.
type Tally struct{ atomic.Int64 }

// Flag asks for a round of a job. Any caller may set it, but only the job's Pending
// and Run may read it: an explorer takes it for the job's own state, and not for
// something that a caller has seen.
type Flag struct{ atomic.Bool }
