package prove

import "time"

// SetBudget sets how long an exploration may take if its options do not say so.
func SetBudget(duration time.Duration) { budget = duration }
