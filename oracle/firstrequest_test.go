package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

const ownLength = 5 // of a window that begins with its first request

func ownConfig(limit, initial int64) Config {
	return Config{
		Window: quota.Window{Kind: quota.FirstRequest, Length: ownLength}, Limit: limit,
		Initial: func(uint32) int64 { return initial }, Epoch: time.Unix(7, 0),
	}
}

// begins are the windows of a placement, by the moments (doubled) of what was
// admitted, of what was there at the start, and of failed requests that took effect.
func begins(moments []int64) (out []int64) {
	slices.Sort(moments)
	for _, m := range moments {
		if n := len(out); n == 0 || m >= out[n-1]+2*ownLength {
			out = append(out, m)
		}
	}
	return out
}

// windowAt is the window that contains a moment, or -1.
func windowAt(windows []int64, m int64) int {
	for i, b := range windows {
		if b <= m && m < b+2*ownLength {
			return i
		}
	}
	return -1
}

// tryOwn tries every placement of a history's operations.
func tryOwn(ops []operation, limit, initial int64) truth {
	out := truth{leak: 1 << 60, worst: 1 << 60}
	stays := make([]stay, len(ops))
	for i, o := range ops {
		stays[i] = stay{o.Call, o.Reply, o.Units}
		if o.Kind == Take && o.Outcome == Failed {
			stays[i].reply = o.Call + 9 // or never, which is as if it came at the end
		}
	}
	fits := make([]int, len(ops))
	mayFit := make([]int, len(ops))
	total := 0
	placements(stays, func(at []int64) {
		for i, o := range ops {
			if o.of >= 0 && at[i] < at[o.of] {
				return
			}
		}
		for _, lost := range []bool{false, true} {
			total++
			var moments []int64
			if initial > 0 {
				moments = append(moments, 0)
			}
			for i, o := range ops {
				if o.admitted() || o.Kind == Take && o.Outcome == Failed && !lost {
					moments = append(moments, at[i])
				}
			}
			windows := begins(moments)
			// used is what a window holds at a moment, before or after what shares it. What settles a request of an
			// earlier window may count in it.
			used := func(w int, m int64, sharing, expired, late bool) (units, admitted int64) {
				if initial > 0 && w == windowAt(windows, 0) {
					units = initial
				}
				for i, o := range ops {
					if o.admitted() && windowAt(windows, at[i]) == w && (at[i] < m || sharing && at[i] == m) {
						units = units + o.Units
						admitted = admitted + o.Units
						for k, g := range ops {
							given := g.of == i && (at[k] < m || sharing && at[k] == m)
							if given && (g.Units < 0 || expired || g.Kind != Expire && g.Outcome != Failed) {
								units -= g.Units
							}
						}
					}
				}
				for k, g := range ops {
					if late && g.of >= 0 && g.Kind != Expire && windowAt(windows, at[k]) == w && windowAt(windows, at[g.of]) < w &&
						(at[k] < m || sharing && at[k] == m) {
						units -= max(0, g.Units)
					}
				}
				return units, admitted
			}
			peaks := make([]int64, len(windows))
			least := make([]int64, len(windows))
			for i, o := range ops {
				switch w := windowAt(windows, at[i]); {
				case o.admitted():
					units, admitted := used(w, at[i], true, true, false)
					peaks[w] = max(peaks[w], min(units-limit, admitted))
					units, _ = used(w, at[i], true, true, true)
					least[w] = max(least[w], min(units-limit, admitted))
				case o.rejected():
					free := o.Units <= limit
					most := int64(0)
					fewest := int64(0)
					if w >= 0 {
						most, _ = used(w, at[i], true, false, false)
						before, _ := used(w, at[i], false, true, true)
						both, _ := used(w, at[i], true, true, true)
						fewest = min(before, both)
					}
					fits[i] += int(b2i(free && most+o.Units <= limit))
					mayFit[i] += int(b2i(free && fewest+o.Units <= limit))
				}
			}
			sum, worst := sumOf(least)
			out.leak = min(out.leak, sum)
			out.worst = min(out.worst, worst)
			sum, worst = sumOf(peaks)
			out.possible = max(out.possible, sum)
			out.mostWorst = max(out.mostWorst, worst)
		}
	})
	for i, o := range ops {
		if o.rejected() {
			out.always += b2i(fits[i] == total)
			out.once += b2i(mayFit[i] > 0)
		}
	}
	return out
}

// sumOf is the sum of the peaks, and the highest of them.
func sumOf(peaks []int64) (sum, worst int64) {
	for _, p := range peaks {
		sum = sum + p
		worst = max(worst, p)
	}
	return sum, worst
}

// TestLateRefund plants a refund after the end of the window that its take was charged to. If another window is open,
// it may count there, and nothing else may be had again.
func TestLateRefund(t *testing.T) {
	takes := []Event{
		{Units: 1, Call: 0, Reply: 0, Outcome: Admitted},
		{Units: 1, Call: 7, Reply: 7, Outcome: Admitted},
		{Units: 1, Call: 9, Reply: 9, Outcome: Admitted},
	}
	for name, c := range map[string]struct {
		late           Event
		leak, possible int64
	}{
		"in the next window":     {Event{Kind: Refund, Units: 1, Call: 8, Reply: 8}, 0, 1},
		"between two windows":    {Event{Kind: Refund, Units: 1, Call: 6, Reply: 6}, 1, 1},
		"in its own window":      {Event{Kind: Refund, Units: 1, Call: 3, Reply: 3}, 1, 1},
		"a commit of less":       {Event{Kind: Commit, Units: 1, Call: 8, Reply: 8}, 0, 1},
		"the end of a life":      {Event{Kind: Expire, Units: 1, Call: 8, Reply: 8}, 1, 1},
		"of nothing":             {Event{Kind: Refund, Call: 8, Reply: 8}, 1, 1},
		"failed in its own":      {Event{Kind: Refund, Units: 1, Call: 3, Reply: 3, Outcome: Failed}, 0, 1},
		"after the next request": {Event{Kind: Refund, Units: 1, Call: 20, Reply: 20}, 1, 1},
	} {
		events := append(slices.Clone(takes), c.late)
		v := Judge(ownConfig(1, 0), events)
		if v.LeakUnits != c.leak || v.LeakPossible != c.possible {
			t.Errorf("%s: %d to %d units leaked, want %d to %d", name, v.LeakUnits, v.LeakPossible, c.leak, c.possible)
		}
	}
}

