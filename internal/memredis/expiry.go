package memredis

// deadlines is a heap of moments at which keys have to be looked at. A key whose
// deadline moves later keeps its place and is put back when its turn comes: the
// hashes of a cache get another hour with every request, and moving them every
// time would cost more than the request.
type deadlines []deadline

type deadline struct {
	at    int64 // milliseconds since 1970
	entry *entry
}

// setDeadline makes a key expire, or with 0 never.
func (t *Table) setDeadline(e *entry, at int64) {
	if e.deadline != at {
		t.wrote(e.key)
		if e.deadline != 0 && (at == 0 || at > e.deadline) {
			t.Extended++
		}
		switch {
		case e.deadline == 0:
			t.mortal++
		case at == 0:
			t.mortal--
		}
		e.deadline, e.phase = at, t.now%1e6
	} else if at != 0 {
		t.touch(e.key) // the same moment once more is a change to those that watch the key
	}
	if at != 0 && (e.queued == 0 || at < e.queued) {
		e.queued = at
		t.due.push(deadline{at, e})
	}
}

// expire removes what is past its deadline. As in Redis, a key is still there in
// the millisecond of its deadline.
func (t *Table) expire() {
	now := t.ms()
	for len(t.due) > 0 && t.due[0].at < now {
		d := t.due.pop()
		e := d.entry
		if e.removed || d.at != e.queued {
			continue // gone, or another entry stands for it
		}
		e.queued = 0
		switch {
		case e.deadline == 0:
		case e.deadline < now:
			t.remove(e)
			if t.Expired != nil {
				t.Expired(e.key)
			}
		default:
			t.setDeadline(e, e.deadline)
		}
	}
}

func (h *deadlines) push(d deadline) {
	*h = append(*h, d)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].at <= s[i].at {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *deadlines) pop() deadline {
	s := *h
	first := s[0]
	last := len(s) - 1
	s[0], s[last] = s[last], deadline{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		low := 2*i + 1
		if low >= len(s) {
			return first
		}
		if r := low + 1; r < len(s) && s[r].at < s[low].at {
			low = r
		}
		if s[i].at <= s[low].at {
			return first
		}
		s[i], s[low] = s[low], s[i]
		i = low
	}
}
