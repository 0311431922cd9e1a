package inproc

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// twin is a [hasher] that writes a memory out by reflection: two are the same if their texts are. It is what a
// fingerprint has to tell apart, without its shortcuts.
type twin struct {
	met    []meeting
	out    []unsafe.Pointer // which is left out
	hidden []unsafe.Pointer
	view   view
}

var _ hasher = (*twin)(nil)

// hash implements [hasher].
func (w *twin) hash(d *engine.Digest, s strategies.Strategy, of view) []unsafe.Pointer {
	text, hidden := w.write(s, of)
	d.Text(text)
	return hidden
}

// write writes an instance out.
func (w *twin) write(s strategies.Strategy, of view) (text string, hidden []unsafe.Pointer) {
	*w = twin{view: of}
	if of.without != nil {
		of.without.All(func(value any) {
			if v := reflect.ValueOf(value); v.Kind() == reflect.Map || v.Kind() == reflect.Pointer {
				w.out = append(w.out, v.UnsafePointer())
			}
		})
	}
	text = w.text(reflect.ValueOf(s))
	return text, w.hidden
}

// meeting is a place that was written out, by its address and type.
type meeting struct {
	at   unsafe.Pointer
	kind reflect.Type
}

func (w *twin) text(v reflect.Value) string {
	if !v.CanAddr() {
		at := reflect.New(v.Type()).Elem()
		at.Set(v)
		v = at
	}
	t := v.Type()
	at := v.Addr()
	switch {
	case t.Kind() == reflect.Pointer && given(t):
		return fmt.Sprint(v.IsNil())
	case given(t) && t.Kind() != reflect.Interface, w.view.caller && t == flagType:
		return ""
	case t.Kind() == reflect.Struct && opaque(t):
		return w.hides(at.UnsafePointer())
	case t == syncMap:
		return w.entries(at.Interface().(*sync.Map).Range)
	case strings.HasPrefix(t.String(), "atomic.Pointer["):
		return w.text(at.MethodByName("Load").Call(nil)[0])
	}
	switch v.Kind() {
	case reflect.Pointer:
		return w.once(v, func() string { return w.text(v.Elem()) })
	case reflect.Map:
		return w.once(v, func() string {
			return w.entries(func(each func(key, value any) bool) {
				for it := v.MapRange(); it.Next(); {
					each(it.Key(), it.Value())
				}
			})
		})
	case reflect.Func, reflect.UnsafePointer, reflect.Chan:
		return w.unseen(v)
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
			f := v.Field(i)
			list = append(list, w.text(reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem())) // which need not be exported
		}
		return "{" + strings.Join(list, ", ") + "}"
	default:
		return fmt.Sprintf("%#v", v.Interface())
	}
}

// entries writes out those of a map, in no order.
func (w *twin) entries(all func(each func(key, value any) bool)) string {
	var list []string
	before := len(w.met)
	all(func(key, value any) bool {
		of := func(x any) string {
			if v, ok := x.(reflect.Value); ok {
				return w.text(v)
			}
			return w.text(reflect.ValueOf(&x).Elem())
		}
		list = append(list, of(key)+": "+of(value))
		w.met = w.met[:before] // what one entry holds is not met before in another one
		return true
	})
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// unseen writes out what is seen of functions and channels.
func (w *twin) unseen(v reflect.Value) string {
	word := *(*unsafe.Pointer)(v.Addr().UnsafePointer())
	switch {
	case v.Kind() == reflect.Func && v.IsNil():
		return "nil"
	case v.Kind() == reflect.Func && !hasVariables(v.Pointer()):
		return fmt.Sprint(v.Pointer())
	case v.Kind() == reflect.Func:
		return fmt.Sprint(v.Pointer(), w.hides(word))
	case v.Kind() == reflect.Chan:
		return fmt.Sprint(v.Len(), w.hides(word))
	default:
		return w.hides(word)
	}
}

func (w *twin) hides(p unsafe.Pointer) string {
	if p != nil {
		w.hidden = append(w.hidden, p)
	}
	return ""
}

// once writes out what a pointer or a map leads to where it is met first, and which one it is after that.
func (w *twin) once(v reflect.Value, contents func() string) string {
	if v.IsNil() {
		return "nil"
	}
	at := meeting{v.UnsafePointer(), v.Type()}
	if slices.Contains(w.out, at.at) {
		return "out"
	}
	if w.view.places != nil {
		w.view.places[at.at] = true
	}
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
	reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[int64](), reflect.TypeFor[uint16](),
	reflect.TypeFor[uint64](),
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
		key := reflect.New(t.Key()).Elem()
		value := reflect.New(t.Elem()).Elem()
		m.fill(key)
		m.fill(value)
		v.SetMapIndex(key, value)
	}
}

