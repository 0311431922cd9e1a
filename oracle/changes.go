package oracle

import (
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/quota"
)

// LimitChange says that from some moment in [From, To] on, the limit is Limit. Which
// moment it is, is not known: within the interval either limit may be in force.
type LimitChange struct {
	// From and To are nanoseconds since the epoch.
	From, To int64
	// Limit in units; at least 0.
	Limit int64
}

// maxChanges is the number of changes that one history may have.
const maxChanges = 1 << 10

// validChanges refuses changes that cannot be judged.
func validChanges(w *quota.Window, changes []LimitChange) error {
	switch {
	case len(changes) == 0:
		return nil
	case w.Kind == quota.Bucket:
		return errors.New("the size of a bucket cannot change")
	case len(changes) > maxChanges:
		return fmt.Errorf("the limit changes %d times, at most %d are judged", len(changes), maxChanges)
	}
	last := int64(-maxTime)
	for i, c := range changes {
		switch {
		case c.Limit < 0:
			return fmt.Errorf("the policy has a limit of %d", c.Limit)
		case c.From > c.To || c.From < -maxTime || c.To > maxTime:
			return fmt.Errorf("change %d of the limit lies in no valid interval", i+1)
		case c.From < last:
			return fmt.Errorf("change %d of the limit begins before the one before it has ended", i+1)
		}
		last = c.To
	}
	return nil
}

type changeJSON struct {
	From  int64 `json:"from_ns"`
	To    int64 `json:"to_ns"`
	Limit int64 `json:"limit"`
}
