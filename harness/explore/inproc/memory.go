package inproc

import (
	"math"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// memory hashes everything that can be reached from an open instance and may
// change while it works: its tiers, its queues, and the tables of the model and
// other memory that it shares. Asking each strategy for a hash of its own would
// make the search depend on whether its author forgot a field.
//
// What an instance was given by its surroundings is left out: clients of stores,
// the model's entrance, clocks and what they made. So are functions; one that
// keeps state that nothing else points to is not seen.
type memory struct {
	d    *engine.Digest
	seen map[unsafe.Pointer]bool
	// kinds holds what kindOf has found: asking a type takes longer than all the rest.
	kinds map[reflect.Type]kind
	// caller is set for what a caller can have seen, to which flags that only jobs
	// look at do not belong.
	caller bool
}

var (
	clientType = reflect.TypeFor[redis.UniversalClient]()
	clockType  = reflect.TypeFor[quota.Clock]()
	givenTypes = map[reflect.Type]bool{
		reflect.TypeFor[*strategies.Model](): true, reflect.TypeFor[*quota.Policy](): true,
		reflect.TypeFor[*time.Location](): true, reflect.TypeFor[*strategies.Shared](): true,
		reflect.TypeFor[*redis.Script](): true, reflect.TypeFor[strategies.Tally](): true,
	}
	flagType = reflect.TypeFor[strategies.Flag]()
)

// kind is what a type is to a hash.
type kind uint8

const (
	own           kind = iota + 1
	given              // by the surroundings, and left out
	atomicPointer      // an atomic.Pointer, whose only field says too little
)

// foreign are packages whose values do not belong to a strategy.
var foreign = []string{"/internal/sched", "github.com/jackc/", "github.com/redis/", "sync"}

func fingerprint(d *engine.Digest, s strategies.Strategy) {
	m := memory{}
	m.hash(d, s, false, nil)
}

// hash folds an instance into d, but for the values of without. A memory serves
// any number of instances, one after the other.
func (m *memory) hash(d *engine.Digest, s strategies.Strategy, caller bool, without *strategies.Shared) {
	if m.seen == nil {
		m.seen = map[unsafe.Pointer]bool{}
	}
	clear(m.seen)
	if without != nil {
		without.All(m.leaveOut)
	}
	m.d, m.caller = d, caller
	m.walk(reflect.ValueOf(s))
}

func (m *memory) leaveOut(value any) {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Map || v.Kind() == reflect.Pointer {
		m.seen[v.UnsafePointer()] = true
	}
}

func (m *memory) kindOf(t reflect.Type) kind {
	k := m.kinds[t]
	if k != 0 {
		return k
	}
	if m.kinds == nil {
		m.kinds = map[reflect.Type]kind{}
	}
	switch {
	case isGiven(t):
		k = given
	case t.PkgPath() == "sync/atomic" && strings.HasPrefix(t.Name(), "Pointer["):
		k = atomicPointer
	default:
		k = own
	}
	m.kinds[t] = k
	return k
}

func isGiven(t reflect.Type) bool {
	if givenTypes[t] || t.Implements(clientType) || t.Implements(clockType) {
		return true
	}
	elem := t
	if t.Kind() == reflect.Pointer {
		elem = t.Elem()
	}
	path := elem.PkgPath()
	for _, f := range foreign {
		if strings.HasSuffix(path, f) && path != "sync/atomic" || strings.HasPrefix(path, f) && f != "sync" {
			return true
		}
	}
	return false
}

func (m *memory) walk(v reflect.Value) {
	if !v.IsValid() {
		m.d.Num(0)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		m.d.Bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		m.d.Num(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		m.d.Num(v.Uint())
	case reflect.Float32, reflect.Float64:
		m.d.Num(math.Float64bits(v.Float()))
	case reflect.String:
		m.d.Text(v.String())
	case reflect.Interface, reflect.Pointer:
		m.follow(v)
	case reflect.Struct:
		k := m.kindOf(v.Type())
		if k == given || m.caller && v.Type() == flagType {
			return
		}
		if k == atomicPointer {
			m.walk(loaded(v))
			return
		}
		for i := range v.NumField() {
			m.walk(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		m.list(v)
	case reflect.Map:
		m.entries(v)
	}
}

// loaded is what an atomic.Pointer points to.
func loaded(v reflect.Value) reflect.Value {
	elem := v.Type().Field(0).Type.Elem() // declared as [0]*T
	return reflect.NewAt(elem.Elem(), v.FieldByName("v").UnsafePointer())
}

func (m *memory) follow(v reflect.Value) {
	if v.IsNil() {
		m.d.Num(0)
		return
	}
	if v.Kind() == reflect.Interface {
		if m.kindOf(v.Elem().Type()) != given {
			m.walk(v.Elem())
		}
		return
	}
	if m.kindOf(v.Type()) == given {
		return
	}
	p := v.UnsafePointer()
	if m.seen[p] {
		m.d.Num(2)
		return
	}
	m.seen[p] = true
	m.walk(v.Elem())
}

func (m *memory) list(v reflect.Value) {
	n := v.Len()
	m.d.Num(uint64(n))
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint64 && n > 0 {
		// The bits of a Bloom filter: too many to be looked at one by one.
		for i, word := range unsafe.Slice((*uint64)(v.UnsafePointer()), n) {
			if word != 0 {
				m.d.Num(uint64(i))
				m.d.Num(word)
			}
		}
		return
	}
	for i := range n {
		m.walk(v.Index(i))
	}
}

// entries hashes a map in no order.
func (m *memory) entries(v reflect.Value) {
	if m.seen[v.UnsafePointer()] {
		return
	}
	var sum engine.Digest
	for it := v.MapRange(); it.Next(); {
		var d engine.Digest
		one := memory{d: &d, seen: m.seen, kinds: m.kinds, caller: m.caller}
		one.walk(it.Key())
		one.walk(it.Value())
		sum.A += d.A
		sum.B += d.B
	}
	m.d.Num(uint64(v.Len()))
	m.d.Fold(sum)
}
