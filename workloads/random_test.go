package workloads

import (
	"math"
	"testing"
	"time"
)

func TestExponential(t *testing.T) {
	if longest := newExponential(maxMean).draw(0); longest < 44*maxMean || longest > 45*maxMean { // ln(2^64) = 44.4
		t.Errorf("the longest time is %v", longest)
	}
	if e := newExponential(time.Second); e.draw(math.MaxUint64) != 0 || (e.draw(1<<63-1)-693_147_181).Abs() > 1 {
		t.Errorf("%v at the end, median %v", e.draw(math.MaxUint64), e.draw(1<<63-1))
	}
	if e := newExponential(0); e.draw(0) != 0 {
		t.Errorf("a mean of 0 draws %v", e.draw(0))
	}
}

func FuzzQuickNegLog2(f *testing.F) {
	for _, x := range []uint64{0, 1, 2, 1<<63 - 2, 1<<63 - 1, 1 << 63, math.MaxUint64 - 1, math.MaxUint64,
		0xB504F333F9DE6484, 0x807FFFFFFFFFFFFF} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x uint64) {
		if d := int64(quickNegLog2(x) - negLog2(x)); d < -1 || d > 1<<14 {
			t.Errorf("quickNegLog2(%#x) is %d, %d off", x, quickNegLog2(x), d)
		}
	})
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		share float64
		x     uint64
		want  bool
	}{
		{0, 0, false}, {1, 0, true}, {1, math.MaxUint64, true}, {0.5, 1<<63 - 1, true}, {0.5, 1 << 63, false},
		{1 - 0x1p-53, math.MaxUint64, false}, {1 - 0x1p-53, math.MaxUint64 - 1<<11, true},
	} {
		if got := share(c.share).above(c.x); got != c.want {
			t.Errorf("%#x is in the share %v: %v", c.x, c.share, got)
		}
	}
}
