package harness

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/oracle"
)

// Outage takes a store away for part of every run.
type Outage struct {
	// Store is a store's name, e.g. "redis" or "postgres".
	Store string
	// From and To are shares of the duration, 0 to 1.
	From, To float64
}

// ParseOutage reads "redis:0.3-0.6".
func ParseOutage(text string) (Outage, error) {
	bad := fmt.Errorf("%q is not of the form redis:0.3-0.6: a store's name, and from when to when in shares of the duration", text)
	store, span, ok := strings.Cut(text, ":")
	from, to, ok2 := strings.Cut(span, "-")
	if !ok || !ok2 || store == "" {
		return Outage{}, bad
	}
	o := Outage{Store: store}
	var err1, err2 error
	o.From, err1 = strconv.ParseFloat(from, 64)
	o.To, err2 = strconv.ParseFloat(to, 64)
	if err1 != nil || err2 != nil || !(o.From >= 0 && o.From < o.To && o.To <= 1) {
		return Outage{}, bad
	}
	return o, nil
}

// String renders the outage as [ParseOutage] reads it.
func (o Outage) String() string { return fmt.Sprintf("%s:%g-%g", o.Store, o.From, o.To) }

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
