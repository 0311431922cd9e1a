package isolate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/stacks"
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
		if !ok {
			continue
		}
		from := slices.IndexFunc(lines[i:], func(text string) bool { return strings.HasPrefix(text, "goroutine ") })
		if from < 0 {
			continue
		}
		if strings.Contains(what, "synctest") || strings.Contains(what, "out of memory") {
			return nil
		}
		first := lines[i+from : min(len(lines), i+from+mostStack)]
		if end := slices.Index(first, ""); end > 0 {
			first = first[:end]
		}
		stack := strings.Join(first, "\n")
		return &Death{What: strings.Join(strings.Fields(what), " "), At: innermost(stack), Stack: stack}
	}
	return nil
}

func innermost(stack string) string {
	for _, frame := range (stacks.Goroutine{Text: stack}).Frames() {
		if frame.Func != "panic" && !strings.HasPrefix(frame.Func, "runtime.") &&
			!strings.HasPrefix(frame.Func, "internal/") {
			return fmt.Sprintf("%s (%s)", path.Base(frame.Func), frame.Place)
		}
	}
	return ""
}
