package oracle

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// TestBriefExplainsNoMore: a rejection that came in the next window may have been wrong, also if windows are not listed.
func TestBriefExplainsNoMore(t *testing.T) {
	const second = int64(time.Second)
	events := []Event{{Call: 0, Reply: 1, Units: 1}, {Call: second - 5, Reply: second + 5, Units: 1, Outcome: Rejected}}
	for _, reply := range []int64{second - 1, second + 5} {
		events[1].Reply = reply
		for _, brief := range []bool{false, true} {
			v := Judge(Config{Window: quota.Window{Kind: quota.Fixed, Length: time.Second}, Limit: 1, Epoch: time.Unix(1000, 0), Brief: brief}, events)
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
		{Kind: quota.Fixed, Length: time.Minute}, {Kind: quota.CalendarMonth}, {Kind: quota.Rolling, Length: time.Minute}, {Kind: quota.Standing},
		{Kind: quota.FirstRequest, Length: time.Minute}, {Kind: quota.Bucket, Length: time.Minute, Refill: 5},
	} {
		cfg := Config{Window: w, Limit: 5, Epoch: time.Unix(1_700_000_000, 0)}
		whole := Judge(cfg, events)
		var touched touched
		for i, x := range whole.Windows {
			if i == 0 {
				touched.First, touched.Last = x.Index, x.Index
			}
			touched.Windows++
			touched.First, touched.Last = min(touched.First, x.Index), max(touched.Last, x.Index)
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
