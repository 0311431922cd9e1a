package inproc

import (
	"reflect"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// hasher hashes what strategies have in memory. Whoever asks knows nothing of how: see [memory], and its twin in the
// tests.
type hasher interface {
	// hash folds an instance into d. It returns what is hidden in it, which is valid until the next call.
	hash(digest *engine.Digest, strategy strategies.Strategy, of view) (hidden []unsafe.Pointer)
}

// view says what of an instance is hashed.
type view struct {
	// caller is set for what a caller can have seen, to which flags that only jobs
	// look at do not belong.
	caller  bool
	without *strategies.Shared // whose values are left out; nil for none
	// places is told the addresses of all that can change, also in entries of maps; nil if nobody asks.
	places map[unsafe.Pointer]bool
}

// memory hashes everything that can be reached from an open instance and may
// change while it works: its tiers, its queues, and the tables of the model and
// other memory that it shares. Asking each strategy for a hash of its own would
// make the search depend on whether its author forgot a field.
//
// What an instance was given by its surroundings is left out: clients of stores,
// the model's entrance, clocks and what they made. What has contents that cannot be
// looked at is noted as hidden: see hidden.go.
//
// How a type is hashed is worked out when it is first met: asking it again in each
// state takes longer than the hash.
type memory struct {
	digest *engine.Digest
	seen   visits
	plans  map[reflect.Type]*plan
	caller bool
	root   unsafe.Pointer   // the instance, if it is a pointer
	hidden []unsafe.Pointer // what the hash has come to
	// variables are what was found out about functions, by their code.
	variables map[uintptr]bool
}

var (
	clientType = reflect.TypeFor[redis.UniversalClient]()
	clockType  = reflect.TypeFor[quota.Clock]()
	givenTypes = map[reflect.Type]bool{
		reflect.TypeFor[*strategies.Model](): true, reflect.TypeFor[*quota.Policy](): true,
		reflect.TypeFor[*time.Location](): true, reflect.TypeFor[*strategies.Shared](): true,
		reflect.TypeFor[*redis.Script](): true, reflect.TypeFor[strategies.Tally](): true,
		reflect.TypeFor[*quota.Memo](): true, // which makes no difference to what is answered
	}
	flagType = reflect.TypeFor[strategies.Flag]()
)

// givenPackage is one whose values do not belong to a strategy.
var givenPackage = reflect.TypeFor[sched.Scheduler]().PkgPath()

// hash implements [hasher]. A memory serves any number of instances, one after the other.
func (m *memory) hash(digest *engine.Digest, strategy strategies.Strategy, of view) (hidden []unsafe.Pointer) {
	if m.plans == nil {
		m.plans = map[reflect.Type]*plan{}
		m.variables = map[uintptr]bool{}
	}
	m.seen.forget(0)
	m.hidden = m.hidden[:0]
	if of.without != nil {
		of.without.All(m.leaveOut)
	}
	m.digest = digest
	m.caller = of.caller
	m.seen.all = of.places
	value := reflect.ValueOf(strategy)
	if value.Kind() != reflect.Pointer {
		m.copied(value)
		return m.hidden
	}
	m.root = value.UnsafePointer()
	m.plan(value.Type()).hash(m, unsafe.Pointer(&m.root))
	return m.hidden
}

func (m *memory) leaveOut(value any) {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Map:
		m.seen.leaveOut(v.UnsafePointer(), m.plan(v.Type()))
	case reflect.Pointer:
		m.seen.leaveOut(v.UnsafePointer(), m.plan(v.Type().Elem()))
	}
}

// visits are the places that a hash has come to, in their order. A struct and its first
// field are two places at one address.
type visits struct {
	list []place
	// numbers finds places where there are many.
	numbers map[place]int
	all     map[unsafe.Pointer]bool
}

type place struct {
	at   unsafe.Pointer
	plan *plan
	// out is set if the place does not belong to what is hashed.
	out bool
}

// manyPlaces is how many are looked through one by one at most.
const manyPlaces = 24

// What stands for a place that was left out, for one that follows, and, with its number
// added, for one that was visited. No place is 0.
const leftOut, follows, visited = 1, 2, 3

func (s *visits) len() int { return len(s.list) }

func (s *visits) find(at unsafe.Pointer, of *plan) int {
	if len(s.list) > manyPlaces {
		for i := len(s.numbers); i < len(s.list); i++ {
			if s.numbers == nil {
				s.numbers = map[place]int{}
			}
			s.numbers[place{at: s.list[i].at, plan: s.list[i].plan}] = i
		}
		if n, ok := s.numbers[place{at: at, plan: of}]; ok {
			return n
		}
		return -1
	}
	for i := range s.list {
		if s.list[i].at == at && s.list[i].plan == of {
			return i
		}
	}
	return -1
}

// visit reports whether a place was visited before or is left out, and then a number that
// says which.
func (s *visits) visit(at unsafe.Pointer, of *plan) (number uint64, old bool) {
	n := s.find(at, of)
	switch {
	case n < 0:
		if s.all != nil && !of.nothing {
			s.all[at] = true
		}
		s.list = append(s.list, place{at: at, plan: of})
		return 0, false
	case s.list[n].out:
		return leftOut, true
	default:
		return visited + uint64(n), true
	}
}

func (s *visits) leaveOut(at unsafe.Pointer, of *plan) {
	if s.find(at, of) < 0 {
		s.list = append(s.list, place{at: at, plan: of, out: true})
	}
}

// forget lets go of all places but the first n.
func (s *visits) forget(n int) {
	for i := n; i < len(s.list) && len(s.numbers) > n; i++ {
		delete(s.numbers, place{at: s.list[i].at, plan: s.list[i].plan})
	}
	clear(s.list[n:])
	s.list = s.list[:n]
}

// given reports whether values of the type belong to the surroundings.
func given(kind reflect.Type) bool {
	if givenTypes[kind] || kind.Implements(clientType) || kind.Implements(clockType) {
		return true
	}
	if kind.Kind() == reflect.Pointer {
		return kind.Elem().PkgPath() == givenPackage
	}
	return kind.PkgPath() == givenPackage || kind.Kind() == reflect.Struct &&
		reflect.PointerTo(kind).Implements(clientType)
}
