package clock

import "time"

// Runtime is the clock of package time as it stands: within a bubble of
// testing/synctest that is the bubble's, which [Wall] does not follow.
type Runtime struct{ Wall }

// Now is the present moment without a monotonic reading.
func (Runtime) Now() time.Time { return time.Now().Round(0).UTC() }
