package service

import (
	"strings"
	"time"
)

// lives are the longest times to live of a subject's keys before a request of it was rejected, and after.
type lives struct{ admitted, rejected time.Duration }

// note takes in the longest time to live after a step.
func (l *lives) note(longest time.Duration, rejected bool) {
	if rejected {
		l.rejected = max(l.rejected, longest)
	} else {
		l.admitted = max(l.admitted, longest)
	}
}

// window is the time after which units are free again. A key is still there in the millisecond of its deadline.
func (l *lives) window() time.Duration { return l.admitted + time.Millisecond }

// learn takes the window from the keys that the first control has left, if it is not known.
func (w *Engine) learn() error {
	const give = "how long units are in use is not known: name the window by --policy"
	switch {
	case !w.Setup.Learns:
		return nil
	case w.Run.Truth.Rejections == 0:
		return unfit("it rejects none of the requests that come one after the other, so %s", give)
	case w.lives.admitted == 0:
		return unfit("none of its keys that are named after the subject has a time to live, so %s", give)
	case w.lives.rejected > w.lives.admitted:
		return unfit("a rejection has keys live for longer, so %s", give)
	}
	w.Setup.Policy.Window.Length = w.lives.window()
	return nil
}

// longest is the longest time to live of the subject's keys, if the window is learned from it.
func (w *Engine) longest() (longest time.Duration) {
	if !w.Setup.Learns {
		return 0
	}
	w.seen = false
	if err := w.stored(); err != nil {
		if w.Err == nil {
			w.Err = err
		}
		return 0
	}
	for _, holding := range w.held {
		if strings.Contains(holding.Name, w.subject) {
			longest = max(longest, holding.Left)
		}
	}
	return longest
}

// lengthens has units be in use for that time at least: a window that was short may be followed by a longer one.
func (w *Engine) lengthens(longest time.Duration) {
	window := &w.Setup.Policy.Window.Length
	*window = max(*window, longest+time.Millisecond)
}
