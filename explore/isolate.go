package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/explore/internal/foreign"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// DiedError says that code of a strategy has ended the process of a search.
type DiedError = guard.DiedError

const isolatedKind = "isolated-search"

func init() { isolate.Handle(isolatedKind, doTask) }

// task is what a child is given: a search, an enumeration if the configuration says so, or
// a token to replay.
type task struct {
	Strategy   isolate.Strategy
	Config     Config
	Enumerates bool
	Token      string
}

// news is how far a child has come, and what it has found.
type news struct {
	Sofar  Sofar
	Search *Result
	Census *Census
	Found  []Finding // with tokens, without steps
}

// answer is that of a child. Results may come with an error.
type answer struct {
	Search   *Result
	Census   *Census
	Replayed *Replayed
	Error    *toldError
}

// isolates reports whether a search of the strategy has a process of its own.
func (c *Config) isolates(sel strategies.Selection) bool { return c.Isolate && sel.Foreign }

// doTask does what a child is for.
func doTask(ctx context.Context, t *task, tell func(any) error) (a answer, err error) {
	cfg := t.Config
	sel, err := t.Strategy.Select(&cfg.Policy)
	if err != nil {
		return a, err
	}
	cfg.Progress = new(Progress)
	cfg.sofar = new(progress)
	said := func() error {
		n := news{Sofar: cfg.Progress.Read()}
		var broken []breakage
		n.Search, n.Census, broken = cfg.sofar.read()
		for _, b := range broken {
			f := b.unshown(sel, &cfg)
			f.Token = tokenOf(sel, &cfg, b.path, f.Property)
			n.Found = append(n.Found, f)
		}
		return tell(&n)
	}
	cfg.sofar.changed = func() { _ = said() } // a parent that is gone has closed the input, too
	end := isolate.Every(said)
	switch {
	case t.Token != "":
		a.Replayed, err = ReplayOf(ctx, sel, t.Token, Target{})
	case t.Enumerates:
		a.Census, err = Enumerate(ctx, sel, cfg)
	default:
		a.Search, err = Run(ctx, sel, cfg)
	}
	end()
	a.Error = told(err)
	return a, nil
}

// inChild has a child do a task. A child that has died is a [*DiedError].
func inChild(ctx context.Context, sel strategies.Selection, cfg *Config, t task) (a answer, err error) {
	t.Config = *cfg
	t.Config.Isolate = false
	t.Config.Progress = nil
	t.Config.Postgres = nil
	t.Strategy, err = isolate.Told(sel, &t.Config.Policy)
	if err != nil {
		return a, &UnfitError{Err: err}
	}
	a, err = isolate.Run[news, answer](ctx, "", isolatedKind, &t, func(n news) {
		if t.Token == "" {
			cfg.Progress.set(n.Sofar)
			cfg.sofar.told(&n)
		}
	})
	if err == nil && a.Error != nil {
		err = a.Error
	}
	return a, err
}

// runInChild is [Run] in a process of its own.
func runInChild(ctx context.Context, sel strategies.Selection, cfg *Config) (*Result, error) {
	a, err := inChild(ctx, sel, cfg, task{})
	died, ok := errors.AsType[*DiedError](err)
	if !ok {
		return a.Search, err
	}
	r := cfg.sofar.partial(ctx, sel, *cfg, err)
	if r == nil { // nothing has been run
		r = newResult(sel, cfg)
		r.Capped, r.Withheld = endedByStrategy, withheldBy(err)
	}
	f, err := panicFinding(ctx, sel, cfg, died)
	r.Findings = slices.Insert(r.Findings, 0, f)
	return r, err
}

// enumerateInChild is [Enumerate] in a process of its own.
func enumerateInChild(ctx context.Context, sel strategies.Selection, cfg *Config) (*Census, error) {
	a, err := inChild(ctx, sel, cfg, task{Enumerates: true})
	if errors.As(err, new(*DiedError)) {
		return cfg.sofar.partialCensus(ctx, sel, *cfg, err), err
	}
	return a.Census, err
}

// replayInChild is [ReplayOf] in a process of its own.
func replayInChild(ctx context.Context, sel strategies.Selection, cfg *Config, t *ticket, token string) (*Replayed, error) {
	a, err := inChild(ctx, sel, cfg, task{Token: token})
	died, ok := errors.AsType[*DiedError](err)
	if t.Property != Panicked || !ok {
		return a.Replayed, err
	}
	f, err := panicFinding(ctx, sel, cfg, died)
	return &Replayed{
		Strategy: sel.String(), Policy: cfg.Policy.Name, Property: Panicked, Finding: &f, Broken: true, Store: embedded, Same: true,
	}, err
}

// distinct are errors that callers tell apart.
var distinct = []error{ErrUnseen, ErrNotDeterministic, ErrToken}

// toldError is an error as a child tells it, with whatever callers look for in it.
type toldError struct {
	Text  string
	Panic *PanicError `json:",omitempty"`
	Hung  *HungError  `json:",omitempty"`
	Unfit bool        `json:",omitempty"`
	Is    []int       `json:",omitempty"` // places in distinct
}

