package explore

import (
	"context"
	"errors"
	"fmt"
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
type DiedError = harness.DiedError

// death is what has ended a process, and what was done then.
type death struct {
	*DiedError
	doing string
	path  []engine.Choice
}

// detail is one sentence.
func (e *death) detail() string {
	when := ""
	switch e.doing {
	case doingClose:
		when = ", as the instances are closed"
	case doingProbe:
		when = ", after a rejection and several windows at rest"
	}
	what := e.What
	if e.At != "" {
		what += " in " + e.At
	}
	return "a goroutine of the strategy's ends the program: " + what + when
}

// finding is the schedule that the process died of. Its steps are those of a process that
// stops before the last of them, and then what ends it.
func (e *death) finding(ctx context.Context, sel strategies.Selection, cfg *Config) Finding {
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
		m, err := isolated(ctx, sel, cfg, task{Strategy: sel.String(), Token: s.token(path, prelude)})
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

// result is that of a search that has died: with what was found before.
func (e *death) result(ctx context.Context, sel strategies.Selection, cfg *Config, had *heard) *Result {
	r := &Result{
		Strategy: sel.String(), Policy: cfg.Policy.Name, Limit: cfg.Policy.Limit, Unit: cfg.Policy.Unit,
		Clients: cfg.Clients, Instances: cfg.Instances, Faults: cfg.Faults, Times: cfg.Times, Properties: cfg.Properties,
		Findings: append([]Finding{e.finding(ctx, sel, cfg)}, had.findings(ctx, sel, cfg)...),
		Runs:     had.sofar.Runs, States: int(had.sofar.States), Depth: int(had.sofar.Depth),
		Capped: "the strategy has ended it", Withheld: e.withheld(),
	}
	if sel.Form == strategies.Library {
		r.Window = windowText(&cfg.Policy)
	}
	if r.Faults == nil {
		r.Faults = []quota.Fault{}
	}
	for _, x := range cfg.Scripts {
		r.Scripts = append(r.Scripts, x.String())
	}
	return r
}

// census is that of an enumeration that has died; nil where no schedule had come to its
// end.
func (e *death) census(ctx context.Context, sel strategies.Selection, cfg *Config, had *heard) *Census {
	c := had.census
	if c == nil || c.Schedules == 0 {
		return nil
	}
	c.Complete, c.Withheld = false, e.withheld()
	for _, f := range had.findings(ctx, sel, cfg) {
		c.Shortest = &f
	}
	return c
}

func (e *death) withheld() []results.Withheld {
	return []results.Withheld{{Code: harness.CodePanicked, Detail: e.Error()}}
}

// replayed is a schedule that has ended its process once more.
func (e *death) replayed(ctx context.Context, sel strategies.Selection, cfg *Config) *Replayed {
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
