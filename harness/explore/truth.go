package explore

import (
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// truth is what callers were told, as a history that the oracle judges. Its
// moments are virtual nanoseconds plus the number of the step, so that steps
// between which no time passes have an order, too.
type truth struct {
	policy  *quota.Policy
	initial int64
	start   time.Time
	span    quota.Span

	now  time.Time
	step int64

	events []oracle.Event
	open   []int // events without a reply yet
	// taken is the admitted take that a client holds the reservation of.
	taken map[int]int
	// inUse are units admitted at their reply less those refunded at the call;
	// peak is the most so far.
	inUse, peak int64
	rejected    int64 // rejections so far
	maxOpen     int   // most operations in flight at once
	crossed     bool  // time has left the window of the start
	// order tells histories apart whose events came in different orders.
	order digest
}

func (t *truth) reset(now time.Time) {
	*t = truth{
		policy: t.policy, initial: t.initial, start: now, now: now, span: t.policy.Window.At(now),
		events: t.events[:0], open: t.open[:0], inUse: t.initial, peak: t.initial,
	}
}

// at moves on to the next step.
func (t *truth) at(now time.Time) {
	t.now = now
	t.step++
	if !t.span.Contains(now) || t.policy.Window.Kind == quota.Rolling && now.After(t.start) {
		t.crossed = true
	}
}

func (t *truth) moment() int64 { return int64(t.now.Sub(t.start)) + t.step }

// call begins an operation and returns its number.
func (t *truth) call(client int, kind oracle.Kind, units int64) int {
	e := len(t.events)
	m := t.moment()
	t.events = append(t.events, oracle.Event{Call: m, Reply: m, Units: units, Kind: kind, Outcome: oracle.Failed})
	t.open = append(t.open, e)
	t.maxOpen = max(t.maxOpen, len(t.open))
	if kind == oracle.Refund {
		t.inUse -= units
	}
	if take, ok := t.taken[client]; ok && kind != oracle.Take {
		t.events[e].TakeCall, t.events[e].TakeReply = t.events[take].Call, t.events[take].Reply
	}
	t.note(1, client, uint64(kind))
	return e
}

// reply ends it.
func (t *truth) reply(client, e int, outcome oracle.Outcome) {
	ev := &t.events[e]
	ev.Reply, ev.Outcome = t.moment(), outcome
	for i, o := range t.open {
		if o == e {
			t.open = append(t.open[:i], t.open[i+1:]...)
			break
		}
	}
	if ev.Kind == oracle.Take {
		switch outcome {
		case oracle.Admitted:
			t.inUse += ev.Units
			if t.taken == nil {
				t.taken = map[int]int{}
			}
			t.taken[client] = e
			t.peak = max(t.peak, t.inUse)
		case oracle.Rejected, oracle.RejectedDegraded:
			t.rejected++
		}
	}
	t.note(2, client, uint64(outcome))
}

// lost marks an operation whose caller has died: nobody was told anything.
func (t *truth) lost(e int) { t.reply(-1, e, oracle.Failed) }

func (t *truth) note(what uint64, client int, how uint64) {
	t.order.num(what<<32 | uint64(uint32(client+1))<<8 | how)
	t.order.moment(t.now)
}

// history is what the oracle judges at this moment. Operations without a reply
// have none: they hold nothing, and may still take effect.
func (t *truth) history() []oracle.Event {
	m := t.moment()
	for _, o := range t.open {
		t.events[o].Reply = m
	}
	return t.events
}

func (t *truth) judge() oracle.Verdict {
	return oracle.Judge(oracle.Config{
		Window: t.policy.Window, Limit: t.policy.Limit, Epoch: t.start,
		Initial: func(uint32) int64 { return t.initial },
	}, t.history())
}

// leak is the certain leak so far.
func (t *truth) leak() int64 {
	if t.crossed {
		return t.judge().LeakWorst
	}
	return max(0, t.peak-max(t.policy.Limit, t.initial))
}

// explained is what a counter must contain at rest, and what it may only contain
// because something failed.
func (t *truth) explained(counts quota.Counting) (expected, held oracle.Interval, err error) {
	events := t.current()
	m := t.moment() + 1
	initial := t.initial
	if t.crossed && t.policy.Window.Kind.Tumbling() {
		initial = 0
	}
	expected, _, err = oracle.Expected(events, oracle.Reading{Call: m, Reply: m}, counts, initial)
	if err != nil {
		return expected, held, err
	}
	held, _, err = oracle.Expected(withoutFailed(events), oracle.Reading{Call: m, Reply: m}, counts, initial)
	return expected, held, err
}

// current are the events of the window in force.
func (t *truth) current() []oracle.Event {
	events := t.history()
	if !t.crossed || !t.policy.Window.Kind.Tumbling() {
		return events
	}
	from := int64(t.policy.Window.At(t.now).Start.Sub(t.start))
	var out []oracle.Event
	for _, e := range events {
		if e.Reply < from {
			continue
		}
		if e.Call < from && e.Outcome != oracle.RejectedDegraded {
			e.Outcome = oracle.Failed // it may have been charged to either window
		}
		out = append(out, e)
	}
	return out
}

func withoutFailed(events []oracle.Event) []oracle.Event {
	out := make([]oracle.Event, 0, len(events))
	for _, e := range events {
		if e.Outcome == oracle.Failed {
			continue
		}
		if e.Outcome == oracle.RejectedDegraded {
			e.Outcome = oracle.Rejected
		}
		out = append(out, e)
	}
	return out
}

// digest is what later verdicts depend on. Without the order of the events only
// the sums matter.
func (t *truth) digest(d *digest, ordered bool) {
	d.num(uint64(t.inUse))
	d.num(uint64(t.peak))
	d.num(uint64(t.maxOpen))
	if ordered || t.crossed {
		d.fold(t.order)
		return
	}
	var sums [4]int64
	for _, e := range t.events {
		sums[e.Outcome&3] += e.Units
	}
	for _, s := range sums {
		d.num(uint64(s))
	}
	d.num(uint64(len(t.open)))
}
