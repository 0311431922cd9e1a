package engine

import (
	"slices"
	"time"

	"github.com/quotabench/quotabench/oracle"
)

// session is a take that its client is to settle before its life ends.
type session struct {
	take     int // number of the event
	ends     time.Time
	admitted bool
	// doubtful is set if time has passed within the take, so that its life began at
	// some moment of that, and once a commit has begun: if it never ends well, it is
	// open whether the units are used.
	doubtful bool
}

// begins notes a take that is being called; 0 is an unlimited life.
func (t *Truth) begins(take int, life time.Duration) {
	if life > 0 {
		t.sessions = append(t.sessions, session{take: take, ends: t.now.Add(life)})
	}
}

// admitted notes that a take was answered. Its life may be over by then, and then
// its units are in use no more.
func (t *Truth) admitted(take int) {
	for i := range t.sessions {
		if s := &t.sessions[i]; s.take == take {
			s.admitted = true
			s.doubtful = t.events[take].Reply-t.events[take].Call > int64(time.Millisecond)
		}
	}
	t.expire()
}

// ended reports whether the take's life is over, so that it can be settled no
// longer.
func (t *Truth) ended(take int) bool {
	return slices.ContainsFunc(t.events, func(e oracle.Event) bool {
		return e.Kind == oracle.Expire && e.TakeCall == t.events[take].Call
	})
}

// settling notes that a commit or a refund of the take begins.
func (t *Truth) settling(take int, kind oracle.Kind) {
	for i := range t.sessions {
		if t.sessions[i].take == take {
			if t.sessions[i].doubtful = true; kind == oracle.Refund {
				t.sessions = slices.Delete(t.sessions, i, i+1)
			}
			return
		}
	}
}

// committed ends the session whose take was called at that moment: what is committed
// has no end.
func (t *Truth) committed(call int64) {
	t.sessions = slices.DeleteFunc(t.sessions, func(s session) bool { return t.events[s.take].Call == call })
}

// expire ends the sessions whose lives are over: nobody holds their units any more,
// whether or not the strategy has noticed. Where that is doubtful it is open.
func (t *Truth) expire() {
	t.sessions = slices.DeleteFunc(t.sessions, func(s session) bool {
		if !s.admitted || s.ends.After(t.now) {
			return false
		}
		take := t.events[s.take]
		m := t.moment()
		e := oracle.Event{
			Call: m, Reply: m, Units: take.Units, Kind: oracle.Expire, Instance: take.Instance,
			TakeCall: take.Call, TakeReply: take.Reply,
		}
		if s.doubtful {
			e.Outcome = oracle.Failed
		}
		t.events = append(t.events, e)
		t.InUse -= take.Units
		t.note(3, s.take, uint64(e.Outcome))
		return true
	})
}
