package parallel_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/parallel"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// The first piece ends last, so that order is no accident.
func TestDoKeepsTheOrder(t *testing.T) {
	const n = 20
	for _, workers := range []int{0, 1, 2, n, 2 * n} {
		var running, most, begun atomic.Int64
		second := make(chan struct{})
		var got []int
		for i, v := range parallel.Do(workers, n, func(i int) int {
			begun.Add(1)
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			defer running.Add(-1)
			switch {
			case i == 1 && workers > 1:
				close(second)
			case i == 0 && workers > 1:
				<-second // which runs at the same time
			}
			return i * i
		}) {
			if v != i*i {
				t.Fatalf("%d of %d: %d", i, workers, v)
			}
			got = append(got, v)
		}
		if len(got) != n || !slices.IsSorted(got) || begun.Load() != n {
			t.Errorf("parallel %d: %v, %d begun", workers, got, begun.Load())
		}
		if m := most.Load(); m > int64(max(workers, 1)) {
			t.Errorf("parallel %d: %d at the same time", workers, m)
		}
	}
}

// A loop that ends early leaves nothing running.
func TestDoEndsEarly(t *testing.T) {
	var running atomic.Int64
	more := make(chan struct{})
	for i := range parallel.Do(2, 10, func(i int) int {
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
