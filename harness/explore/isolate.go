package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/internal/isolate"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// childArgument is the one argument that a program is started with to serve a search.
const childArgument = "isolated-search"

// task is what a child is given on its standard input.
type task struct {
	Strategy string
	Config   Config
	// Zone is the policy's time zone, which has no form in JSON.
	Zone isolate.Zone
	// Full enumerates. Token has its schedule repeated instead.
	Full  bool
	Token string
	Trail string

	dies bool // the schedule has ended a process before
}

// message is one of a child on its standard output. The last one is Done.
type message struct {
	Done bool `json:",omitempty"`
	// Sofar is how far the child has come, and Counted what an enumeration has counted.
	Sofar   *Sofar  `json:",omitempty"`
	Counted *Census `json:",omitempty"`
	// Found is all that has been found so far, where that has changed.
	Found []toldBreakage `json:",omitempty"`

	Search   *Result   `json:",omitempty"`
	Census   *Census   `json:",omitempty"`
	Replayed *Replayed `json:",omitempty"`
	Error    *failure  `json:",omitempty"`
}

// toldBreakage is a finding as a child tells it, before it is run again.
type toldBreakage struct {
	Finding results.Finding
	Path    string
}

// Isolated is [Run] in a process of its own, which is this program again. Code that is
// not under its caller's control can then end that process, as a panic on a goroutine of
// a library's does, and is reported: the result has a finding of [Panicked] with the
// schedule, and claims nothing. The strategy must be registered, and the program must
// call [ServeIsolated] before it does anything else.
func Isolated(ctx context.Context, sel strategies.Selection, cfg Config) (*Result, error) {
	full, err := cfg.complete(sel)
	if err != nil || isolate.Within() {
		return Run(ctx, sel, cfg)
	}
	m, err := isolated(ctx, sel, &full, task{Strategy: sel.String(), Config: cfg})
	return m.Search, err
}

// IsolatedCensus is [Enumerate] as [Isolated] is [Run]. A process that has ended is an
// error, a [*DiedError], beside what was counted before.
func IsolatedCensus(ctx context.Context, sel strategies.Selection, cfg Config) (*Census, error) {
	full, err := cfg.complete(sel)
	if err != nil || isolate.Within() {
		return Enumerate(ctx, sel, cfg)
	}
	m, err := isolated(ctx, sel, &full, task{Strategy: sel.String(), Config: cfg, Full: true})
	return m.Census, err
}

// IsolatedReplay is [Replay] as [Isolated] is [Run], on the embedded store. A process that
// has ended is a [*DiedError] where the token was not issued for that.
func IsolatedReplay(ctx context.Context, token string) (*Replayed, error) {
	t, _, err := parseToken(token)
	if err != nil {
		return nil, err
	}
	sel, err := t.selection()
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return IsolatedReplayOf(ctx, sel, token)
}

// IsolatedReplayOf is [ReplayOf] likewise. The strategy must be registered in the process
// that is started.
func IsolatedReplayOf(ctx context.Context, sel strategies.Selection, token string) (*Replayed, error) {
	t, _, err := parseToken(token)
	if err != nil {
		return nil, err
	}
	cfg, err := t.config(sel, nil)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	m, err := isolated(ctx, sel, &cfg, task{Strategy: sel.String(), Token: token, dies: t.Property == Panicked})
	return m.Replayed, err
}

// ServeIsolated is for programs that call [Isolated]: where this process has been started
// for a search, it searches and does not return.
func ServeIsolated() { isolate.Serve(childArgument, serve) }

// tellEvery is how often a child says how far it has come.
const tellEvery = 100 * time.Millisecond

// serve does what a child is for.
func serve(ctx context.Context, t *task, to *json.Encoder) error {
	var mu sync.Mutex // over to
	tell := func(m *message) error {
		mu.Lock()
		defer mu.Unlock()
		return to.Encode(m)
	}
	m := message{Done: true}
	m.Error = failed(t.do(ctx, &m, tell))
	return tell(&m)
}

