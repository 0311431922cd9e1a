package memredis

import "container/heap"

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
		heap.Push(&t.due, deadline{at, e})
	}
}

// expire removes what is past its deadline. As in Redis, a key is still there in
// the millisecond of its deadline.
func (t *Table) expire() {
	now := t.ms()
	for len(t.due) > 0 && t.due[0].at < now {
		d := heap.Pop(&t.due).(deadline)
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

func (h deadlines) Len() int           { return len(h) }
func (h deadlines) Less(i, j int) bool { return h[i].at < h[j].at }
func (h deadlines) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *deadlines) Push(d any)        { *h = append(*h, d.(deadline)) }

func (h *deadlines) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = deadline{}
	*h = (*h)[:last]
	return d
}
