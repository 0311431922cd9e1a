package ordered_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quotabench/quotabench/internal/ordered"
	_ "github.com/quotabench/quotabench/internal/testenv"
)

// The first piece ends last, so that order is no accident.
func TestDoKeepsTheOrder(t *testing.T) {
	const n = 20
	for _, parallel := range []int{0, 1, 2, n, 2 * n} {
		var running, most, begun atomic.Int64
		second := make(chan struct{})
		var got []int
		for i, v := range ordered.Do(parallel, n, func(i int) int {
			begun.Add(1)
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			defer running.Add(-1)
			switch {
			case i == 1 && parallel > 1:
				close(second)
			case i == 0 && parallel > 1:
				<-second // which runs at the same time
			}
			return i * i
		}) {
			if v != i*i {
				t.Fatalf("%d of %d: %d", i, parallel, v)
			}
			got = append(got, v)
		}
		if len(got) != n || !slices.IsSorted(got) || begun.Load() != n {
			t.Errorf("parallel %d: %v, %d begun", parallel, got, begun.Load())
		}
		if m := most.Load(); m > int64(max(parallel, 1)) {
			t.Errorf("parallel %d: %d at the same time", parallel, m)
		}
	}
}

// A loop that ends early leaves nothing running.
func TestDoEndsEarly(t *testing.T) {
	var running atomic.Int64
	more := make(chan struct{})
	for i := range ordered.Do(2, 10, func(i int) int {
		running.Add(1)
		defer running.Add(-1)
		if i > 1 {
			<-more
		}
		return 0
	}) {
		if i == 1 {
			close(more)
			break
		}
	}
	if running.Load() != 0 {
		t.Error("still running")
	}
}