// Two values of a type have one fingerprint if, and only if, their twins are the same.
func TestFingerprintAgreesWithItsTwin(t *testing.T) {
	testenv.Sequential(t)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // has to repeat
	same := 0
	differ := 0
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

// compared is a memory that is compared with its twin whenever it is asked: two hashes are the same if, and only if,
// the texts are.
type compared struct {
	t *testing.T
	memory
	twin
	texts  map[[2]bool]map[engine.Digest]string
	hashes map[[2]bool]map[string]engine.Digest
	alike  int
}

// hash implements [hasher].
func (c *compared) hash(d *engine.Digest, s strategies.Strategy, of view) []unsafe.Pointer {
	text, hidden := c.write(s, of)
	var hash engine.Digest
	if got := c.memory.hash(&hash, s, of); !maps.Equal(setOf(got), setOf(hidden)) {
		c.t.Fatalf("%v are hidden, and %v in a twin\n%s", got, hidden, text)
	}
	part := [2]bool{of.caller, of.without != nil}
	if c.texts[part] == nil {
		c.texts[part], c.hashes[part] = map[engine.Digest]string{}, map[string]engine.Digest{}
	}
	before, met := c.texts[part][hash]
	if again, ok := c.hashes[part][text]; ok != met || met && (again != hash || before != text) {
		c.t.Fatalf("met by its hash: %t, by its text: %t\n%s\n%s", met, ok, before, text)
	}
	c.texts[part][hash], c.hashes[part][text] = text, hash
	if met {
		c.alike++
	}
	d.Fold(hash)
	return hidden
}

func setOf(list []unsafe.Pointer) map[unsafe.Pointer]bool {
	set := map[unsafe.Pointer]bool{}
	for _, p := range list {
		set[p] = true
	}
	return set
}

// A memory tells apart what its twin does, in schedules at random of strategies that have some.
func TestMemoryAgreesWithItsTwin(t *testing.T) {
	testenv.Sequential(t)
	chosen, err := strategies.Parse("app-lock,combine,lease,local-sync,memory-deque,redis-hash,three-tier,three-tier-hardened")
	if err != nil {
		t.Fatal(err)
	}
	policies := quota.Policies()
	for _, sel := range chosen {
		t.Run(sel.Name, func(t *testing.T) {
			p := policies[slices.IndexFunc(policies, func(p quota.Policy) bool { return sel.ServesPolicy(&p) == nil })]
			p.Limit = 2
			setup := engine.Setup{
				Policy: p, Clients: 4, Instances: 2, JobRounds: 2, Faults: []quota.Fault{quota.FaultCrash, quota.FaultClock},
				Times:   1,
				Scripts: []engine.Script{{{Kind: engine.Take, Units: 1}}},
			}
			_, err = Search(sel, setup, func(e *Engine) (any, error) {
				c := &compared{t: t, texts: map[[2]bool]map[engine.Digest]string{}, hashes: map[[2]bool]map[string]engine.Digest{}}
				e.memory = c
				err := atRandom(e)
				t.Logf("%d hashes differ, %d are those of others", len(c.texts[[2]bool{}]), c.alike)
				if c.alike == 0 {
					t.Error("no memory was met again")
				}
				return nil, err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// atRandom runs schedules at random, which are the same each time.
func atRandom(e *Engine) error {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // has to repeat
	for range testenv.Pick(4, 20) {
		if err := e.Begin(); err != nil {
			return err
		}
		for next := e.Enabled(nil, false); len(next) > 0; next = e.Enabled(nil, false) {
			if err := e.Step(next[r.IntN(len(next))]); err != nil {
				return err
			}
			if _, err := e.State(); err != nil {
				return err
			}
		}
		if err := e.End(); err != nil {
			return err
		}
	}
	return nil
}
