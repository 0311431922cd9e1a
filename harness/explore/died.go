package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Panicked is not looked for: a goroutine that a strategy has started has panicked, or
// the Go runtime has ended the program, and the process of the search with it. Only
// [Isolated] can report it.
const Panicked Property = "panic"

// DiedError says that code of a strategy's has ended the process of a search.
type DiedError struct {
	// What is the panic's value, or the runtime's error, in one line.
	What string
	// Stack is the first goroutine's.
	Stack string

	doing string
	path  []engine.Choice
}

// Error is one line; the stack is apart.
func (e *DiedError) Error() string { return "the strategy has ended the process: " + e.What }

// mostStack is how many lines of a stack are kept.
const mostStack = 40

// newDied reads what the Go runtime wrote last; nil where it says of no code that it is to
// blame: the limits of bubbles are ours.
func newDied(said []byte) *DiedError {
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
		e := &DiedError{What: strings.Join(strings.Fields(what), " ")}
		from := i
		for from < len(lines) && !strings.HasPrefix(lines[from], "goroutine ") {
			from++
		}
		to := from
		for to < len(lines) && lines[to] != "" && to-from < mostStack {
			to++
		}
		e.Stack = strings.Join(lines[from:to], "\n")
		return e
	}
	return nil
}

// at is the innermost function of the stack that is not the runtime's, with its line.
func (e *DiedError) at() string {
	lines := strings.Split(e.Stack, "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		name := lines[i]
		if strings.HasPrefix(name, "panic(") || strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "internal/") {
			continue
		}
		if c := strings.LastIndexByte(name, '('); c > 0 {
			name = name[:c]
		}
		name = name[strings.LastIndexByte(name, '/')+1:]
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return fmt.Sprintf(" in %s (%s)", name, place[strings.LastIndexByte(place, '/')+1:])
	}
	return ""
}

// detail is one sentence.
func (e *DiedError) detail() string {
	when := ""
	switch e.doing {
	case doingClose:
		when = ", as the instances are closed"
	case doingProbe:
		when = ", after a rejection and several windows at rest"
	}
	return "a goroutine of the strategy's ends the program: " + e.What + e.at() + when
}

// finding is the schedule that the process died of. Its steps are those of a process that
// stops before the last of them, and then what ends it.
func (e *DiedError) finding(ctx context.Context, sel strategies.Selection, cfg *Config) Finding {
	f := Finding{
		Strategy: sel.String(), Policy: cfg.Policy.Name, Property: Panicked, Detail: e.detail(),
		Steps: []results.Step{}, Columns: []results.Column{},
	}
	if e.doing != doingSteps && e.doing != doingClose {
		return f
	}
	s := &search{sel: sel, cfg: *cfg}
	f.Token = s.token(e.path, Panicked)
	path, last := e.path, results.Step{Actor: "instance 0", Role: results.RoleInstance, Column: -1, Event: results.EventResume, Command: "is opened"}
	switch n := len(path); {
	case e.doing == doingClose:
		last.Command = "is closed"
	case n > 0:
		path = path[:n-1]
		switch c := e.path[n-1]; {
		case c.Kind == engine.TickClock:
			last.Actor, last.Role, last.Event, last.Command = "clock", results.RoleClock, results.EventTick, "time passes"
		case c.Kind == engine.EvictKey:
			last.Actor, last.Role, last.Event, last.Command = "store", results.RoleStore, results.EventEviction, "evicts "+c.Key
		case c.Kind == engine.CrashHost:
			last.Event, last.Command = results.EventCrash, "ends and starts anew"
		case c.ID < cfg.Clients:
			last.Actor, last.Role, last.Column, last.Command = engine.ClientName(c.ID), results.RoleClient, c.ID, "goes on"
		default:
			last.Command = "a goroutine of its own goes on"
		}
	}
	if len(path) > 0 {
		m, err := isolate(ctx, sel, cfg, task{Strategy: sel.String(), Token: s.token(path, prelude)})
		if err != nil || m.Replayed == nil {
			return f
		}
		steps := m.Replayed.Finding.Steps
		f.Steps, f.Columns, f.Faults = steps, m.Replayed.Finding.Columns, m.Replayed.Finding.Faults
		last.At, last.InUse = steps[len(steps)-1].At, steps[len(steps)-1].InUse
	}
	if last.Column >= len(f.Columns) {
		for i := range cfg.Clients {
			f.Columns = append(f.Columns, results.Column{Name: engine.ClientName(i), Role: results.RoleClient})
		}
	}
	last.Number, last.Limit, last.Command = len(f.Steps)+1, cfg.Policy.Limit, last.Command+", and the program ends: "+e.What
	f.Steps = append(f.Steps, last)
	return f
}

