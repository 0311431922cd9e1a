package inproc

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/quota"
)

type tiers struct {
	mu    sync.Mutex
	set   map[string][]int64
	bits  []uint64
	due   atomic.Bool
	total atomic.Int64
	next  atomic.Pointer[inner]
	any   any
	self  *tiers
}

type inner struct{ n int64 }

func (*tiers) Take(context.Context, quota.Request) (quota.Decision, error) {
	return quota.Decision{}, nil
}
func (*tiers) Close(context.Context) error { return nil }

func newTiers() *tiers {
	s := &tiers{set: map[string][]int64{"a": {1}, "b": {2, 3}}, bits: make([]uint64, 100), any: inner{1}}
	s.self = s
	s.next.Store(&inner{1})
	return s
}

func hashOf(s *tiers) engine.Digest {
	var d engine.Digest
	fingerprint(&d, s)
	return d
}

func TestFingerprintSeesEveryChange(t *testing.T) {
	plain := hashOf(newTiers())
	if again := hashOf(newTiers()); again != plain {
		t.Fatal("two equal values have two hashes")
	}
	locked := newTiers()
	locked.mu.Lock()
	if hashOf(locked) != plain {
		t.Error("a mutex counts as memory")
	}
	for name, change := range map[string]func(*tiers){
		"map":       func(s *tiers) { s.set["b"][1]++ },
		"map key":   func(s *tiers) { s.set["c"] = nil },
		"bits":      func(s *tiers) { s.bits[63] = 4 },
		"flag":      func(s *tiers) { s.due.Store(true) },
		"counter":   func(s *tiers) { s.total.Add(1) },
		"pointee":   func(s *tiers) { s.next.Load().n++ },
		"pointer":   func(s *tiers) { s.next.Store(nil) },
		"interface": func(s *tiers) { s.any = inner{2} },
	} {
		s := newTiers()
		change(s)
		if hashOf(s) == plain {
			t.Errorf("a change of the %s is not seen", name)
		}
	}
}

// A package of a strategy's own may be called as one that is left out.
func TestFromOutside(t *testing.T) {
	for path, want := range map[string]bool{
		"sync": true, "internal/sync": true, "github.com/redis/go-redis/v9": true, "github.com/jackc/pgx/v5/pgxpool": true,
		"github.com/quotabench/quotabench/internal/sched": true,
		"sync/atomic": false, "example.com/limiter/sync": false, "golang.org/x/sync": false, "example.com/limiter/internal/sched": false, "github.com/redistricting/limiter": false,
	} {
		if got := fromOutside(path); got != want {
			t.Errorf("%s is left out: %t, want %t", path, got, want)
		}
	}
}
