package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// LimitChange says that from some moment in [From, To] on, the limit is Limit. Which
// moment it is, is not known: within the interval either limit may be in force.
type LimitChange struct {
	// From and To are nanoseconds since the epoch, at least 0 and at most 2^60.
	From int64 `json:"from_ns"`
	To   int64 `json:"to_ns"`
	// Limit in units; at least 0.
	Limit int64 `json:"limit"`
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
	last := int64(0)
	for i, c := range changes {
		switch {
		case c.Limit < 0:
			return fmt.Errorf("the policy has a limit of %d", c.Limit)
		case c.From > c.To || c.From < 0 || c.To > maxTime:
			return fmt.Errorf("change %d of the limit lies in no valid interval", i+1)
		case c.From < last:
			return fmt.Errorf("change %d of the limit begins before the one before it has ended", i+1)
		}
		last = c.To
	}
	return nil
}

// between is the lowest and the highest limit that can have been in force at some
// instant of [call, reply].
func (c *Config) between(call, reply int64) (lowest, highest int64) {
	k, _ := slices.BinarySearchFunc(c.Changes, call, func(c LimitChange, t int64) int { return cmp.Compare(c.To, t) })
	lowest = c.Limit
	if k > 0 {
		lowest = c.Changes[k-1].Limit
	}
	highest = lowest
	for ; k < len(c.Changes) && c.Changes[k].From <= reply; k++ {
		lowest, highest = min(lowest, c.Changes[k].Limit), max(highest, c.Changes[k].Limit)
	}
	return lowest, highest
}

// within is the limit of a window, if it has only one.
func (c *Config) within(index int64) (limit int64, steady bool) {
	from, to := int64(-maxTime), int64(maxTime)
	if len(c.Changes) > 0 && c.Window.Kind.Tumbling() {
		s := spans{window: c.Window, epoch: c.Epoch}
		w := s.convert(c.Window.Span(index))
		from, to = w.start, w.end-1
	}
	lowest, highest := c.between(from, to)
	return lowest, lowest == highest
}

// limits are the lowest and the highest limit that a request may have been checked
// against.
func (j *judge) limits(e *Event) (lowest, highest int64) {
	if len(j.cfg.Changes) == 0 {
		return j.limit, j.limit
	}
	return j.cfg.between(e.Call, e.Reply)
}

// offer adds up what was asked for in one window, in the order of the calls.
type offer struct {
	granted  int64 // by a counter that never passes the lower limit, initial units included
	over     int64 // units that this counter has no room for
	answered int64 // units, initial ones included
	crossed  bool  // more was answered than the lower limit
}

func (o *offer) begin(initial, limit int64) {
	*o = offer{granted: initial, answered: initial, crossed: initial > limit}
}

func (o *offer) add(e *Event, lowest int64) {
	if e.Outcome == Elsewhere {
		return
	}
	granted := min(e.Units, max(0, lowest-o.granted))
	o.granted += granted
	o.over += e.Units - granted
	if e.Outcome != Failed {
		o.answered += e.Units
	}
	o.crossed = o.crossed || o.answered > lowest
}
