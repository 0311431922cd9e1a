package confirm

import (
	"fmt"
	"time"

	"github.com/go-chi/httprate"
)

// A request computes its window and takes the limiter's lock afterwards. One that
// computed it before a boundary and locks after another request of the next window
// empties both counters: here it does so by the counter's own methods, in that order.
var httprateLate = Confirmation{Name: "httprate-late", Run: func(Env) (string, bool, error) {
	const window = time.Minute
	counter := httprate.NewLocalLimitCounter(window)
	first := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	second := first.Add(window)
	for _, at := range []time.Time{first, second} {
		if err := counter.IncrementBy("k", at, 100); err != nil {
			return "", false, err
		}
	}
	if err := counter.IncrementBy("k", first, 1); err != nil { // came before the boundary, is counted after it
		return "", false, err
	}
	if err := counter.IncrementBy("k", second, 1); err != nil {
		return "", false, err
	}
	current, _, err := counter.Get("k", second, first)
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("of 101 requests counted in a window, the limiter still counts %d after one late request", current),
		current < 101, nil
}}
