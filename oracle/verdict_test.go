package oracle

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// A rejection by another quota holds nothing, is no trial, and belongs in no counter. A second quota is judged apart.
func TestElsewhere(t *testing.T) {
	events := []Event{
		one(0, 1, 2, Admitted), one(0, 3, 3, Elsewhere), one(0, 5, 2, Elsewhere), one(0, 7, 1, Rejected),
		{Call: 0, Reply: 1, Units: 2, Subject: 5}, {Call: 2, Reply: 3, Units: 3, Subject: 5, Outcome: Rejected},
	}
	for kind, w := range map[string]quota.Window{
		"fixed": {Kind: quota.Fixed, Length: time.Hour}, "rolling": {Kind: quota.Rolling, Length: time.Hour},
		"bucket": {Kind: quota.Bucket, Length: time.Hour, Refill: 1}, "standing": {Kind: quota.Standing},
		"first request": {Kind: quota.FirstRequest, Length: time.Hour},
	} {
		refilled := w.Refill // part of a unit, so at most one is gone
		cfg := Config{Window: w, Limit: 3, Below: 5, Epoch: time.Unix(1_000_800, 0)}
		v := Judge(cfg, events)
		if v.Issued.Requests != 4 || v.Rejected.Requests != 3 || v.Failed.Requests != 0 || v.FalseRejects != 1 ||
			v.LeakPossible != 0 || v.Crossings != 0 {
			t.Errorf("%s: %+v", kind, v)
		}
		for counts, want := range map[quota.Counting]int64{quota.CountsAdmitted: 2, quota.CountsAttempts: 3} {
			got, ok, err := Expect(cfg, 0, events[:4], Reading{Call: 10, Reply: 10}, counts)
			if err != nil || !ok || got.Units.Hi != want || got.Units.Lo < want-refilled {
				t.Errorf("%s, %s: %+v, %v, %v, want %d", kind, counts, got, ok, err, want)
			}
		}
		cfg.Limit = 1
		cfg.From = 5
		cfg.Below = 0
		if v := Judge(cfg, events); v.Issued.Requests != 2 || v.LeakUnits != 1 || v.FalseRejects != 0 {
			t.Errorf("%s, second: %+v", kind, v)
		}
	}
}

// TestMaxSpan: the most units within a length of time are those that somebody counts who tries all of them.
func TestMaxSpan(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for range 200 {
		cfg := Config{Window: quota.Window{Kind: quota.Fixed, Length: time.Minute}, Limit: 5, Epoch: time.Unix(0, 0),
			Span: time.Duration(1 + rng.IntN(40))}
		var events []Event
		for range 1 + rng.IntN(30) {
			call := rng.Int64N(200)
			events = append(events, Event{
				Subject: uint32(rng.IntN(2)), Call: call, Reply: call + rng.Int64N(20), Units: 1 + rng.Int64N(3),
				Outcome: Outcome(rng.IntN(3)),
			})
		}
		longest := map[uint32]int64{}
		want := int64(0)
		for _, e := range events {
			longest[e.Subject] = max(longest[e.Subject], e.Reply-e.Call)
		}
		for subject := range uint32(2) {
			for from := int64(-60); from < 220; from++ {
				units := int64(0)
				for _, e := range events {
					if e.Subject == subject && e.Outcome == Admitted && e.Reply >= from &&
						e.Call <= from+int64(cfg.Span)+longest[subject] {
						units += e.Units
					}
				}
				want = max(want, units)
			}
		}
		if got := Judge(cfg, events).MaxSpan; got != want {
			t.Fatalf("%+v: %d units within %d ns, want %d", events, got, cfg.Span, want)
		}
		cfg.Span = 0
		if got := Judge(cfg, events).MaxSpan; got != 0 {
			t.Fatalf("%d units within no length of time", got)
		}
	}
}

