package inproc

import (
	"math"
	"reflect"
	"strings"
	"unsafe"

	"github.com/quotabench/quotabench/explore/internal/engine"
)

// plan is how values of one type are hashed.
type plan struct {
	// id tells the type from all others of this process.
	id uint64
	// hash folds the value at p into the digest of m.
	hash func(m *memory, p unsafe.Pointer)
	// nothing is set if no value of the type adds anything.
	nothing bool
	given   bool // the type is one of the surroundings
}

// plan returns the plan of a type. That of a type that refers to itself is not complete
// until its own plan is, and is looked up when it is used.
func (m *memory) plan(kind reflect.Type) *plan {
	if plan := m.plans[kind]; plan != nil {
		return plan
	}
	p := &plan{given: given(kind), id: uint64(reflect.ValueOf(kind).Pointer())}
	m.plans[kind] = p
	p.hash = m.planOf(kind, p)
	if p.hash == nil {
		p.nothing, p.hash = true, func(*memory, unsafe.Pointer) {}
	}
	return p
}

// planOf is nil if there is nothing to hash.
func (m *memory) planOf(kind reflect.Type, p *plan) func(*memory, unsafe.Pointer) {
	switch kind.Kind() {
	case reflect.Bool:
		return func(m *memory, p unsafe.Pointer) { m.digest.Bool(*(*bool)(p)) }
	case reflect.Float32:
		return func(m *memory, p unsafe.Pointer) { m.digest.Num(math.Float64bits(float64(*(*float32)(p)))) }
	case reflect.Float64:
		return func(m *memory, p unsafe.Pointer) { m.digest.Num(math.Float64bits(*(*float64)(p))) }
	case reflect.String:
		return func(m *memory, p unsafe.Pointer) { m.digest.Text(*(*string)(p)) }
	case reflect.Pointer:
		return m.pointer(kind, p)
	case reflect.Interface:
		return m.dynamic(kind)
	case reflect.Struct:
		return m.fields(kind, p)
	case reflect.Slice:
		return m.slice(kind)
	case reflect.Array:
		each := m.plan(kind.Elem())
		size := kind.Elem().Size()
		n := kind.Len()
		return func(m *memory, p unsafe.Pointer) { m.list(each, size, n, p) }
	case reflect.Map:
		return m.entries(kind, p)
	case reflect.Func:
		return function
	case reflect.Chan:
		return func(m *memory, p unsafe.Pointer) { m.channel(reflect.NewAt(kind, p).Elem()) }
	default:
		if f := numbers[kind.Kind()]; f != nil {
			return f
		}
		// Pointers without a type.
		return func(m *memory, p unsafe.Pointer) { m.hides(*(*unsafe.Pointer)(p)) }
	}
}

// numbers hash the kinds of whole numbers.
var numbers = map[reflect.Kind]func(*memory, unsafe.Pointer){
	reflect.Int: number[int], reflect.Int8: number[int8], reflect.Int16: number[int16], reflect.Int32: number[int32],
	reflect.Int64: number[int64], reflect.Uint: number[uint], reflect.Uint8: number[uint8], reflect.Uint16: number[uint16],
	reflect.Uint32: number[uint32], reflect.Uint64: number[uint64], reflect.Uintptr: number[uintptr],
}

func number[T int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | uintptr](m *memory,
	p unsafe.Pointer) {
	m.digest.Num(uint64(*(*T)(p)))
}

func (m *memory) pointer(kind reflect.Type, own *plan) func(*memory, unsafe.Pointer) {
	if own.given {
		return func(m *memory, p unsafe.Pointer) {
			if *(*unsafe.Pointer)(p) == nil {
				m.digest.Num(0)
			}
		}
	}
	to := m.plan(kind.Elem())
	return func(m *memory, p unsafe.Pointer) {
		p = *(*unsafe.Pointer)(p)
		if p == nil {
			m.digest.Num(0)
			return
		}
		if n, old := m.seen.visit(p, to); old {
			m.digest.Num(n)
			return
		}
		m.digest.Num(follows) // else a pointer to zero would look like none
		to.hash(m, p)
	}
}

// dynamic hashes what interfaces of a type hold. Most hold values of one type only, which
// is why the last one is kept, by the first of the interface's two words.
func (m *memory) dynamic(kind reflect.Type) func(*memory, unsafe.Pointer) {
	var last unsafe.Pointer
	var kept *plan
	var pointer bool
	return func(m *memory, at unsafe.Pointer) {
		word := *(*unsafe.Pointer)(at)
		if word == nil {
			m.digest.Num(0)
			return
		}
		if word != last {
			held := reflect.NewAt(kind, at).Elem().Elem().Type()
			last, kept, pointer = word, m.plan(held), held.Kind() == reflect.Pointer
		}
		plan := kept // which a value of this type that it holds may change
		m.digest.Num(plan.id)
		switch {
		case plan.given || plan.nothing:
		case pointer: // which is the second word
			plan.hash(m, unsafe.Add(at, unsafe.Sizeof(at)))
		default:
			m.copied(reflect.NewAt(kind, at).Elem().Elem())
		}
	}
}

