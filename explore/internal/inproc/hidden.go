package inproc

import (
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/strategies"
)

// hides notes what a hash has come to that may have contents which it cannot look at: variables of a closure, what
// waits in a channel, values of a client library. Two states are then told apart by all that has come to the
// instance since everything was seen, in its order, so none is taken for another.
func (m *memory) hides(p unsafe.Pointer) {
	if p != nil {
		m.hidden = append(m.hidden, p)
	}
}

// hash is that of an instance's memory except the values of without, with what is hidden in it: see [hasher].
func (w *Engine) hash(in *instance, without *strategies.Shared) (engine.Digest, []unsafe.Pointer) {
	w.scratch = engine.Digest{}
	hidden := w.memory.hash(&w.scratch, in.strategy, view{without: without})
	return w.scratch, w.current(hidden)
}

// current takes those out that have outlived a run.
func (w *Engine) current(hidden []unsafe.Pointer) []unsafe.Pointer {
	return slices.DeleteFunc(hidden, func(p unsafe.Pointer) bool { return w.older[p] })
}

// function hashes which function it is. Function literals and methods of a value may have variables; those of the
// strategies of this module have none that change.
func function(m *memory, p unsafe.Pointer) {
	p = *(*unsafe.Pointer)(p)
	if p == nil {
		m.digest.Num(0)
		return
	}
	code := *(*uintptr)(p)
	has, known := m.variables[code]
	if !known {
		has = hasVariables(code)
		m.variables[code] = has
	}
	m.digest.Num(uint64(code))
	if has {
		m.hides(p)
	}
}

// hasVariables says of the code of a function whether it may have some.
func hasVariables(code uintptr) bool {
	f := runtime.FuncForPC(code)
	return f == nil || mayCapture(f.Name()) && !stacks.Catalogued(f)
}

// mayCapture tells by the name of a function. Methods of what the surroundings gave keep nothing of a strategy's.
func mayCapture(name string) bool {
	path := ""
	rest := name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		path = name[:i]
		rest = name[i:]
	}
	pkg, rest, _ := strings.Cut(rest, ".")
	if strings.HasSuffix(rest, "-fm") {
		return !slices.Contains(givers, path+pkg) && !strings.HasPrefix(path+pkg, clientModule)
	}
	return strings.Contains(rest, ".func")
}

// givers are packages of clocks and jobs.
var givers = []string{givenPackage, clockType.PkgPath()}

// channel hashes how much waits in a channel.
func (m *memory) channel(value reflect.Value) {
	m.digest.Num(uint64(value.Len()))
	m.hides(value.UnsafePointer())
}

// clientModule is where clients of Redis come from, whose other values are opaque.
const clientModule = "github.com/redis/"

var (
	syncMap     = reflect.TypeFor[sync.Map]()
	opaqueTypes = []reflect.Type{reflect.TypeFor[sync.Pool](), reflect.TypeFor[sync.Cond]()}
)

// opaque reports whether values of a struct have contents that are not looked at.
func opaque(kind reflect.Type) bool {
	return slices.Contains(opaqueTypes, kind) || strings.HasPrefix(kind.PkgPath(), clientModule) ||
		strings.HasPrefix(kind.PkgPath(),
			"github.com/jackc/")
}

// concurrent hashes a [sync.Map], in no order.
func (m *memory) concurrent() func(*memory, unsafe.Pointer) {
	entry := m.plan(reflect.TypeFor[any]())
	return func(m *memory, p unsafe.Pointer) {
		within := m.seen.len()
		outer := m.digest
		var sum engine.Digest
		n := uint64(0)
		(*sync.Map)(p).Range(func(key, value any) bool {
			var digest engine.Digest
			m.digest = &digest
			entry.hash(m, unsafe.Pointer(&key))
			entry.hash(m, unsafe.Pointer(&value))
			sum.A += digest.A
			sum.B += digest.B
			m.seen.forget(within)
			n++
			return true
		})
		m.digest = outer
		m.digest.Num(n)
		m.digest.Fold(sum)
	}
}