// TestPlantedLongestWrong: the filter, tier 1, rejects one unit of a limit of 10 without reason from 100 to 141, and
// tier 2 for longer, but not in a row. What other answers and another instance say in between ends a row there and
// nowhere else.
func TestPlantedLongestWrong(t *testing.T) {
	at := func(call int64, outcome Outcome, tier, instance uint8) Event {
		e := one(0, call, 1, outcome)
		e.Tier = tier
		e.Instance = instance
		return e
	}
	epoch := time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)
	for _, k := range []quota.Window{{Kind: quota.Standing}, {Kind: quota.CalendarMonth},
		{Kind: quota.Rolling, Length: time.Second},
		{Kind: quota.FirstRequest, Length: time.Second}, {Kind: quota.Bucket, Length: time.Hour}} {
		cfg := Config{Window: k, Limit: 10, Epoch: epoch}
		row := []Event{at(0, Admitted, 2, 0), at(140, Rejected, 1, 0), at(100, Rejected, 1, 0), at(120, Failed, 0, 0),
			at(110, Admitted, 2, 1), at(130, Rejected, 1, 0)}
		end := row[1].Reply
		for name, c := range map[string]struct {
			more []Event
			want int64
			tier uint8
		}{
			"in a row":                    {nil, end - 100, 1},
			"an admission in between":     {[]Event{at(105, Admitted, 2, 0)}, end - 130, 1},
			"another tier in between":     {[]Event{at(125, Rejected, 2, 0)}, end - 130, 1},
			"another instance in between": {[]Event{at(125, Rejected, 2, 1)}, end - 100, 1},
			"a longer one of tier 2": {[]Event{at(200, Rejected, 2, 0), at(400, Rejected, 2, 0)},
				at(400, Rejected, 2, 0).Reply - 200, 2},
		} {
			v := Judge(cfg, append(row[:len(row):len(row)], c.more...))
			if v.LongestWrong != c.want || v.LongestTier != c.tier {
				t.Errorf("%v, %s: %d by tier %d, want %d by %d", k, name, v.LongestWrong, v.LongestTier, c.want, c.tier)
			}
		}
		// A rejection that is right is no wrong verdict, and ends one.
		full := Judge(cfg, []Event{at(0, Rejected, 1, 0), one(0, 50, 10, Admitted), at(100, Rejected, 1, 0),
			at(900, Rejected, 1, 0)})
		if want := at(0, Rejected, 1, 0).Reply; full.LongestWrong != want {
			t.Errorf("%v: %d, want %d", k, full.LongestWrong, want)
		}
		if both := full.With(&Verdict{LongestWrong: 77, LongestTier: 9}); both.LongestWrong != 77 || both.LongestTier != 9 {
			t.Errorf("two quotas: %d by %d", both.LongestWrong, both.LongestTier)
		}
	}
}

// TestBriefExplainsNoMore: a rejection that came in the next window may have been wrong, also if windows are not
// listed.
func TestBriefExplainsNoMore(t *testing.T) {
	const second = int64(time.Second)
	events := []Event{{Call: 0, Reply: 1, Units: 1}, {Call: second - 5, Reply: second + 5, Units: 1, Outcome: Rejected}}
	for _, reply := range []int64{second - 1, second + 5} {
		events[1].Reply = reply
		for _, brief := range []bool{false, true} {
			v := Judge(Config{Window: quota.Window{Kind: quota.Fixed, Length: time.Second}, Limit: 1, Epoch: time.Unix(1000, 0),
				Brief: brief}, events)
			if within := reply < second; v.Explained() != within || v.FalseRejects != 0 {
				t.Errorf("brief %t, answered within the window %t: explained %t, %+v", brief, within, v.Explained(), v)
			}
		}
	}
}

// TestBrief: without windows the verdict is the same under every kind of policy, and says
// of the windows that were touched what their list says.
func TestBrief(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	var events []Event
	for i := range int64(3000) {
		call := i * int64(time.Second)
		events = append(events, Event{
			Call: call, Reply: call + rng.Int64N(4)*int64(time.Second), Units: 1 + rng.Int64N(2),
			Subject: uint32(rng.IntN(20)), Outcome: Outcome(rng.IntN(2)),
		})
	}
	for _, w := range []quota.Window{
		{Kind: quota.Fixed, Length: time.Minute}, {Kind: quota.CalendarMonth}, {Kind: quota.Rolling, Length: time.Minute},
		{Kind: quota.Standing},
		{Kind: quota.FirstRequest, Length: time.Minute}, {Kind: quota.Bucket, Length: time.Minute, Refill: 5},
	} {
		cfg := Config{Window: w, Limit: 5, Epoch: time.Unix(1_700_000_000, 0)}
		whole := Judge(cfg, events)
		var touched touched
		for i, x := range whole.Windows {
			if i == 0 {
				touched.First = x.Index
				touched.Last = x.Index
			}
			touched.Windows++
			touched.First = min(touched.First, x.Index)
			touched.Last = max(touched.Last, x.Index)
			touched.Crossed = touched.Crossed || x.Crossed
		}
		if touched.Windows < 20 || whole.Touched != touched {
			t.Errorf("%s: touched %+v, the list has %+v", w.Kind, whole.Touched, touched)
		}
		cfg.Brief = true
		brief := Judge(cfg, events)
		if len(brief.Windows) > 0 {
			t.Errorf("%s: %d windows", w.Kind, len(brief.Windows))
		}
		brief.Windows = whole.Windows
		if !reflect.DeepEqual(brief, whole) {
			t.Errorf("%s: brief %+v\nwhole %+v", w.Kind, brief, whole)
		}
		if w.Kind == quota.Fixed && (touched.Last-touched.First != 50 || !touched.Crossed) {
			t.Errorf("51 minutes are %+v", touched)
		}
	}
}
