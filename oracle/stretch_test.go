package oracle

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// TestPlantedLongestWrong: the filter, tier 1, rejects one unit of a limit of 10 without reason from 100 to 141, and tier 2 for longer, but not
// in a row. What other answers and another instance say in between ends a row there and nowhere else.
func TestPlantedLongestWrong(t *testing.T) {
	at := func(call int64, outcome Outcome, tier, instance uint8) Event {
		e := one(0, call, 1, outcome)
		e.Tier, e.Instance = tier, instance
		return e
	}
	epoch := time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)
	for _, k := range []quota.Window{{Kind: quota.Standing}, {Kind: quota.CalendarMonth}, {Kind: quota.Rolling, Length: time.Second},
		{Kind: quota.FirstRequest, Length: time.Second}, {Kind: quota.Bucket, Length: time.Hour}} {
		cfg := Config{Window: k, Limit: 10, Epoch: epoch}
		row := []Event{at(0, Admitted, 2, 0), at(140, Rejected, 1, 0), at(100, Rejected, 1, 0), at(120, Failed, 0, 0), at(110, Admitted, 2, 1), at(130, Rejected, 1, 0)}
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
			"a longer one of tier 2":      {[]Event{at(200, Rejected, 2, 0), at(400, Rejected, 2, 0)}, at(400, Rejected, 2, 0).Reply - 200, 2},
		} {
			v := Judge(cfg, append(row[:len(row):len(row)], c.more...))
			if v.LongestWrong != c.want || v.LongestTier != c.tier {
				t.Errorf("%v, %s: %d by tier %d, want %d by %d", k, name, v.LongestWrong, v.LongestTier, c.want, c.tier)
			}
		}
		// A rejection that is right is no wrong verdict, and ends one.
		full := Judge(cfg, []Event{at(0, Rejected, 1, 0), one(0, 50, 10, Admitted), at(100, Rejected, 1, 0), at(900, Rejected, 1, 0)})
		if want := at(0, Rejected, 1, 0).Reply; full.LongestWrong != want {
			t.Errorf("%v: %d, want %d", k, full.LongestWrong, want)
		}
		if both := full.With(&Verdict{LongestWrong: 77, LongestTier: 9}); both.LongestWrong != 77 || both.LongestTier != 9 {
			t.Errorf("two quotas: %d by %d", both.LongestWrong, both.LongestTier)
		}
	}
}
