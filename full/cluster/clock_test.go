package cluster

import (
	"math/rand/v2"
	"testing"
	"time"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestClockBounds: however long requests and replies take, the truth is within what they tell,
// of clocks that drift apart too.
func TestClockBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		ahead := r.Int64N(4_000_000) - 2_000_000
		drift := r.Int64N(200) - 100 // ns, and ns for each ms
		at := time.Unix(1_800_000_000, 0)
		truth := func(ms int64) int64 { return ahead + drift*ms }
		told := func(ms int64) offset {
			there := time.Duration(r.Int64N(500_000))
			back := time.Duration(r.Int64N(500_000))
			coordinator := at.Add(time.Duration(ms) * time.Millisecond)
			own := coordinator.Add(time.Duration(truth(ms)))
			return exchange(own.Add(-there), coordinator, own.Add(back))
		}
		measured := func(ms int64) offset { return told(ms).both(told(ms)).both(told(ms)) }
		within := func(c offset, at int64) bool {
			return max(c.OffsetNS-at, at-c.OffsetNS) <= c.ErrorNS
		}
		one := told(0)
		three := measured(0)
		if !within(one, truth(0)) || !within(three, truth(0)) || three.ErrorNS > 500_000 {
			t.Fatalf("%+v and %+v of %d", one, three, truth(0))
		}
		all := three.spanning(measured(1000))
		for ms := int64(0); ms <= 1000; ms += 100 {
			if !within(all, truth(ms)) {
				t.Fatalf("%+v after %d ms, when it is %d", all, ms, truth(ms))
			}
		}
	}
	a := offset{OffsetNS: 0, ErrorNS: 5}
	b := offset{OffsetNS: 100, ErrorNS: 9}
	if a.both(b) != a || b.both(a) != a {
		t.Error("of two that contradict each other, the narrower one counts")
	}
}