func told(err error) *toldError {
	if err == nil {
		return nil
	}
	t := &toldError{Text: err.Error(), Unfit: errors.As(err, new(*UnfitError))}
	if p, ok := errors.AsType[*PanicError](err); ok {
		t.Panic = &PanicError{Where: p.Where, Value: fmt.Sprint(p.Value), Stack: p.Stack}
	}
	errors.As(err, &t.Hung)
	for i, known := range distinct {
		if errors.Is(err, known) {
			t.Is = append(t.Is, i)
		}
	}
	return t
}

// Error implements error.
func (t *toldError) Error() string { return t.Text }

// Unwrap implements errors.Unwrap.
func (t *toldError) Unwrap() (out []error) {
	if t.Panic != nil {
		out = append(out, t.Panic)
	}
	if t.Hung != nil {
		out = append(out, t.Hung)
	}
	if t.Unfit {
		out = append(out, &UnfitError{Err: errors.New(t.Text)})
	}
	for _, i := range t.Is {
		out = append(out, distinct[i])
	}
	return out
}

// What is done with an instance when a process dies, the first word of its trail. The
// schedule follows.
const (
	doingSteps = "steps"
	doingClose = "close" // after the steps
	doingProbe = "probe" // several windows later, at rest
)

// trailed is an engine of foreign code that leaves its schedule in the trail of its process.
type trailed struct {
	*foreign.Engine
	trail *isolate.Trail
	text  []byte
}

// Begin implements [engine.Engine].
func (e *trailed) Begin() error {
	e.text = append(e.text[:0], doingSteps...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.Engine.Begin()
}

// Step implements [engine.Engine].
func (e *trailed) Step(c engine.Choice) error {
	e.text = append(append(e.text, ' '), c.String()...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.Engine.Step(c)
}

// Pass implements [engine.Local]. No token holds what follows.
func (e *trailed) Pass(d time.Duration) error {
	e.text = append(e.text[:0], doingProbe...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.Engine.Pass(d)
}

// End implements [engine.Engine].
func (e *trailed) End() error {
	if bytes.HasPrefix(e.text, []byte(doingSteps)) {
		copy(e.text, doingClose)
		if err := e.trail.Set(e.text); err != nil {
			return err
		}
	}
	return e.Engine.End()
}

// panicFinding is the schedule that a child has died of. Its steps are those of another
// child, which stops before the last of them, and then what ends the process.
func panicFinding(ctx context.Context, sel strategies.Selection, cfg *Config, died *DiedError) (Finding, error) {
	f := breakage{Finding: Finding{Property: Panicked}}.unshown(sel, cfg)
	doing, schedule, _ := strings.Cut(died.Trail(), " ")
	path, err := parsePath(schedule)
	if err != nil {
		return f, fmt.Errorf("the schedule that ended a process: %w", err)
	}
	f.Detail = "a goroutine of the strategy's ends the program: " + died.Reason()
	switch doing {
	case doingSteps:
	case doingClose:
		f.Detail += ", as the instances are closed"
	case doingProbe:
		f.Detail += ", after a rejection and several windows at rest"
		return f, nil
	default:
		return f, nil
	}
	f.Token = tokenOf(sel, cfg, path, Panicked)
	last := lastStep(doing, path, cfg.Clients)
	if doing == doingSteps && len(path) > 0 {
		path = path[:len(path)-1]
	}
	if len(path) > 0 {
		a, err := inChild(ctx, sel, cfg, task{Token: tokenOf(sel, cfg, path, Panicked)})
		if err != nil || a.Replayed == nil { // it dies of that, too
			return f, nil
		}
		f.Steps = a.Replayed.Finding.Steps
		f.Columns = a.Replayed.Finding.Columns
		f.Faults = a.Replayed.Finding.Faults
		before := f.Steps[len(f.Steps)-1]
		last.At = before.At
		last.InUse = before.InUse
	}
	if last.Column >= len(f.Columns) {
		for i := range cfg.Clients {
			f.Columns = append(f.Columns, results.Column{Name: engine.ClientName(i), Role: results.RoleClient})
		}
	}
	last.Number = len(f.Steps) + 1
	last.Limit = cfg.Policy.Limit
	last.Command += ", and the program ends: " + died.What
	f.Steps = append(f.Steps, last)
	return f, nil
}

// lastStep is what a process was doing when it died.
func lastStep(doing string, path []engine.Choice, clients int) results.Step {
	s := results.Step{Actor: "instance 0", Role: results.RoleInstance, Column: -1, Event: results.EventResume}
	if doing == doingClose {
		s.Command = "is closed"
		return s
	}
	if len(path) == 0 {
		s.Command = "is opened"
		return s
	}
	switch c := path[len(path)-1]; {
	case c.Kind == engine.TickClock:
		return results.Step{Actor: "clock", Role: results.RoleClock, Column: -1, Event: results.EventTick, Command: "time passes"}
	case c.Kind == engine.EvictKey:
		return results.Step{Actor: "store", Role: results.RoleStore, Column: -1, Event: results.EventEviction, Command: "evicts " + c.Key}
	case c.Kind == engine.CrashHost:
		s.Event = results.EventCrash
		s.Command = "ends and starts anew"
	case c.ID < clients:
		s.Actor = engine.ClientName(c.ID)
		s.Role = results.RoleClient
		s.Column = c.ID
		s.Command = "goes on"
	default:
		s.Command = "a goroutine of its own goes on"
	}
	return s
}
