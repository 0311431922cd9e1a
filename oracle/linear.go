package oracle

import (
	"math"
	"slices"
)

// Linear says whether the requests of every subject-window can be put in an
// order, each within its interval, in which a counter that never passes the limit
// gives the answers that were given. A failed request may have taken effect, at
// any moment from its call on, or not.
//
// It is decided if every request is for one unit, nothing is given back, no
// request crosses a boundary, the limit stays the same and the policy is not a
// rolling one. Otherwise Safe and Exact are false.
type Linear struct {
	Decided bool
	// Safe allows to reject at any time, Exact only if there is no room.
	Safe, Exact bool
}

// window decides for the requests of one window, ordered by call.
func (l *Linear) window(takes []*Event, limit, initial int64) {
	if !l.Decided {
		return
	}
	room := limit - initial
	admitted := int64(0)
	for _, event := range takes {
		switch {
		case event.Units != 1 || event.short():
			*l = Linear{}
			return
		case event.admitted():
			admitted++
		}
	}
	// A negative room is the operator's doing, and still nothing may be admitted.
	if admitted > max(room, 0) {
		l.Safe = false
		l.Exact = false
		return
	}
	l.Exact = l.Exact && rejectedWhenFull(takes, room-admitted)
}

// rejectedWhenFull reports whether all rejections can come when no room is left. missing
// is the room that is left by all admissions.
//
// The room is used up after as many effects as there is room for. So failed requests
// take effect, the earliest first, while there is room, and every effect comes at its
// call. A rejection comes at its reply.
func rejectedWhenFull(takes []*Event, missing int64) bool {
	full := int64(math.MinInt64) // call of the last effect
	for _, event := range takes {
		switch {
		case event.admitted():
			full = max(full, event.Call)
		case event.Outcome == Failed && missing > 0:
			missing--
			full = max(full, event.Call)
		}
	}
	return !slices.ContainsFunc(takes, func(event *Event) bool {
		return event.rejected() && (missing > 0 || event.Reply < full)
	})
}
