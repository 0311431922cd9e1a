package results

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/format"
)

// AtRate is how often a property broke in a simulation, in which each subject was asked for
// at a stated rate.
type AtRate struct {
	// Rate of the requests of each subject, per second.
	Rate float64 `json:"requests_per_second"`
	// Subjects that were asked for.
	Subjects int64 `json:"subjects"`
	// Requests of all subjects.
	Requests int64 `json:"requests"`
	// Windows in which more than the limit was asked for; 0 for requests that were rejected.
	Windows int64 `json:"windows,omitempty"`
	// Met is how many of the windows leaked, or how many requests were rejected although
	// there was room.
	Met int64 `json:"met"`
	// Units that leaked, or that were rejected.
	Units int64 `json:"units"`
}

// OddsAtRate says in words how often a simulation broke the property; it is empty if
// there was none.
func (f *Finding) OddsAtRate() string {
	x := f.AtRate
	if x == nil {
		return ""
	}
	who := "one subject"
	if x.Subjects > 1 {
		who = "each of " + format.Plural(x.Subjects, "subject", "subjects")
	}
	asked := format.Plural(x.Requests, "request", "requests")
	text := fmt.Sprintf("in a simulation at %g requests/s of %s: ", x.Rate, who)
	if f.Property == FalseRejectProperty {
		return text + fmt.Sprintf("%s of %s rejected although quota was free throughout", format.Count(x.Met), asked)
	}
	return text + fmt.Sprintf("%s over the limit, in %s of %s (%s)",
		format.Plural(x.Units, "unit", "units"), format.Count(x.Met), format.Plural(x.Windows, "window", "windows"), asked)
}
