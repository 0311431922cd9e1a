package generators_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/generators"
)

// TestClockBounds: however long requests and replies take, the truth is within what they tell,
// of clocks that drift apart too.
func TestClockBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		ahead, drift := r.Int64N(4_000_000)-2_000_000, r.Int64N(200)-100 // ns, and ns for each ms
		at := time.Unix(1_800_000_000, 0)
		offset := func(ms int64) int64 { return ahead + drift*ms }
		exchange := func(ms int64) generators.Clock {
			there, back := time.Duration(r.Int64N(500_000)), time.Duration(r.Int64N(500_000))
			coordinator := at.Add(time.Duration(ms) * time.Millisecond)
			own := coordinator.Add(time.Duration(offset(ms)))
			return generators.Exchange(own.Add(-there), coordinator, own.Add(back))
		}
		measured := func(ms int64) generators.Clock { return exchange(ms).Both(exchange(ms)).Both(exchange(ms)) }
		within := func(c generators.Clock, truth int64) bool {
			return max(c.OffsetNS-truth, truth-c.OffsetNS) <= c.ErrorNS
		}
		one, three := exchange(0), measured(0)
		if !within(one, offset(0)) || !within(three, offset(0)) || three.ErrorNS > 500_000 {
			t.Fatalf("%+v and %+v of %d", one, three, offset(0))
		}
		all := three.Spanning(measured(1000))
		for ms := int64(0); ms <= 1000; ms += 100 {
			if !within(all, offset(ms)) {
				t.Fatalf("%+v after %d ms, when it is %d", all, ms, offset(ms))
			}
		}
	}
	a, b := generators.Clock{OffsetNS: 0, ErrorNS: 5}, generators.Clock{OffsetNS: 100, ErrorNS: 9}
	if a.Both(b) != a || b.Both(a) != a {
		t.Error("of two that contradict each other, the narrower one counts")
	}
}

func TestCheckRunID(t *testing.T) {
	for text, ok := range map[string]bool{"a": true, "abc123": true, "": false, "A": false, "a_b": false, "a:b": false, "abcdefghijklmnopqrstuvwxyz0123456": false} {
		if err := generators.CheckRunID(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