// copied hashes a value that has no address.
func (m *memory) copied(value reflect.Value) {
	at := reflect.New(value.Type())
	at.Elem().Set(value)
	m.plan(value.Type()).hash(m, at.UnsafePointer())
}

func (m *memory) fields(kind reflect.Type, own *plan) func(*memory, unsafe.Pointer) {
	switch {
	case own.given:
		return nil
	case kind == syncMap:
		return m.concurrent()
	case opaque(kind):
		return func(m *memory, p unsafe.Pointer) { m.hides(p) }
	case kind.PkgPath() == "sync/atomic" && strings.HasPrefix(kind.Name(), "Pointer["):
		// Its first field says what it points to, declared as [0]*T.
		field, _ := kind.FieldByName("v")
		plan := m.plan(kind.Field(0).Type.Elem())
		return func(m *memory, p unsafe.Pointer) { plan.hash(m, unsafe.Add(p, field.Offset)) }
	}
	type field struct {
		at   uintptr
		plan *plan
	}
	var list []field
	for i := range kind.NumField() {
		if plan := m.plan(kind.Field(i).Type); !plan.nothing {
			list = append(list, field{kind.Field(i).Offset, plan})
		}
	}
	switch {
	case len(list) == 0:
		return nil
	case kind == flagType:
		return func(m *memory, p unsafe.Pointer) {
			if !m.caller {
				for i := range list {
					list[i].plan.hash(m, unsafe.Add(p, list[i].at))
				}
			}
		}
	default:
		return func(m *memory, p unsafe.Pointer) {
			for i := range list {
				list[i].plan.hash(m, unsafe.Add(p, list[i].at))
			}
		}
	}
}

func (m *memory) slice(kind reflect.Type) func(*memory, unsafe.Pointer) {
	if kind.Elem().Kind() == reflect.Uint64 {
		return func(m *memory, p unsafe.Pointer) {
			// The bits of a Bloom filter: too many to be looked at one by one.
			words := *(*[]uint64)(p)
			m.digest.Bool(words == nil)
			m.digest.Num(uint64(len(words)))
			for i, word := range words {
				if word != 0 {
					m.digest.Num(uint64(i))
					m.digest.Num(word)
				}
			}
		}
	}
	each := m.plan(kind.Elem())
	size := kind.Elem().Size()
	return func(m *memory, p unsafe.Pointer) {
		// Length and array of a slice of any type lie where they do in one of bytes.
		data := *(*[]byte)(p)
		m.digest.Bool(data == nil)
		m.list(each, size, len(data), unsafe.Pointer(unsafe.SliceData(data)))
	}
}

func (m *memory) list(each *plan, size uintptr, n int, first unsafe.Pointer) {
	m.digest.Num(uint64(n))
	if each.nothing {
		return
	}
	for i := range n {
		each.hash(m, unsafe.Add(first, uintptr(i)*size))
	}
}

// entries hashes a map in no order. What one entry refers to counts as not met before in
// the others, which may come first the next time.
func (m *memory) entries(kind reflect.Type, own *plan) func(*memory, unsafe.Pointer) {
	key := m.plan(kind.Key())
	value := m.plan(kind.Elem())
	type pair struct {
		key, value reflect.Value
		digest     engine.Digest
	}
	var free []*pair // entries have no addresses, and a map may lie within itself
	return func(m *memory, p unsafe.Pointer) {
		v := reflect.NewAt(kind, p).Elem()
		if v.IsNil() {
			m.digest.Num(0)
			return
		}
		if n, old := m.seen.visit(v.UnsafePointer(), own); old {
			m.digest.Num(n)
			return
		}
		m.digest.Num(follows)
		m.digest.Num(uint64(v.Len()))
		within := m.seen.len()
		outer := m.digest
		var sum engine.Digest
		if v.Len() > 0 {
			var x *pair
			if n := len(free); n > 0 {
				x = free[n-1]
				free = free[:n-1]
			} else {
				x = &pair{key: reflect.New(kind.Key()), value: reflect.New(kind.Elem())}
			}
			for iter := v.MapRange(); iter.Next(); {
				x.digest = engine.Digest{}
				m.digest = &x.digest
				x.key.Elem().SetIterKey(iter)
				key.hash(m, x.key.UnsafePointer())
				x.value.Elem().SetIterValue(iter)
				value.hash(m, x.value.UnsafePointer())
				sum.A += x.digest.A
				sum.B += x.digest.B
				m.seen.forget(within)
			}
			x.key.Elem().SetZero()
			x.value.Elem().SetZero()
			free = append(free, x)
		}
		m.digest = outer
		m.digest.Fold(sum)
	}
}
