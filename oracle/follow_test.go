package oracle

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// TestWindowsThatTouch: the end of a window is the first moment of the next one
// only if that one still holds its units then. A refund whose take is not known
// hides the first excess up to 300, and the second one is gone at 400.
func TestWindowsThatTouch(t *testing.T) {
	v := Judge(Config{Window: quota.Window{Kind: quota.Rolling, Length: 100}, Limit: 1, Epoch: time.Unix(1_000_000, 0)}, []Event{
		{Kind: Refund, Call: 200, Reply: 201, Units: 5},
		{Call: 201, Reply: 202, Units: 6},
		{Call: 300, Reply: 302, Units: 6},
	})
	if v.LeakUnits != 5 || v.LeakWindows != 1 {
		t.Errorf("a leak of %d units in %d windows, want 5 in 1", v.LeakUnits, v.LeakWindows)
	}
}
