package oracle

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

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
