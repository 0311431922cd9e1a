package inproc

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"
)

type tiers struct {
	mu    sync.Mutex
	once  sync.Once
	kept  sync.Map
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

// Two states of a machine that differ in their types alone, and one that has the first's
// fields.
type (
	closed struct{ n int64 }
	opened struct{ n int64 }
	empty  struct{}
	bare   struct{}
)

// outer is reached by its own address and by that of its first field.
type outer struct {
	first inner
	more  int64
}

func newTiers() *tiers {
	s := &tiers{set: map[string][]int64{"a": {1}, "b": {2, 3}}, bits: make([]uint64, 100), any: inner{1}}
	s.self = s
	s.next.Store(&inner{1})
	for i := range 20 {
		s.kept.Store(i, &inner{1})
	}
	return s
}

func hashOf(s *tiers) engine.Digest { return digest(&memory{}, s) }

func digest(of hasher, s *tiers) (d engine.Digest) {
	of.hash(&d, s, view{})
	return d
}

func TestFingerprintSeesEveryChange(t *testing.T) {
	plain := hashOf(newTiers())
	if again := hashOf(newTiers()); again != plain {
		t.Fatal("two equal values have two hashes")
	}
	locked := newTiers()
	locked.mu.Lock()
	if hashOf(locked) == plain {
		t.Error("that a mutex is held, as TryLock sees it, is not seen")
	}
	for name, change := range map[string]func(*tiers){
		"map":       func(s *tiers) { s.set["b"][1]++ },
		"map key":   func(s *tiers) { s.set["c"] = nil },
		"bits":      func(s *tiers) { s.bits[63] = 4 },
		"flag":      func(s *tiers) { s.due.Store(true) },
		"once":      func(s *tiers) { s.once.Do(func() {}) },
		"sync.Map":  func(s *tiers) { s.kept.Store("a", 2) },
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

// What is told apart although its bytes are the same: values of other types behind an
// interface, and which of two equal objects a pointer leads to.
func TestFingerprintTellsApart(t *testing.T) {
	x := &inner{1}
	y := &inner{1}
	m := map[string]int{}
	for name, pair := range map[string][2]any{
		"types of structs":    {closed{1}, opened{1}},
		"types of pointers":   {&closed{1}, &opened{1}},
		"types of numbers":    {int64(1), uint64(1)},
		"types without bytes": {empty{}, bare{}},
		"none and nothing":    {nil, empty{}},
		"functions and none":  {nil, func() {}},
		"the object":          {[]*inner{x, y, x}, []*inner{x, y, y}},
		"the map":             {[]map[string]int{m, m}, []map[string]int{m, {}}},
	} {
		a := newTiers()
		b := newTiers()
		a.any, b.any = pair[0], pair[1]
		if hashOf(a) == hashOf(b) {
			t.Errorf("%s are not told apart", name)
		}
	}
}

// What an interface held before makes no difference to its hash.
func TestFingerprintOfChangingTypes(t *testing.T) {
	values := []any{&closed{1}, &opened{1}, inner{1}, nil, int64(1), []any{&closed{2}, &opened{2}, inner{2}}, func() {},
		map[string]any{"a": &closed{3}, "b": opened{3}}}
	var m memory
	s := newTiers()
	for range 3 {
		for i, v := range values {
			s.any = v
			fresh := newTiers()
			fresh.any = v
			got := digest(&m, s)
			again := digest(&m, s)
			if want := hashOf(fresh); got != want || again != want {
				t.Errorf("value %d has another hash after others", i)
			}
		}
	}
}

// A struct and its first field lie at one address. The field is met first, then all.
func TestFingerprintOfFirstField(t *testing.T) {
	of := func(more int64) engine.Digest {
		o := &outer{more: more}
		s := newTiers()
		s.any = []any{&o.first, o}
		return hashOf(s)
	}
	if of(1) == of(2) {
		t.Error("what follows the first field is not seen")
	}
}

// Entries of a map come in another order each time, which must not matter if they
// share an object, nor if a map holds itself.
func TestFingerprintOfSharedEntries(t *testing.T) {
	many := map[int]any{}
	x := &inner{1}
	for i := range 50 {
		many[i] = []any{x, &inner{int64(i)}}
	}
	many[50] = many
	s := newTiers()
	s.any = many
	first := hashOf(s)
	for range 50 {
		if hashOf(s) != first {
			t.Fatal("one memory has two hashes")
		}
	}
	x.n++
	if hashOf(s) == first {
		t.Error("a change of what entries share is not seen")
	}
}

// Many objects are found again as few are.
func TestFingerprintOfManyObjects(t *testing.T) {
	var list []*inner
	for i := range 10 * manyPlaces {
		list = append(list, &inner{1}, &inner{int64(i)})
	}
	of := func(last *inner) engine.Digest {
		s := newTiers()
		s.any = append(list[:len(list):len(list)], last)
		return hashOf(s)
	}
	if two, four, again := of(list[2]), of(list[4]), of(list[4]); two == four || four != again {
		t.Error("which of many objects is not seen")
	}
}

// Functions have variables if they are literals, or methods of a value that is none of the surroundings'.
func TestFunctionsWithVariables(t *testing.T) {
	for name, want := range map[string]bool{
		"time.Now": false, "example.com/limiter.keyOf": false, "example.com/limiter.(*Limiter).allow": false,
		"example.com/limiter.New.func1": true, "example.com/limiter.New.func1.2": true, "main.glob..func1": true,
		"example.com/limiter.(*Limiter).allow-fm":                                 true,
		"github.com/quotabench/quotabench/quota.Clock.Now-fm":                     false,
		"github.com/quotabench/quotabench/internal/virtual/sched.(*Jobs).Wake-fm": false,
		"github.com/redis/go-redis/v9.(*Client).Pipeline-fm":                      false,
		"github.com/redistricting/limiter.(*Limiter).allow-fm":                    true,
	} {
		if got := mayCapture(name); got != want {
			t.Errorf("%s has variables: %t, want %t", name, got, want)
		}
	}
}

// What cannot be looked at is noted, and what can be is not.
func TestHidden(t *testing.T) {
	n := 0
	for name, c := range map[string]struct {
		value  any
		hidden int
	}{
		"function": {hashOf, 0}, "closure": {func() {
			n++
		}, 1}, "method": {newTiers().Close, 1}, "method of a clock": {quota.Clock(nil), 0},
		"no channel": {(chan int)(nil), 0}, "channel": {make(chan int), 1}, "map": {&sync.Map{}, 0},
		"pool": {&sync.Pool{}, 1}, "once": {&sync.Once{}, 0},
		"command": {redis.NewIntResult(1, nil), 1}, "client": {redis.NewClient(&redis.Options{}), 0},
		"script": {redis.NewScript(""), 0},
	} {
		s := newTiers()
		s.any = c.value
		var m memory
		digest(&m, s)
		if min(len(m.hidden), 1) != c.hidden {
			t.Errorf("%s: %d are hidden", name, len(m.hidden))
		}
	}
}
