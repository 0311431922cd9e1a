package isolate

import (
	"fmt"
	"slices"
	"strings"
)

// Death is code that has ended its process: a panic on a goroutine of its own, or an error
// of the Go runtime.
type Death struct {
	// What is the panic's value, or the runtime's error, in one line.
	What string
	// At is the innermost function of the stack that is not the runtime's, with its file
	// and line; empty if that is not known.
	At string
	// Stack is that of the first goroutine.
	Stack string

	trail string
}

// Error is one line; the stack is apart.
func (d *Death) Error() string { return "the strategy has ended the process: " + d.Reason() }

// Reason is What and At.
func (d *Death) Reason() string {
	if d.At == "" {
		return d.What
	}
	return d.What + " in " + d.At
}

// Trail is what the process was doing, as its [Trail] said last.
func (d *Death) Trail() string { return d.trail }

// mostStack is how many lines of a stack are kept.
const mostStack = 40

// newDeath reads what the Go runtime wrote last; nil if it says of no code that it is
// to blame: the limits of bubbles are ours.
func newDeath(said []byte) *Death {
	lines := strings.Split(string(said), "\n")
	for i, line := range slices.Backward(lines) { // what a log says before comes first
		what, ok := strings.CutPrefix(line, "panic: ")
		if !ok {
			what, ok = strings.CutPrefix(line, "fatal error: ")
		}
		if !ok || !slices.ContainsFunc(lines[i:], func(l string) bool { return strings.HasPrefix(l, "goroutine ") }) {
			continue
		}
		if strings.Contains(what, "synctest") || strings.Contains(what, "out of memory") {
			return nil
		}
		from := i
		for from < len(lines) && !strings.HasPrefix(lines[from], "goroutine ") {
			from++
		}
		to := from
		for to < len(lines) && lines[to] != "" && to-from < mostStack {
			to++
		}
		return &Death{What: strings.Join(strings.Fields(what), " "), At: innermost(lines[from:to]), Stack: strings.Join(lines[from:to], "\n")}
	}
	return nil
}

func innermost(stack []string) string {
	for i := 1; i+1 < len(stack); i += 2 {
		name := stack[i]
		if strings.HasPrefix(name, "panic(") || strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "internal/") {
			continue
		}
		if c := strings.LastIndexByte(name, '('); c > 0 {
			name = name[:c]
		}
		name = name[strings.LastIndexByte(name, '/')+1:]
		place, _, _ := strings.Cut(strings.TrimSpace(stack[i+1]), " ")
		return fmt.Sprintf("%s (%s)", name, place[strings.LastIndexByte(place, '/')+1:])
	}
	return ""
}
