// Package stacks reads the stacks of goroutines, to say where one of them stands.
package stacks

import (
	"path"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/petermattis/goid"
)

// Goroutine is where a goroutine stood.
type Goroutine struct {
	ID uint64
	// Parent is the goroutine that started it; 0 if that is not known.
	Parent uint64
	// State is what it waited for, e.g. "chan receive" or "sync.Mutex.Lock".
	State string
	// Text is its stack as the runtime prints it.
	Text string
}

// Frame is one call of a stack.
type Frame struct {
	// Func is the function's name with its package's path.
	Func string
	// Place is the file's name without its directory, and the line.
	Place string
}

// catalogue is where the strategies of this module are.
const catalogue = "github.com/quotabench/quotabench/strategies/"

// InCatalogue reports whether a function is part of a strategy of this module, which starts
// no goroutine in a call; what others do is not known.
func InCatalogue(function any) bool {
	f := runtime.FuncForPC(reflect.ValueOf(function).Pointer())
	return f != nil && Catalogued(f)
}

// Catalogued is InCatalogue of what the runtime knows of a function.
func Catalogued(f *runtime.Func) bool { return strings.HasPrefix(f.Name(), catalogue) }

// readable reports whether the number is where package goid looks for it, which knows that of released versions of Go.
var readable = uint64(goid.Get()) == printed()

// Current is the number of the calling goroutine. Printing a stack to read it there takes as long as a search needs
// for a step of a limiter.
func Current() uint64 {
	if readable {
		return uint64(goid.Get())
	}
	return printed()
}

// printed is the number by the text of the calling goroutine's stack.
func printed() uint64 {
	var buf [40]byte
	id, _ := number(string(buf[:runtime.Stack(buf[:], false)]))
	return id
}

// number reads the head of a stack's text, "goroutine 7 [running]:".
func number(text string) (id uint64, rest string) {
	text, ok := strings.CutPrefix(text, "goroutine ")
	n, rest, _ := strings.Cut(text, " ")
	if !ok {
		return 0, ""
	}
	id, _ = strconv.ParseUint(n, 10, 64) // 0 is no goroutine's number
	return id, rest
}

// mostText bounds the text of all stacks, in bytes.
const mostText = 64 << 20

// All are the goroutines of the program. All of them are stopped meanwhile, so
// whatever they wrote up to then is seen by the caller.
func All() map[uint64]Goroutine {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for n == len(buf) && n < mostText {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	return read(string(buf[:n]))
}

func read(text string) map[uint64]Goroutine {
	out := map[uint64]Goroutine{}
	for part := range strings.SplitSeq(text, "\n\n") {
		id, rest := number(part)
		if id == 0 {
			continue
		}
		head, _, _ := strings.Cut(rest, "\n")
		state := head[strings.Index(head, "[")+1:]
		if i := strings.IndexAny(state, ",]"); i >= 0 {
			state = state[:i]
		}
		goroutine := Goroutine{ID: id, State: state, Text: strings.TrimSpace(part)}
		if _, by, ok := strings.Cut(goroutine.Text, "\ncreated by "); ok {
			by, _, _ = strings.Cut(by, "\n")
			_, parent, _ := strings.Cut(by, " in goroutine ")
			goroutine.Parent, _ = strconv.ParseUint(parent, 10, 64)
		}
		out[id] = goroutine
	}
	return out
}

// Frames are the calls, the innermost first, without the one that started it.
func (g Goroutine) Frames() []Frame {
	lines := strings.Split(g.Text, "\n")
	var out []Frame
	for i := 1; i+1 < len(lines); i += 2 {
		name := lines[i]
		if strings.HasPrefix(name, "created by ") {
			break
		}
		if at := strings.LastIndex(name, "("); at > 0 {
			name = name[:at]
		}
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		out = append(out, Frame{name, path.Base(strings.ReplaceAll(place, `\`, "/"))})
	}
	return out
}

// locks are the states of goroutines that another one can let go on.
var locks = []string{
	"sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "sync.Cond.Wait", "sync.WaitGroup.Wait", "semacquire",
	"chan send", "chan receive", "select",
}

// Locked reports whether it waits for a lock, or for a channel that may be one.
func (g Goroutine) Locked() bool {
	state, _, _ := strings.Cut(g.State, " (durable)")
	return slices.Contains(locks, state)
}

// Called looks for the innermost call of a function whose name ends with one of those,
// and returns the calls that it made, the innermost first; ok is false if there is
// none.
func (g Goroutine) Called(texts ...string) (calls []Frame, ok bool) {
	frames := g.Frames()
	i := slices.IndexFunc(frames, func(frame Frame) bool {
		return slices.ContainsFunc(texts, func(name string) bool { return strings.HasSuffix(frame.Func, name) })
	})
	if i < 0 {
		return nil, false
	}
	return frames[:i], true
}

// Where names the innermost of the calls that is in no library: the standard one, or a
// store's client. If there is no such call it names the outermost.
func (g Goroutine) Where(calls []Frame) string {
	if len(calls) == 0 {
		return "[" + g.State + "]"
	}
	at := calls[len(calls)-1]
	for _, frame := range calls {
		if !library(frame.Func) {
			at = frame
			break
		}
	}
	name := at.Func[strings.LastIndex(at.Func, "/")+1:]
	return name + " (" + at.Place + ") [" + g.State + "]"
}

// clients are how the paths of stores' clients begin: those that every program has.
var clients = []string{"github.com/redis/", "github.com/jackc/", "golang.org/x/"}

// PassOver adds clients whose calls [Goroutine.Where] does not name. Only init functions
// call it.
func PassOver(paths ...string) { clients = append(clients, paths...) }

func library(function string) bool {
	if slices.ContainsFunc(clients, func(text string) bool { return strings.HasPrefix(function, text) }) {
		return true
	}
	first, _, nested := strings.Cut(function, "/")
	if !nested { // "sync.(*Mutex).Lock", or "main.main"
		first, _, _ = strings.Cut(function, ".")
		return first != "main"
	}
	return !strings.Contains(first, ".")
}