// outlives notes what is hidden at the end of a run, and after the second what of it has outlived the first.
func (w *Engine) outlives() {
	if w.older != nil || w.metIn == w.runs {
		return
	}
	w.metIn = w.runs
	met := map[unsafe.Pointer]bool{}
	for _, instance := range w.instances {
		if instance.strategy == nil {
			return
		}
		_, hidden := w.hash(instance, nil)
		for _, p := range hidden {
			met[p] = true
		}
	}
	if w.met == nil {
		w.met, w.aliased = met, w.common()
		return
	}
	w.older = map[unsafe.Pointer]bool{}
	for p := range met {
		if w.met[p] {
			w.older[p] = true
		}
	}
	w.met = nil
	shares := w.shared.Len() > 0 || slices.ContainsFunc(w.actors, func(m *member) bool { return m.client == nil })
	for p := range w.common() {
		shares = shares || !w.aliased[p] // else it has outlived a run, too
	}
	if !w.known && shares {
		w.Setup.Shares = true
		w.scheduler.SplitReplies()
	}
}

// common is the memory that instances have in common.
func (w *Engine) common() map[unsafe.Pointer]bool {
	var opened []strategies.Strategy
	for _, instance := range w.instances {
		opened = append(opened, instance.strategy)
	}
	return common(w.memory, w.older, opened, w.named, w.sel.Options)
}

// Common reports whether two of the strategies reach the same memory, except what is hidden, and maps that they were
// given.
func Common(of []strategies.Strategy, given ...any) bool {
	return len(common(new(memory), nil, of, given...)) > 0
}

// common is what two of the strategies reach. What is hidden counts once it is known what has outlived a run.
func common(m hasher, older map[unsafe.Pointer]bool, of []strategies.Strategy,
	given ...any) (common map[unsafe.Pointer]bool) {
	met := map[unsafe.Pointer]bool{}
	common = map[unsafe.Pointer]bool{}
	for _, strategy := range of {
		all := map[unsafe.Pointer]bool{}
		for _, p := range m.hash(&engine.Digest{}, strategy, view{places: all}) {
			if older != nil && !older[p] {
				all[p] = true
			}
		}
		for _, value := range given {
			delete(all, reflect.ValueOf(value).UnsafePointer())
		}
		for p := range all {
			if met[p] {
				common[p] = true
			}
		}
		maps.Copy(met, all)
	}
	return common
}

// sight is what a search does not see in a state.
type sight struct {
	// hides is set if an instance hides something, and common if two hide the same.
	hides, common bool
}

// sees compares what is hidden in the instances as [Engine.remembers] has found them.
func (w *Engine) sees() (s sight) {
	for i, in := range w.instances {
		s.hides = s.hides || len(in.hidden) > 0
		for _, p := range in.hidden {
			s.common = s.common || slices.ContainsFunc(w.instances[:i], func(o *instance) bool {
				return slices.Contains(o.hidden, p)
			})
		}
	}
	return s
}

// foldHidden folds in what stands for what is hidden.
func (w *Engine) foldHidden(digest *engine.Digest) {
	w.sight = w.sees()
	for _, instance := range w.instances {
		if len(instance.hidden) == 0 {
			instance.history = engine.Digest{}
		} else if !w.sight.common {
			digest.Fold(instance.history)
		}
	}
	if !w.sight.hides {
		w.history = engine.Digest{}
	} else if w.sight.common {
		digest.Fold(w.history)
	}
}

// comes notes what comes to an instance.
func (w *Engine) comes(m *member, what *engine.Digest) {
	for _, digest := range [...]*engine.Digest{&m.instance.history, &w.history} {
		digest.Num(uint64(m.ID))
		digest.Fold(*what)
	}
}

// histories follow those of the actors in a trail, if something is hidden.
func (w *Engine) histories(out []engine.Digest) []engine.Digest {
	if !w.sight.hides {
		return out
	}
	for _, instance := range w.instances {
		out = append(out, instance.history)
	}
	return append(out, w.history)
}

// recall takes in a trail. ok is false if it is none of this run.
func (w *Engine) recall(trail []engine.Digest) (ok bool) {
	n := len(w.actors)
	if len(trail) != n && len(trail) != n+len(w.instances)+1 {
		return false
	}
	for i, member := range w.actors {
		member.history = trail[i]
	}
	w.history = engine.Digest{}
	for _, instance := range w.instances {
		instance.history = engine.Digest{}
	}
	if rest := trail[n:]; len(rest) > 0 {
		for i, instance := range w.instances {
			instance.history = rest[i]
		}
		w.history = rest[len(rest)-1]
	}
	return true
}