func (t *task) do(ctx context.Context, m *message, tell func(*message) error) error {
	chosen, err := strategies.Parse(t.Strategy)
	if err != nil || len(chosen) != 1 {
		return fmt.Errorf("strategy %s is none of this program: %w", t.Strategy, err)
	}
	sel, cfg := chosen[0], t.Config
	if cfg.Policy.Window.Location, err = t.Zone.Location(); err != nil {
		return err
	}
	if cfg.trail, err = openTrail(t.Trail); err != nil {
		return err
	}
	cfg.Progress = new(Progress)
	sofar := func() *message {
		read := cfg.Progress.Read()
		m := message{Sofar: &read}
		if t.Full {
			m.Counted = cfg.sofar.count()
		}
		return &m
	}
	cfg.sofar = &progress{found: func(broken []breakage) {
		said := sofar()
		for _, b := range broken {
			said.Found = append(said.Found, toldBreakage{b.Finding, pathText(b.path)})
		}
		_ = tell(said) // a parent that is gone has closed the input, too
	}}
	end := isolate.Every(tellEvery, func() error { return tell(sofar()) })
	switch {
	case t.Token != "":
		m.Replayed, err = replayOf(ctx, sel, t.Token, Target{}, cfg.trail)
	case t.Full:
		m.Census, err = Enumerate(ctx, sel, cfg)
	default:
		m.Search, err = Run(ctx, sel, cfg)
	}
	end()
	return errors.Join(err, cfg.trail.err)
}

// heard is what a child has told before it died.
type heard struct {
	sofar  Sofar
	census *Census
	found  []toldBreakage
}

// findings are those of the child, with the steps that a further one tells.
func (h *heard) findings(ctx context.Context, sel strategies.Selection, cfg *Config) (out []Finding) {
	for _, b := range h.found {
		f := b.Finding
		f.Strategy, f.Policy, f.Steps, f.Columns = sel.String(), cfg.Policy.Name, []results.Step{}, []results.Column{}
		if path, err := parsePath(b.Path); err == nil {
			f.Token = (&search{sel: sel, cfg: *cfg}).token(path, f.Property)
			m, err := isolated(ctx, sel, cfg, task{Strategy: sel.String(), Token: f.Token})
			if err == nil && m.Replayed != nil {
				f.Steps, f.Columns, f.Faults = m.Replayed.Finding.Steps, m.Replayed.Finding.Columns, m.Replayed.Finding.Faults
			}
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return slices.Index(properties, a.Property) - slices.Index(properties, b.Property)
	})
	return out
}

// isolated has a child do a task, and says what became of it.
func isolated(ctx context.Context, sel strategies.Selection, cfg *Config, t task) (m message, err error) {
	if t.Zone, err = isolate.ZoneOf(t.Config.Policy.Window.Location); err != nil {
		return m, &UnfitError{Err: err}
	}
	t.Config.Policy.Window.Location = nil
	file, err := os.CreateTemp("", "quotabench-trail-")
	if err != nil {
		return m, err
	}
	t.Trail = file.Name()
	defer func() { err = errors.Join(err, file.Close(), os.Remove(t.Trail)) }()
	progress := t.Config.Progress
	t.Config.Progress, t.Config.Postgres = nil, nil
	var had heard
	err = isolate.Child(ctx, childArgument, &t, func(next message) (last bool) {
		if next.Done {
			m = next
			return true
		}
		had.sofar, had.census = *next.Sofar, next.Counted
		progress.set(had.sofar)
		if next.Found != nil {
			had.found = next.Found
		}
		return false
	})
	var died *isolate.Death
	switch {
	case err == nil:
		return m, m.Error.err()
	case !errors.As(err, &died):
		return m, err
	}
	e := death{DiedError: (*DiedError)(died)}
	if e.doing, e.path, err = readTrail(t.Trail); err != nil {
		return m, err
	}
	m = message{}
	switch {
	case t.Full:
		m.Census = e.census(ctx, sel, cfg, &had)
		return m, e.DiedError
	case t.Token != "" && !t.dies:
		return m, e.DiedError
	case t.Token != "":
		m.Replayed = e.replayed(ctx, sel, cfg)
	default:
		m.Search = e.result(ctx, sel, cfg, &had)
	}
	return m, nil
}

// parsePath reads what [pathText] writes.
func parsePath(text string) (path []engine.Choice, err error) {
	for _, word := range strings.Fields(text) {
		c, err := engine.ParseChoice(word)
		if err != nil {
			return nil, err
		}
		path = append(path, c)
	}
	return path, nil
}