// prelude is the property of a schedule that is repeated for its steps alone.
const prelude Property = "prelude"

// result is that of a search that has died.
func (e *DiedError) result(ctx context.Context, sel strategies.Selection, cfg *Config, so Sofar) *Result {
	r := &Result{
		Strategy: sel.String(), Policy: cfg.Policy.Name, Limit: cfg.Policy.Limit, Unit: cfg.Policy.Unit,
		Clients: cfg.Clients, Instances: cfg.Instances, Faults: cfg.Faults, Times: cfg.Times, Properties: cfg.Properties,
		Findings: []Finding{e.finding(ctx, sel, cfg)}, Runs: so.Runs, States: int(so.States), Depth: int(so.Depth),
		Capped: "the strategy has ended it", Withheld: []results.Withheld{{Code: harness.CodePanicked, Detail: e.Error()}},
	}
	if r.Faults == nil {
		r.Faults = []quota.Fault{}
	}
	for _, x := range cfg.Scripts {
		r.Scripts = append(r.Scripts, x.String())
	}
	return r
}

// replayed is a schedule that has ended its process once more.
func (e *DiedError) replayed(ctx context.Context, sel strategies.Selection, cfg *Config) *Replayed {
	f := e.finding(ctx, sel, cfg)
	return &Replayed{
		Strategy: sel.String(), Policy: cfg.Policy.Name, Property: Panicked, Finding: &f, Broken: true, Store: embedded, Same: true,
	}
}

// failure is an error as a child tells it.
type failure struct {
	Kind, Text, Where, At, Stack string
	After                        time.Duration
}

// kinds of errors that callers tell apart, and what stands for them.
var kinds = map[string]error{"unseen": ErrUnseen, "not-deterministic": ErrNotDeterministic, "token": ErrToken}

func failed(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	var unfit *UnfitError
	var p *PanicError
	var h *HungError
	switch {
	case errors.As(err, &unfit):
		f.Kind = "unfit"
	case errors.As(err, &p):
		*f = failure{Kind: "panic", Text: fmt.Sprint(p.Value), Where: p.Where, Stack: string(p.Stack)}
	case errors.As(err, &h):
		*f = failure{Kind: "hung", Where: h.Where, At: h.At, After: h.After, Stack: string(h.Stack)}
	}
	for kind, known := range kinds {
		if f.Kind == "" && errors.Is(err, known) {
			f.Kind = kind
		}
	}
	return f
}

// err is the error as the parent has it.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	text := errors.New(f.Text)
	switch f.Kind {
	case "unfit":
		return &UnfitError{Err: text}
	case "panic":
		return &PanicError{Where: f.Where, Value: f.Text, Stack: []byte(f.Stack)}
	case "hung":
		return &HungError{Where: f.Where, At: f.At, After: f.After, Stack: []byte(f.Stack)}
	}
	if known := kinds[f.Kind]; known != nil {
		return toldError{text, known}
	}
	return text
}

// toldError has the text of a child's error, and is what that was.
type toldError struct {
	error
	is error
}

// Unwrap implements errors.Unwrap.
func (e toldError) Unwrap() error { return e.is }
