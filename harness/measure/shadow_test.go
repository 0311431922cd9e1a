package measure

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// one is a decision about one unit, at a moment in which nothing else happens.
func one(at, used int64) reading {
	return reading{admitted: true, call: 10 * at, reply: 10*at + 5, units: 1, used: used}
}

// rejection is one that found so many units in use.
func rejection(at, used int64) reading {
	t := one(at, used)
	t.admitted = false
	return t
}

// during has a decision begin before the one before it ends.
func during(t reading) reading {
	t.call -= 8
	return t
}

// TestShadow: a change by one unit shows in what decisions say, and a lost update does not.
func TestShadow(t *testing.T) {
	for name, c := range map[string]struct {
		list         []reading
		initial      int64
		fell, gained int64
	}{
		"calm":                     {[]reading{one(1, 1), one(2, 2), one(3, 3), rejection(4, 3)}, 0, 0, 0},
		"in any order":             {[]reading{one(1, 1), one(2, 3), during(one(3, 2)), one(4, 4)}, 0, 0, 0},
		"raised":                   {[]reading{one(1, 1), one(2, 3), one(3, 4)}, 0, 0, 1},
		"raised in a rush":         {[]reading{one(1, 1), during(one(2, 2)), during(one(3, 4)), during(one(4, 5))}, 0, 0, 1},
		"raised at the end":        {[]reading{one(1, 1), one(2, 2), rejection(3, 5)}, 0, 0, 3},
		"lowered":                  {[]reading{one(1, 1), one(2, 2), one(3, 2), one(4, 3)}, 0, 1, 0},
		"lowered at the limit":     {[]reading{one(1, 1), one(2, 2), rejection(3, 2), one(4, 2)}, 0, 1, 0},
		"an update lost":           {[]reading{one(1, 1), one(2, 2), during(one(3, 2)), one(4, 3)}, 0, 0, 0},
		"lowered before a rush":    {[]reading{one(1, 1), one(2, 2), one(3, 2), during(one(4, 3))}, 0, 1, 0},
		"lowered after a rush":     {[]reading{one(1, 1), one(2, 2), during(one(3, 3)), one(4, 3)}, 0, 1, 0},
		"a late write":             {[]reading{one(1, 1), one(2, 2), during(one(3, 2)), one(4, 2)}, 0, 0, 0},
		"lowered before the first": {[]reading{one(1, 4), one(2, 5)}, 4, 1, 0},
		"raised before the first":  {[]reading{one(1, 7), one(2, 8)}, 4, 0, 2},
	} {
		s := shadow{list: c.list, initial: c.initial}
		s.follow()
		if s.fell != c.fell || s.gained != c.gained {
			t.Errorf("%s: %d units fell and %d were gained, want %d and %d", name, s.fell, s.gained, c.fell, c.gained)
		}
	}
}