// TestLateRefundInACounter: a counter contains what was given back after the end of its window, or does not.
func TestLateRefundInACounter(t *testing.T) {
	events := []Event{
		{Units: 1, Call: 0, Reply: 0, Outcome: Admitted},
		{Units: 1, Call: 7, Reply: 7, Outcome: Admitted},
		{Kind: Refund, Units: 1, Call: 8, Reply: 8},
	}
	want, ok, err := Expect(ownConfig(1, 0), 0, events, Reading{Call: 9, Reply: 9}, quota.CountsAdmitted)
	if err != nil || !ok || want.Units != (Interval{0, 1}) || want.Held != (Interval{1, 1}) {
		t.Errorf("%+v, %v, %v", want, ok, err)
	}
}

// TestFirstRequest checks the figures against every placement of the operations:
// they are sound, and if requests are short they are nearly always reached.
func TestFirstRequest(t *testing.T) {
	testenv.Sequential(t)
	for _, c := range []struct {
		name      string
		generator generator
		failed    bool
		weak      int // one of so many figures may be missed
	}{
		{"short", generator{span: 24, length: 1, cost: 2}, false, 40},
		{"units", generator{span: 24, length: 1, cost: 1}, false, 80},
		{"long", generator{span: 24, length: 4, cost: 2}, false, 20},
		{"failing", generator{span: 18, length: 1, cost: 1}, true, 40},
		{"refunds", generator{span: 20, length: 1, cost: 2, refunds: true, gap: 1, failedToo: true, commits: true,
			expiries: true}, false, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := seeded(31)
			seen := tally{}
			missed := tally{}
			const histories = 1200
			for range histories {
				c.generator.Rand = r
				n := 3 + r.IntN(3)
				if c.generator.length > 1 || c.failed {
					n = 3 + r.IntN(2)
				}
				ops := c.generator.history(n)
				if c.failed {
					ops[r.IntN(len(ops))].Outcome = Failed
				}
				limit := 1 + r.Int64N(3)
				initial := r.Int64N(5) - 2
				initial = max(0, initial)
				want := tryOwn(ops, limit, initial)
				v := Judge(ownConfig(limit, initial), events(ops))
				if v.LeakUnits > want.leak || v.LeakWorst > want.worst || v.FalseRejects > want.always ||
					v.LeakPossible < want.possible || v.LeakPossibleWorst < want.mostWorst || v.FalseRejectsPossible < want.once {
					t.Fatalf("limit %d, initial %d:\n got %+v\nwant %+v%s", limit, initial, figures(v), want, explain(ops))
				}
				if hasTakes(ops) && len(v.Windows) != 1 {
					t.Fatalf("%d windows of one subject", len(v.Windows))
				}
				missed.note("leak", v.LeakUnits < want.leak)
				missed.note("possible leak", v.LeakPossible > want.possible)
				missed.note("false rejects", v.FalseRejects < want.always)
				missed.note("possible false rejects", v.FalseRejectsPossible > want.once)
				seen.note("certain leak", v.LeakUnits > 0)
				seen.note("leak in two windows", v.LeakWindows > 1)
				seen.note("certain false reject", v.FalseRejects > 0)
				seen.note("false reject that is only possible", want.always < want.once)
			}
			if c.failed {
				delete(seen, "leak in two windows")
			}
			seen.check(t, 8)
			t.Logf("of %d histories, figures missed: %v", histories, missed)
			for what, n := range missed {
				if n > histories/c.weak {
					t.Errorf("%s: missed in %d of %d histories, the figure has become weak", what, n, histories)
				}
			}
		})
	}
}

// TestTimeToLiveInMilliseconds plants a rejection after the end of a window: in the first millisecond it may be right.
func TestTimeToLiveInMilliseconds(t *testing.T) {
	for _, c := range []struct {
		length, late time.Duration
		certain      int64
	}{
		{time.Second, 0, 0},
		{time.Second, time.Millisecond - 1, 0},
		{time.Second, time.Millisecond, 1},
		{time.Hour, time.Millisecond, 1},
		{10 * time.Millisecond, 99 * time.Microsecond, 0},
		{10 * time.Millisecond, 100 * time.Microsecond, 1},
	} {
		at := int64(c.length + c.late)
		v := Judge(Config{Window: quota.Window{Kind: quota.FirstRequest, Length: c.length}, Limit: 1, Epoch: time.Unix(7, 0)},
			[]Event{
				{Units: 1, Outcome: Admitted},
				{Call: at, Reply: at, Units: 1, Outcome: Rejected},
			})
		if v.FalseRejects != c.certain || v.FalseRejectsPossible != 1 {
			t.Errorf("%s after a window of %s: %d to %d false rejects, want %d to 1", c.late, c.length, v.FalseRejects,
				v.FalseRejectsPossible, c.certain)
		}
	}
}
