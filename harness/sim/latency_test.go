package sim

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// TestDivideIsExact: what is drawn from a table is the same on every machine, and as it
// always was.
func TestDivideIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, width := range []uint64{1, 2, 3, 1000, 90_000_000, 400_000_000, 1_000_000_000} {
		s := line{width: width, inverse: math.MaxUint64 / width}
		for range 10_000 {
			for _, n := range []uint64{rng.Uint64(), rng.Uint64() >> rng.IntN(64), rng.Uint64N(1_000_000) * width,
				rng.Uint64N(1_000_000)*width + width - 1} {
				if got := s.divide(0, n); got != n/width {
					t.Fatalf("%d / %d is %d, want %d", n, width, got, n/width)
				}
			}
			if hi, lo := rng.Uint64N(width), rng.Uint64(); hi > 0 {
				if want, _ := bits.Div64(hi, lo, width); s.divide(hi, lo) != want {
					t.Fatalf("%d, %d / %d is not %d", hi, lo, width, want)
				}
			}
		}
	}
}

// TestDrawFindsItsLine: a number on the border of two lines belongs to the second.
func TestDrawFindsItsLine(t *testing.T) {
	l := Table{{0, 0}, {500_000, 0}, {500_000, time.Second}, {1_000_000, time.Second}}.lines()
	rng := rand.NewPCG(3, 4)
	var slow int
	for range 10_000 {
		switch d := l.draw(rng); d {
		case 0:
		case time.Second:
			slow++
		default:
			t.Fatalf("drew %v", d)
		}
	}
	if slow < 4_700 || slow > 5_300 {
		t.Errorf("%d of 10,000 are slow, want about half", slow)
	}
}
