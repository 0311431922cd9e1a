package seed_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/seed"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestStreamsDiffer derives the streams of neighbouring seeds, of every purpose,
// and of rounds and instances: no two start alike.
func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64][4]uint64{}
	add := func(start uint64, from ...uint64) {
		t.Helper()
		var key [4]uint64
		copy(key[:], from)
		if other, ok := seen[start]; ok {
			t.Errorf("%v and %v start alike", key, other)
		}
		seen[start] = key
	}
	for s := range uint64(20) {
		for p := seed.Subjects; p <= seed.Conditions; p++ {
			add(seed.Stream(s, p), s, uint64(p))
			for a := range uint64(6) {
				add(seed.Stream(s, p, a), s, uint64(p), a+1)
				for b := range uint64(6) {
					add(seed.Stream(s, p, a, b), s, uint64(p), a+1, b+1)
				}
			}
		}
	}
}

// TestPurposesKeepTheirNumbers: recorded seeds reproduce what they made before.
func TestPurposesKeepTheirNumbers(t *testing.T) {
	got := []seed.Purpose{seed.Hold, seed.Instance, seed.Rush, seed.Conditions}
	if want := []seed.Purpose{9, 12, 16, 23}; !slices.Equal(got, want) {
		t.Errorf("Hold, Instance, Rush and Conditions are %d, not %d: new purposes come last", got, want)
	}
	// SplitMix64 with the state 1234567, as its author's implementation gives it.
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423} {
		if got := seed.At(1234567, uint64(i)); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

func TestSourceReadsItsStream(t *testing.T) {
	s := seed.NewSource(7, seed.Network)
	start := seed.Stream(7, seed.Network)
	for i := range uint64(100) {
		if got, want := s.Uint64(), seed.At(start, i); got != want {
			t.Fatalf("number %d is %#x, want %#x", i, got, want)
		}
	}
	state := s.State()
	next := s.Uint64()
	s.SetState(state)
	if again := s.Uint64(); again != next {
		t.Errorf("after going back the source gives %#x, not %#x again", again, next)
	}
}

// TestRandIsSafe draws from several goroutines: together they get each number of
// the stream once.
func TestRandIsSafe(t *testing.T) {
	const workers, each = 8, 2000
	want := map[uint64]bool{}
	for i := range uint64(workers * each) {
		want[seed.At(seed.Stream(3, seed.Instance, 1, 0), i)] = true
	}
	r := seed.Rand(3, seed.Instance, 1, 0)
	got := make([][]uint64, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				got[w] = append(got[w], r.Uint64())
			}
		})
	}
	wg.Wait()
	for _, values := range got {
		for _, v := range values {
			if !want[v] {
				t.Fatalf("%#x is not of the stream, or was given twice", v)
			}
			delete(want, v)
		}
	}
}

// TestValuesDiffer looks for streams that coincide or are shifted copies of each
// other.
func TestValuesDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for s := range uint64(4) {
		for p := seed.Subjects; p <= seed.Rush; p++ {
			start := seed.Stream(s, p)
			for i := range uint64(1_000) {
				v := seed.At(start, i)
				if seen[v] {
					t.Fatalf("seed %d, purpose %d: value %d was drawn before", s, p, i)
				}
				seen[v] = true
			}
		}
	}
}
