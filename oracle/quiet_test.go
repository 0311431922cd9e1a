package oracle

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// judgeEach judges all windows one by one.
func judgeEach(cfg Config, events []Event) Verdict {
	j := newJudge(cfg, 0)
	j.each = true
	j.subject(ordered(events))
	return j.finish()
}

// apart lists the windows that one entry stands for.
func apart(windows []windowVerdict) (all []windowVerdict) {
	for _, window := range windows {
		alike := window.Alike
		window.Alike = 0
		for range 1 + alike {
			all = append(all, window)
			window.Index++
		}
	}
	return all
}

// TestQuietWindows: a verdict is the same whether windows that requests only pass through are judged one by one or not.
func TestQuietWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	seen := tally{}
	for range 20_000 {
		cfg := Config{
			Window: quota.Window{Kind: quota.Fixed, Length: width}, Limit: rng.Int64N(4), Epoch: time.Unix(7, offset),
		}
		initial := rng.Int64N(3)
		cfg.Initial = func(uint32) int64 { return initial }
		from := int64(0)
		for range rng.IntN(4) {
			from += rng.Int64N(10 * width)
			cfg.Changes = append(cfg.Changes, LimitChange{From: from, To: from, Limit: rng.Int64N(4)})
			if rng.IntN(2) == 0 {
				from += rng.Int64N(2 * width)
				cfg.Changes[len(cfg.Changes)-1].To = from
			}
		}
		events := longHistory(rng)
		want := judgeEach(cfg, events)
		got := Judge(cfg, events)
		skipped := len(want.Windows) > len(got.Windows)
		seen.note("skipped", skipped)
		seen.note("not skipped", !skipped)
		seen.note("a possible leak of skipped windows", skipped && got.LeakPossible > got.LeakUnits)
		seen.note("a certain leak", skipped && got.LeakWorst > 0)
		seen.note("changes of the limit", len(cfg.Changes) > 0 && len(want.Windows) > 5)
		seen.note("rejections of skipped windows", skipped && got.FalseRejectsPossible > 0)
		got.Windows = apart(got.Windows)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nof %+v: limit %d, initial %d\n got %+v\nwant %+v", events, cfg.Window, cfg.Limit, initial, got, want)
		}
	}
	seen.check(t, 100)
}

// longHistory has requests that last for up to a dozen windows, some of which are given back. Before them, one unit after
// the other may be taken and given back at once: it looks as if many units leaked, until each moment is looked at.
func longHistory(rng *rand.Rand) (events []Event) {
	for i := range rng.Int64N(10) {
		take := Event{Call: 4 * i, Reply: 4*i + 1, Units: 1}
		back := Event{Call: 4*i + 2, Reply: 4*i + 3, Units: 1, Kind: Refund, TakeCall: take.Call, TakeReply: take.Reply}
		events = append(events, take, back)
	}
	for range 1 + rng.IntN(5) {
		call := rng.Int64N(20*width) - 3*width
		take := Event{
			Call: call, Reply: call + rng.Int64N(1+rng.Int64N(12*width)), Units: 1 + rng.Int64N(5), Outcome: Outcome(rng.IntN(3)),
		}
		events = append(events, take)
		if take.Outcome != Admitted || rng.IntN(2) == 0 {
			continue
		}
		call = take.Call + rng.Int64N(10*width)
		back := Event{
			Call: call, Reply: call + rng.Int64N(5*width), Units: 1 + rng.Int64N(take.Units), Kind: Refund,
			TakeCall: take.Call, TakeReply: take.Reply,
		}
		events = append(events, back)
	}
	return events
}

// TestManyQuietWindows: a year within one call is judged at once under windows of a millisecond.
func TestManyQuietWindows(t *testing.T) {
	const year = 365 * 24 * time.Hour
	cfg := Config{Window: quota.Window{Kind: quota.Fixed, Length: time.Millisecond}, Limit: 1, Epoch: time.Unix(1000, 0)}
	v := Judge(cfg, []Event{{Reply: int64(year), Units: 2}, {Call: int64(year), Reply: int64(year), Units: 2}})
	windows := int64(year/time.Millisecond) + 1
	if v.Touched.Windows != windows || len(v.Windows) > 5 || v.LeakUnits != 1 || v.LeakPossible != 3 {
		t.Errorf("%d windows of %d in %d entries, a leak of %d to %d units", v.Touched.Windows, windows, len(v.Windows),
			v.LeakUnits, v.LeakPossible)
	}
}
