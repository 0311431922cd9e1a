package engine

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// TestLifeEnds: what an admitted request holds is in use until its life is over,
// unless it was settled before. A commit without an answer leaves that open.
func TestLifeEnds(t *testing.T) {
	const life = 15 * time.Minute
	for _, c := range []struct {
		name    string
		outcome oracle.Outcome
		settle  func(tr *Truth, take int)
		inUse   int64
		last    oracle.Event // kind and outcome of the last event
		lo, hi  int64        // what a counter must contain
	}{
		{"abandoned", oracle.Admitted, nil, 0, oracle.Event{Kind: oracle.Expire}, 0, 0},
		{"rejected", oracle.Rejected, nil, 0, oracle.Event{Kind: oracle.Take, Outcome: oracle.Rejected}, 0, 0},
		{"committed", oracle.Admitted, func(tr *Truth, take int) {
			tr.reply(0, tr.call(0, oracle.Commit, 0, take), oracle.Admitted)
		},
			5, oracle.Event{Kind: oracle.Commit}, 5, 5},
		{"refunded", oracle.Admitted, func(tr *Truth, take int) {
			tr.reply(0, tr.call(0, oracle.Refund, 5, take), oracle.Admitted)
		},
			0, oracle.Event{Kind: oracle.Refund}, 0, 0},
		{"died committing", oracle.Admitted, func(tr *Truth, take int) {
			tr.reply(-1, tr.call(0, oracle.Commit, 0, take), oracle.Failed)
		},
			0, oracle.Event{Kind: oracle.Expire, Outcome: oracle.Failed}, 0, 5},
	} {
		tr := Truth{Policy: &quota.Policy{Name: "p", Limit: 10}, Instances: 1}
		tr.Begin(Start)
		tr.At(Start)
		take := tr.call(0, oracle.Take, 5, -1)
		tr.begins(take, life, true)
		tr.At(Start)
		tr.reply(0, take, c.outcome)
		if c.settle != nil {
			tr.At(Start)
			c.settle(&tr, take)
		}
		tr.At(Start.Add(life - 1))
		if ended := tr.ended(take); ended {
			t.Errorf("%s: its life is over before its end", c.name)
		}
		tr.At(Start.Add(life))
		last := tr.events[len(tr.events)-1]
		if tr.InUse != c.inUse || last.Kind != c.last.Kind || last.Outcome != c.last.Outcome ||
			tr.ended(take) != (last.Kind == oracle.Expire) {
			t.Errorf("%s: %d units in use, %+v, want %d and %+v", c.name, tr.InUse, last, c.inUse, c.last)
		}
		tr.At(Start.Add(life))
		want, ok, err := tr.Expect(quota.CountsAdmitted)
		if err != nil || !ok || want.Units != (oracle.Interval{Lo: c.lo, Hi: c.hi}) {
			t.Errorf("%s: a counter must contain %+v (%v, %v), want %d to %d", c.name, want.Units, ok, err, c.lo, c.hi)
		}
	}
}

// TestAnsweredTooLate: a request that hears of its admission when its life is over
// holds nothing, not even for a moment.
func TestAnsweredTooLate(t *testing.T) {
	tr := Truth{Policy: &quota.Policy{Name: "p", Limit: 10}, Instances: 1}
	tr.Begin(Start)
	take := tr.call(0, oracle.Take, 5, -1)
	tr.begins(take, time.Minute, true)
	tr.At(Start.Add(time.Hour))
	tr.reply(0, take, oracle.Admitted)
	if tr.InUse != 0 || tr.Peak != 0 || !tr.ended(take) {
		t.Errorf("%d units in use, %d at most, ended: %v", tr.InUse, tr.Peak, tr.ended(take))
	}
}

// TestCommittedWhileLifeEnds: a commit is answered after the end of the life that it was called in. It is open
// whether the strategy had let the reservation end by then, so a counter may have all that was committed, or none.
func TestCommittedWhileLifeEnds(t *testing.T) {
	for _, c := range []struct{ actual, hi int64 }{{5, 5}, {3, 3}, {7, 7}} {
		tr := Truth{Policy: &quota.Policy{Name: "p", Limit: 10}, Instances: 1}
		tr.Begin(Start)
		take := tr.call(0, oracle.Take, 5, -1)
		tr.begins(take, time.Minute, true)
		tr.reply(0, take, oracle.Admitted)
		commit := tr.call(0, oracle.Commit, 5-c.actual, take)
		tr.At(Start.Add(time.Minute))
		tr.reply(0, commit, oracle.Admitted)
		tr.At(Start.Add(time.Minute))
		want, ok, err := tr.Expect(quota.CountsAdmitted)
		if in := (oracle.Interval{Hi: c.hi}); err != nil || !ok || want.Units != in || want.Held.Hi != c.hi || tr.InUse != 0 {
			t.Errorf("5 units, %d committed: a counter must contain %+v (%v, %v), want %+v; in use: %d", c.actual, want, ok, err,
				in, tr.InUse)
		}
	}
}
