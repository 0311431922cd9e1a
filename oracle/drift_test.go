package oracle

import (
	"github.com/quotabench/quotabench/quota"
	"testing"
)

// TestExpectedIsExact: every value that the counter can show lies in the
// interval, and both its ends are shown by some order. The counter is simulated
// with each operation in effect before or after the moment it is read.
func TestExpectedIsExact(t *testing.T) {
	r, seen := seeded(6), tally{}
	for range 3000 {
		g := generator{Rand: r, span: 24, length: 8, cost: 3, refunds: true, failedToo: true, gap: 1}
		ops := g.history(2 + r.IntN(5))
		for i := range ops {
			if ops[i].Kind == Take && r.IntN(5) == 0 && ops[i].Outcome != Admitted {
				ops[i].Outcome = Failed
			}
			if ops[i].of >= 0 && r.IntN(3) == 0 {
				ops[i].Kind, ops[i].Units = Commit, ops[i].Units-1-r.Int64N(3)
			}
		}
		at := Reading{Call: r.Int64N(24)}
		at.Reply = at.Call + r.Int64N(4)
		initial := r.Int64N(3)
		for _, counts := range []quota.Counting{quota.CountsAdmitted, quota.CountsAttempts} {
			want := shown(ops, at, counts, initial)
			got, surplus, err := Expected(events(ops), at, counts, initial)
			if err != nil || got != want {
				t.Fatalf("%s read in %+v, initial %d: %+v, should be %+v (%v)%s", counts, at, initial, got, want, err, explain(ops))
			}
			if counts == quota.CountsAdmitted && surplus != (Interval{}) {
				t.Fatalf("surplus %+v", surplus)
			}
			seen.note("certain value", got.Width() == 0)
			seen.note("uncertain value", got.Width() > 0)
			seen.note("surplus", surplus.Lo > 0 || counts == quota.CountsAdmitted)
		}
	}
	seen.check(t, 300)
}

// shown is the range of what a right counter can show, by trying for every
// operation whether it comes before the reading.
func shown(ops []operation, at Reading, counts quota.Counting, initial int64) Interval {
	out := Interval{1 << 60, -1 << 60}
	for before := range 1 << len(ops) {
		value, legal := initial, true
		for i, o := range ops {
			in := before>>i&1 == 1
			failed := o.Outcome == Failed
			legal = legal && (!in || o.Call <= at.Reply) && (in || o.Reply >= at.Call || failed)
			if !in {
				continue
			}
			switch {
			case o.Kind != Take:
				value -= o.Units
			case o.admitted(), failed, counts == quota.CountsAttempts:
				value += o.Units
			case o.Reply >= at.Call:
				value += o.Units // there until the rejection is taken back
			}
		}
		if legal {
			out.Lo, out.Hi = min(out.Lo, value), max(out.Hi, value)
		}
	}
	return out
}

func TestPlantedDrift(t *testing.T) {
	var history []Event
	for i := range int64(50) {
		e := Event{Call: 10 * i, Reply: 10*i + 5, Units: 2}
		if i%10 == 0 {
			e.Outcome = Rejected
		}
		history = append(history, e)
	}
	rest := Reading{Call: 1000, Reply: 1005}
	got, _, err := Expected(history, rest, quota.CountsAdmitted, 4)
	if err != nil || got != (Interval{94, 94}) {
		t.Fatalf("at rest %+v, %v", got, err)
	}
	for value, want := range map[int64]int64{94: 0, 91: -3, 99: 5} {
		if d := got.Distance(value); d != want {
			t.Errorf("a reading of %d drifts by %d, not %d", value, d, want)
		}
	}
	got, surplus, _ := Expected(history, rest, quota.CountsAttempts, 4)
	if got != (Interval{104, 104}) || surplus != (Interval{10, 10}) {
		t.Errorf("attempts: %+v with a surplus of %+v", got, surplus)
	}
	history[10].Outcome = RejectedDegraded
	if got, surplus, _ = Expected(history, rest, quota.CountsAttempts, 4); got != (Interval{102, 104}) || surplus != (Interval{8, 10}) {
		t.Errorf("attempts, one not seen: %+v with a surplus of %+v", got, surplus)
	}
	if got, _, _ = Expected(history, rest, quota.CountsAdmitted, 4); got != (Interval{94, 96}) {
		t.Errorf("a degraded rejection may be counted: %+v", got)
	}
	if got, _, err = Expected(history, rest, quota.CountsNothing, 4); err != nil || got.Distance(-1e15) != 0 || got.Width() <= 0 {
		t.Errorf("a counter of nothing: %+v, %v", got, err)
	}
	if _, _, err = Expected(history, rest, "leases", 4); err == nil {
		t.Error("an unknown way of counting is judged")
	}
}