// TestStrangers: the change is somebody else's only if the counter at rest says the same, and if few decisions show
// one.
func TestStrangers(t *testing.T) {
	// counted are so many decisions of which each adds by units to the counter, with changes in between.
	counted := func(n, by int64, changes map[int64]int64) (list []reading, used int64) {
		for i := range n {
			used += by + changes[i]
			list = append(list, one(i+1, used))
		}
		return list, used
	}
	for name, c := range map[string]struct {
		by      int64 // what the counter gains by a decision about one unit
		changes map[int64]int64
		rest    int64 // by how much the counter at rest differs from what decisions said last
		early   int   // the decision that already says what the next one takes, as one that reads after it
		want    int
	}{
		"calm":                                   {by: 1},
		"raised by 1":                            {by: 1, changes: map[int64]int64{7: 1}, want: 1},
		"lowered by 1":                           {by: 1, changes: map[int64]int64{7: -1}, want: 1},
		"raised by 1, and two decisions at once": {by: 1, changes: map[int64]int64{7: 1}, early: 12, want: 1},
		"two decisions at once":                  {by: 1, early: 12},
		"raised twice":                           {by: 1, changes: map[int64]int64{7: 1, 11: 2}, want: 1},
		"it counts double":                       {by: 2},
		"it says what it has not":                {by: 1, changes: map[int64]int64{7: 1}, rest: -1},
		"it admits one over, and says none is left": {by: 1, changes: map[int64]int64{19: -1}, rest: 1},
	} {
		t.Run(name, func(t *testing.T) {
			list, used := counted(20, c.by, c.changes)
			if c.early > 0 {
				list[c.early].used = list[c.early+1].used
			}
			history := oracle.NewHistory(oracle.HistoryOptions{Workers: 1})
			for _, decision := range list {
				history.Append(0, oracle.Event{Call: decision.call, Reply: decision.reply, Units: 1, Kind: oracle.Take,
					Outcome: oracle.Admitted})
			}
			policy := &quota.Policy{Window: quota.Window{Kind: quota.Standing}, Limit: 1000}
			drive := &drive{policy: policy, readings: list}
			atRest := harness.Readings{At: harness.AtRest, List: []harness.Reading{
				{Call: 1000, Reply: 1001, Tier: "redis", Units: used + c.rest, Known: true}}}
			got, err := new(counters).strangers(&pass{drive: drive}, shadowFacts(policy, history, atRest))
			if err != nil || len(got) != c.want {
				t.Errorf("%+v, %v, want %d", got, err, c.want)
			}
		})
	}
}

// TestStrangerInARush: a fall while decisions are in flight is the stranger's if all falls of the run may have happened
// at one moment. At several moments they may be a race's.
func TestStrangerInARush(t *testing.T) {
	for name, c := range map[string]struct {
		alone int64   // the decision about the first subject before which a unit is taken, and nothing is in flight
		rush  []int64 // those about the second subject that lose a unit while the one before is in flight
		want  int
	}{
		"at the stranger's moment":        {alone: 8, rush: []int64{8}, want: 2},
		"at another moment":               {alone: 8, rush: []int64{15}, want: 1},
		"at the only moment":              {rush: []int64{15}, want: 1},
		"at two moments":                  {rush: []int64{8, 15}, want: 0},
		"at most moments, as of one rush": {rush: []int64{8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			history := oracle.NewHistory(oracle.HistoryOptions{Workers: 1})
			drive := &drive{}
			readings := harness.Readings{At: harness.AtRest}
			for subject := range uint32(2) {
				used := int64(0)
				for i := int64(1); i <= 20; i++ {
					falls := subject == 0 && i == c.alone || subject == 1 && slices.Contains(c.rush, i)
					if !falls {
						used++
					}
					decision := one(i, used)
					if subject == 1 && falls {
						decision = during(decision)
					}
					decision.subject = subject
					drive.readings = append(drive.readings, decision)
					history.Append(0, oracle.Event{Call: decision.call, Reply: decision.reply, Subject: subject, Units: 1,
						Kind: oracle.Take, Outcome: oracle.Admitted})
				}
				readings.List = append(readings.List, harness.Reading{Subject: subject, Call: 1000, Reply: 1001,
					Tier: "redis", Units: used, Known: true})
			}
			drive.policy = &quota.Policy{Window: quota.Window{Kind: quota.Standing}, Limit: 1000}
			got, err := new(counters).strangers(&pass{drive: drive}, shadowFacts(drive.policy, history, readings))
			if err != nil || len(got) != c.want {
				t.Errorf("%+v, %v, want %d", got, err, c.want)
			}
		})
	}
}

// shadowFacts are those of a run that began with nothing in use.
func shadowFacts(policy *quota.Policy, history *oracle.History, atRest harness.Readings) *harness.Facts {
	return &harness.Facts{
		Policy: policy, History: history,
		Selection: strategies.Selection{Meta: &strategies.Meta{Counts: quota.CountsAdmitted}},
		Initial:   func(uint32) int64 { return 0 },
		Readings:  []harness.Readings{atRest},
	}
}
