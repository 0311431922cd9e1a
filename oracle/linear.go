package oracle

import (
	"errors"
	"slices"
)

// Linear decides whether the requests of one subject in one window can be put in
// an order, each within its interval, in which a counter that never passes the
// limit gives the answers that were given. Two specifications: safe, where
// rejecting is always allowed, and exact, where a request is rejected only if
// there is no room. A failed request may have taken effect, at any moment from
// its call on, or not.
//
// It is defined for requests of one unit, none of which is given back; anything
// else is an error.
func Linear(events []Event, limit, initial int64) (safe, exact bool, err error) {
	room := limit - initial
	var admitted int64
	var effects, failed []int64 // calls
	for i := range events {
		e := &events[i]
		if e.Kind != Take || e.Units != 1 {
			return false, false, errors.New("linearizability is decided for requests of one unit that nobody gives back")
		}
		switch e.Outcome {
		case Admitted:
			admitted++
			effects = append(effects, e.Call)
		case Failed:
			failed = append(failed, e.Call)
		}
	}
	// A negative room is the operator's doing, and still nothing may be admitted.
	if safe = admitted <= max(room, 0); !safe {
		return false, false, nil
	}
	// A rejection is right after as many effects as there is room for, and every
	// effect up to that number is allowed: so let failed requests take effect, the
	// earliest first, while there is room.
	slices.Sort(failed)
	for _, call := range failed {
		if int64(len(effects)) >= room {
			break
		}
		effects = append(effects, call)
	}
	slices.Sort(effects)
	for i := range events {
		e := &events[i]
		if !e.rejected() || room <= 0 {
			continue
		}
		if int64(len(effects)) < room || effects[room-1] > e.Reply {
			return true, false, nil
		}
	}
	return true, true, nil
}
