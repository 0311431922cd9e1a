package oracle

import (
	"reflect"
	"sync"
	"testing"
)

func TestHistoryKeepsEverything(t *testing.T) {
	const workers, each = 7, 9001
	h := NewHistory(HistoryOptions{Workers: workers, Limit: workers * each})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range int64(each) {
				h.Append(w, Event{Call: i, Reply: i, Units: int64(w), Subject: uint32(i % 13)})
			}
		})
	}
	wg.Wait()
	out := collect(t, h.Subjects())
	if len(out) != workers*each || h.Len() != workers*each || h.Lost() > 0 {
		t.Fatalf("%d events, length %d, %d lost", len(out), h.Len(), h.Lost())
	}
	seen := map[Event]bool{}
	for i, e := range out {
		seen[e] = true
		if i > 0 && compare(out[i-1], e) > 0 {
			t.Fatalf("event %d is out of order", i)
		}
	}
	if len(seen) != len(out) {
		t.Errorf("%d different events of %d", len(seen), len(out))
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	h := NewHistory(HistoryOptions{Workers: 1, Limit: 1 << 20})
	for range 1 << 13 {
		h.Append(0, Event{}) // up to a chunk of full size
	}
	if n := testing.AllocsPerRun(1000, func() { h.Append(0, Event{}) }); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
}

// TestOrdered covers both ways of ordering, and leaves its argument alone.
func TestOrdered(t *testing.T) {
	for _, far := range []uint32{5, 4_000_000_000} {
		in := []Event{{Subject: far}, {Subject: 1, Call: 9}, {Subject: 1, Call: 2}, {Subject: 0}}
		was := append([]Event(nil), in...)
		out := ordered(in)
		want := []Event{was[3], was[2], was[1], was[0]}
		if !reflect.DeepEqual(in, was) || !reflect.DeepEqual(out, want) {
			t.Errorf("ordered %v as %v, and left %v", was, out, in)
		}
	}
}
