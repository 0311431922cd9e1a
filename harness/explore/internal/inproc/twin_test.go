package inproc

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/quotabench/quotabench/internal/testenv"
)

// twin writes a value out by reflection alone: two memories are the same if their texts are. It is what a fingerprint has to
// tell apart, without its shortcuts.
type twin struct{ met []meeting }

// meeting is a place that was written out, by its address and type.
type meeting struct {
	at unsafe.Pointer
	of reflect.Type
}

func (w *twin) text(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		return w.once(v, func() string { return w.text(v.Elem()) })
	case reflect.Map:
		return w.once(v, func() string {
			var entries []string
			for it := v.MapRange(); it.Next(); {
				within := &twin{slices.Clone(w.met)} // what one entry holds is not met before in another one
				entries = append(entries, within.text(it.Key())+": "+within.text(it.Value()))
			}
			slices.Sort(entries)
			return strings.Join(entries, ", ")
		})
	case reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return fmt.Sprintf("%v(%s)", v.Elem().Type(), w.text(v.Elem()))
	case reflect.Slice, reflect.Array:
		list := []string{fmt.Sprint(v.Kind() == reflect.Slice && v.IsNil())}
		for i := range v.Len() {
			list = append(list, w.text(v.Index(i)))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case reflect.Struct:
		var list []string
		for i := range v.NumField() {
			list = append(list, w.text(v.Field(i)))
		}
		return "{" + strings.Join(list, ", ") + "}"
	default:
		return fmt.Sprintf("%#v", v.Interface())
	}
}

// once writes out what a pointer or a map leads to where it is met first, and which one it is after that.
func (w *twin) once(v reflect.Value, contents func() string) string {
	if v.IsNil() {
		return "nil"
	}
	at := meeting{v.UnsafePointer(), v.Type()}
	if n := slices.Index(w.met, at); n >= 0 {
		return fmt.Sprint("#", n)
	}
	w.met = append(w.met, at)
	return "&(" + contents() + ")"
}

// maker makes types, and values of them from bytes: zeros where these end.
type maker struct {
	bytes []byte
	made  map[reflect.Type][]reflect.Value // pointers and maps
}

var plain = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[int64](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[any](), reflect.TypeFor[struct{}](),
}

func typeAtRandom(r *rand.Rand, depth int) reflect.Type {
	if depth == 0 {
		return plain[r.IntN(len(plain))]
	}
	inner := func() reflect.Type { return typeAtRandom(r, depth-1-r.IntN(depth)) }
	switch r.IntN(5) {
	case 0:
		return reflect.PointerTo(inner())
	case 1:
		return reflect.SliceOf(inner())
	case 2:
		return reflect.MapOf(plain[r.IntN(len(plain)-2)], inner())
	case 3:
		return reflect.ArrayOf(r.IntN(4), inner())
	default:
		var fields []reflect.StructField
		of := inner()
		for i := range 1 + r.IntN(3) {
			if r.IntN(2) == 0 { // else it is of the type of the one before
				of = inner()
			}
			fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: of})
		}
		return reflect.StructOf(fields)
	}
}

func (m *maker) next(n int) int {
	if len(m.bytes) == 0 {
		return 0
	}
	b := m.bytes[0]
	m.bytes = m.bytes[1:]
	return int(b) % n
}

func (m *maker) fill(v reflect.Value) {
	t := v.Type()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(m.next(2) == 1)
	case reflect.Int8, reflect.Int64:
		v.SetInt(int64(m.next(5)))
	case reflect.Uint16, reflect.Uint64:
		v.SetUint(uint64(m.next(5)))
	case reflect.Float64:
		v.SetFloat(float64(m.next(5)) / 2)
	case reflect.String:
		v.SetString("aab"[:m.next(4)])
	case reflect.Interface:
		if n := m.next(len(plain)); n > 0 {
			held := reflect.New(plain[n-1]).Elem()
			m.fill(held)
			v.Set(held)
		}
	case reflect.Pointer, reflect.Map:
		old := m.made[t]
		switch n := m.next(3); {
		case n == 1 && len(old) > 0:
			v.Set(old[m.next(len(old))])
		case n > 0:
			m.make(v)
		}
	case reflect.Slice:
		if n := m.next(4); n > 0 {
			v.Set(reflect.MakeSlice(t, n-1, n-1))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			m.fill(v.Index(i))
		}
	default:
		for i := range v.NumField() {
			m.fill(v.Field(i))
		}
	}
}

// make makes a pointer or a map.
func (m *maker) make(v reflect.Value) {
	t := v.Type()
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(t.Elem()))
		m.made[t] = append(m.made[t], v)
		m.fill(v.Elem())
		return
	}
	v.Set(reflect.MakeMap(t))
	m.made[t] = append(m.made[t], v)
	for range m.next(4) {
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		m.fill(key)
		m.fill(value)
		v.SetMapIndex(key, value)
	}
}

// Two values of a type have one fingerprint if, and only if, their twins are the same.
func TestFingerprintAgreesWithItsTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // has to repeat
	same, differ := 0, 0
	for range testenv.Pick(10_000, 50_000) {
		of := typeAtRandom(r, 1+r.IntN(3))
		bytes := make([]byte, r.IntN(10))
		for i := range bytes {
			bytes[i] = byte(r.IntN(256))
		}
		made := func() (fingerprint any, text string) {
			v := reflect.New(of)
			(&maker{slices.Clone(bytes), map[reflect.Type][]reflect.Value{}}).fill(v.Elem())
			s := newTiers()
			s.any = v.Interface()
			return hashOf(s), new(twin).text(v)
		}
		one, first := made()
		if len(bytes) > 0 {
			bytes[r.IntN(len(bytes))] = byte(r.IntN(256))
		}
		other, second := made()
		if (one == other) != (first == second) {
			t.Fatalf("%v: the fingerprints of two values are the same: %t\n%s\n%s", of, one == other, first, second)
		}
		if first == second {
			same++
		} else {
			differ++
		}
	}
	if same < 500 || differ < 500 {
		t.Errorf("%d pairs are the same and %d differ", same, differ)
	}
}
