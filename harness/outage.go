package harness

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// Outage takes a store away for part of every run.
type Outage struct {
	// Store is a store's name, e.g. "redis" or "postgres".
	Store string
	// From and To are shares of the duration, 0 to 1.
	From, To float64
	// Empty is set where the store comes back without anything that it held, as one
	// does that keeps nothing on a disk and is restarted. Only Redis can.
	Empty bool
}

// ParseOutage reads "redis:0.3-0.6", or "redis:0.3-0.6:empty" for a store that comes
// back without what it held.
func ParseOutage(text string) (Outage, error) {
	bad := fmt.Errorf("%q is not of the form redis:0.3-0.6 or redis:0.3-0.6:empty: a store's name, from when to when in shares of the duration, and whether it comes back empty", text)
	store, span, ok := strings.Cut(text, ":")
	span, empty := strings.CutSuffix(span, emptied)
	from, to, ok2 := strings.Cut(span, "-")
	if !ok || !ok2 || store == "" {
		return Outage{}, bad
	}
	o := Outage{Store: store, Empty: empty}
	var err1, err2 error
	o.From, err1 = strconv.ParseFloat(from, 64)
	o.To, err2 = strconv.ParseFloat(to, 64)
	if err1 != nil || err2 != nil || !(o.From >= 0 && o.From < o.To && o.To <= 1) {
		return Outage{}, bad
	}
	return o, nil
}

// String renders the outage as [ParseOutage] reads it.
func (o Outage) String() string {
	s := fmt.Sprintf("%s:%g-%g", o.Store, o.From, o.To)
	if o.Empty {
		s += emptied
	}
	return s
}

// emptied ends the text of an outage that a store comes back from with nothing.
const emptied = ":empty"

// Faults are what happens to strategies in an outage. A store that comes back empty
// has dropped every key.
func (o Outage) Faults() []quota.Fault {
	if o.Empty {
		return []quota.Fault{quota.FaultOutage, quota.FaultEviction}
	}
	return []quota.Fault{quota.FaultOutage}
}

// Within returns when the outage is to begin and to end in a run of that length,
// since the run's beginning.
func (o Outage) Within(length time.Duration) (from, to time.Duration) {
	return time.Duration(o.From * float64(length)), time.Duration(o.To * float64(length))
}

// Span is a stretch of a run in which a store was away, in nanoseconds since the
// run's epoch.
type Span struct {
	Store    string
	From, To int64
}

// explains reports whether the error of a take may be the outage's doing. grace
// is how long connections that broke may still be found.
func (s Span) explains(e *oracle.Event, grace int64) bool {
	return e.Reply >= s.From && e.Call <= s.To+grace
}
