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
	"github.com/quotabench/quotabench/internal/codes"
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
	Census *results.Census
	Found  []Finding // with tokens, without steps
}

// answer is that of a child. Results may come with an error.
type answer struct {
	Search   *Result
	Census   *results.Census
	Replayed *results.Replay
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
		for _, breakage := range broken {
			finding := breakage.unshown(sel, &cfg)
			finding.Token = tokenOf(sel, &cfg, breakage.path, finding.Property)
			n.Found = append(n.Found, finding)
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
	answer, err := inChild(ctx, sel, cfg, task{})
	died, ok := errors.AsType[*DiedError](err)
	if !ok {
		return answer.Search, err
	}
	search := cfg.sofar.partial(ctx, sel, *cfg, err)
	if search == nil { // nothing has been run
		search = newResult(sel, cfg)
		search.Capped, search.Withheld = endedByStrategy, withheldBy(err)
	}
	finding, err := panicFinding(ctx, sel, cfg, died)
	search.Findings = slices.Insert(search.Findings, 0, finding)
	return search, err
}

// enumerateInChild is [Enumerate] in a process of its own.
func enumerateInChild(ctx context.Context, sel strategies.Selection, cfg *Config) (*results.Census, error) {
	answer, err := inChild(ctx, sel, cfg, task{Enumerates: true})
	if errors.As(err, new(*DiedError)) {
		return cfg.sofar.partialCensus(ctx, sel, *cfg, err), err
	}
	return answer.Census, err
}

// replayInChild is [ReplayOf] in a process of its own.
func replayInChild(ctx context.Context, sel strategies.Selection, cfg *Config, t *ticket,
	token string) (*results.Replay, error) {
	answer, err := inChild(ctx, sel, cfg, task{Token: token})
	died, ok := errors.AsType[*DiedError](err)
	if t.Property != Panicked || !ok {
		return answer.Replayed, err
	}
	finding, err := panicFinding(ctx, sel, cfg, died)
	return &results.Replay{
		Strategy: sel.String(), Policy: cfg.policyName(), Property: Panicked, Finding: &finding, Broken: true,
		Store: embedded, Same: true,
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
	if panicError, ok := errors.AsType[*PanicError](err); ok {
		t.Panic = &PanicError{Where: panicError.Where, Value: fmt.Sprint(panicError.Value), Stack: panicError.Stack}
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
func (e *trailed) Step(choice engine.Choice) error {
	e.text = append(append(e.text, ' '), choice.String()...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.Engine.Step(choice)
}

// Pass implements [engine.Local]. No token holds what follows.
func (e *trailed) Pass(duration time.Duration) error {
	e.text = append(e.text[:0], doingProbe...)
	if err := e.trail.Set(e.text); err != nil {
		return err
	}
	return e.Engine.Pass(duration)
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
	finding := breakage{Finding: Finding{Property: Panicked}}.unshown(sel, cfg)
	doing, schedule, _ := strings.Cut(died.Trail(), " ")
	path, err := parsePath(schedule)
	if err != nil {
		return finding, fmt.Errorf("the schedule that ended a process: %w", err)
	}
	finding.Detail = "a goroutine of the strategy's ends the program: " + died.Reason()
	switch doing {
	case doingSteps:
	case doingClose:
		finding.Detail += ", as the instances are closed"
	case doingProbe:
		finding.Detail += ", after a rejection and several windows at rest"
		return finding, nil
	default:
		return finding, nil
	}
	finding.Token = tokenOf(sel, cfg, path, Panicked)
	last := lastStep(doing, path, cfg.Clients)
	if doing == doingSteps && len(path) > 0 {
		path = path[:len(path)-1]
	}
	if len(path) > 0 {
		answer, err := inChild(ctx, sel, cfg, task{Token: tokenOf(sel, cfg, path, Panicked)})
		if err != nil || answer.Replayed == nil { // it dies of that, too
			return finding, nil
		}
		finding.Steps = answer.Replayed.Finding.Steps
		finding.Columns = answer.Replayed.Finding.Columns
		finding.Faults = answer.Replayed.Finding.Faults
		before := finding.Steps[len(finding.Steps)-1]
		last.At = before.At
		last.InUse = before.InUse
	}
	if last.Column >= len(finding.Columns) {
		for i := range cfg.Clients {
			finding.Columns = append(finding.Columns, engine.ClientColumn(i))
		}
	}
	last.Number = len(finding.Steps) + 1
	last.Limit = cfg.Policy.Limit
	last.Command += ", and the program ends: " + died.What
	finding.Steps = append(finding.Steps, last)
	return finding, nil
}

// lastStep is what a process was doing when it died.
func lastStep(doing string, path []engine.Choice, clients int) results.Step {
	step := results.Step{Actor: "instance 0", Role: codes.RoleInstance, Column: -1, Event: codes.EventResume}
	if doing == doingClose {
		step.Command = "is closed"
		return step
	}
	if len(path) == 0 {
		step.Command = "is opened"
		return step
	}
	switch choice := path[len(path)-1]; {
	case choice.Kind == engine.TickClock:
		return results.Step{Actor: "clock", Role: codes.RoleClock, Column: -1, Event: codes.EventTick,
			Command: "time passes"}
	case choice.Kind == engine.EvictKey:
		return results.Step{Actor: "store", Role: codes.RoleStore, Column: -1, Event: codes.EventEviction,
			Command: "evicts " + choice.Key}
	case choice.Kind == engine.CrashHost:
		step.Event = codes.EventCrash
		step.Command = "ends and starts anew"
	case choice.ID < clients:
		step.Actor = engine.ClientName(choice.ID)
		step.Role = codes.RoleClient
		step.Column = choice.ID
		step.Command = "goes on"
	default:
		step.Command = "a goroutine of its own goes on"
	}
	return step
}
