package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"time"

	"github.com/quotabench/quotabench/strategies"
)

// childVariable is set in the environment of a child, which has none of its own.
const childVariable = "QUOTABENCH_ISOLATED"

// childArgument is the one argument that a program is started with to serve a search.
const childArgument = "isolated-search"

// task is what a child is given on its standard input.
type task struct {
	Strategy string
	Config   Config
	// Zone is the name of the policy's time zone, which has no form in JSON.
	Zone string
	// Full enumerates. Token has its schedule repeated instead.
	Full  bool
	Token string
	Trail string

	dies bool // the schedule has ended a process before
}

// message is one of a child on its standard output. The last one has no Sofar.
type message struct {
	Sofar    *Sofar    `json:",omitempty"`
	Search   *Result   `json:",omitempty"`
	Census   *Census   `json:",omitempty"`
	Replayed *Replayed `json:",omitempty"`
	Error    *failure  `json:",omitempty"`
}

// Isolated is [Run] in a process of its own, which is this program again. Code that is
// not under its caller's control can then end that process, as a panic on a goroutine of
// a library's does, and is reported: the result has a finding of [Panicked] with the
// schedule, and claims nothing. The strategy must be registered, and the program must
// call [ServeIsolated] before it does anything else.
func Isolated(ctx context.Context, sel strategies.Selection, cfg Config) (*Result, error) {
	full, err := cfg.complete(sel)
	if err != nil || os.Getenv(childVariable) != "" {
		return Run(ctx, sel, cfg)
	}
	m, err := isolate(ctx, sel, &full, task{Strategy: sel.String(), Config: cfg})
	return m.Search, err
}

// IsolatedCensus is [Enumerate] as [Isolated] is [Run]. A process that has ended is an
// error, a [*DiedError].
func IsolatedCensus(ctx context.Context, sel strategies.Selection, cfg Config) (*Census, error) {
	full, err := cfg.complete(sel)
	if err != nil || os.Getenv(childVariable) != "" {
		return Enumerate(ctx, sel, cfg)
	}
	m, err := isolate(ctx, sel, &full, task{Strategy: sel.String(), Config: cfg, Full: true})
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
	m, err := isolate(ctx, sel, &cfg, task{Strategy: sel.String(), Token: token, dies: t.Property == Panicked})
	return m.Replayed, err
}

// ServeIsolated is for programs that call [Isolated]: where this process has been started
// for a search, it searches and does not return.
func ServeIsolated() {
	if len(os.Args) != 2 || os.Args[1] != childArgument {
		return
	}
	signal.Ignore(os.Interrupt) // which reaches the parent, too
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve does what a child is for.
func serve(in io.Reader, out io.Writer) error {
	var t task
	from := json.NewDecoder(in)
	if err := from.Decode(&t); err != nil {
		return fmt.Errorf("read the search: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // the parent closes it to have the search end, and so does its own end
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	var m message
	to := json.NewEncoder(out)
	err := t.do(ctx, &m, func(s Sofar) error { return to.Encode(message{Sofar: &s}) })
	m.Error = failed(err)
	return to.Encode(m)
}

// tellEvery is how often a child says how far it has come.
const tellEvery = 100 * time.Millisecond

func (t *task) do(ctx context.Context, m *message, tell func(Sofar) error) error {
	chosen, err := strategies.Parse(t.Strategy)
	if err != nil || len(chosen) != 1 {
		return fmt.Errorf("strategy %s is none of this program: %w", t.Strategy, err)
	}
	sel, cfg := chosen[0], t.Config
	if t.Zone != "" {
		if cfg.Policy.Window.Location, err = time.LoadLocation(t.Zone); err != nil {
			return err
		}
	}
	if cfg.trail, err = openTrail(t.Trail); err != nil {
		return err
	}
	cfg.Progress = new(Progress)
	over, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		for tick := time.NewTicker(tellEvery); ; {
			select {
			case <-over:
				tick.Stop()
				return
			case <-tick.C:
				if tell(cfg.Progress.Read()) != nil {
					return
				}
			}
		}
	}()
	switch {
	case t.Token != "":
		m.Replayed, err = replayOf(ctx, sel, t.Token, Target{}, cfg.trail)
	case t.Full:
		m.Census, err = Enumerate(ctx, sel, cfg)
	default:
		m.Search, err = Run(ctx, sel, cfg)
	}
	close(over)
	<-told
	return errors.Join(err, cfg.trail.err)
}

// isolate has a child do a task, and says what became of it.
func isolate(ctx context.Context, sel strategies.Selection, cfg *Config, t task) (m message, err error) {
	file, err := os.CreateTemp("", "quotabench-trail-")
	if err != nil {
		return m, err
	}
	t.Trail = file.Name()
	defer func() { err = errors.Join(err, file.Close(), os.Remove(t.Trail)) }()
	if l := t.Config.Policy.Window.Location; l != nil {
		t.Zone, t.Config.Policy.Window.Location = l.String(), nil
	}
	progress := t.Config.Progress
	t.Config.Progress, t.Config.Postgres = nil, nil
	var sofar Sofar
	m, said, err := child(ctx, &t, func(s Sofar) {
		sofar = s
		progress.set(s)
	})
	if err == nil {
		return m, m.Error.err()
	}
	died := newDied(said)
	if died == nil {
		return m, fmt.Errorf("the process of the search: %w: %s", err, bytes.TrimSpace(said[max(0, len(said)-1_000):]))
	}
	if died.doing, died.path, err = readTrail(t.Trail); err != nil {
		return m, err
	}
	switch {
	case t.Full, t.Token != "" && !t.dies:
		return m, died
	case t.Token != "":
		m.Replayed = died.replayed(ctx, sel, cfg)
	default:
		m.Search = died.result(ctx, sel, cfg, sofar)
	}
	return m, nil
}

// child starts this program again and gives it a task. said is what it wrote to its
// standard error.
func child(ctx context.Context, t *task, progress func(Sofar)) (m message, said []byte, err error) {
	program, err := os.Executable()
	if err != nil {
		return m, nil, err
	}
	cmd := exec.Command(program, childArgument)
	errs := &tail{most: 1 << 20}
	cmd.Env = append(os.Environ(), childVariable+"=1", "GOTRACEBACK=single")
	cmd.Stderr = errs
	in, err := cmd.StdinPipe()
	if err != nil {
		return m, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return m, nil, err
	}
	if err := cmd.Start(); err != nil {
		return m, nil, err
	}
	end := sync.OnceFunc(func() { _ = in.Close() })
	defer context.AfterFunc(ctx, end)()
	defer end()
	given, err := json.Marshal(t)
	if err == nil {
		_, err = in.Write(append(given, '\n'))
	}
	from := json.NewDecoder(out)
	for err == nil {
		var next message
		if err = from.Decode(&next); err == nil && next.Sofar == nil {
			m = next
			break
		}
		if err == nil {
			progress(*next.Sofar)
		}
	}
	end()
	err = errors.Join(err, cmd.Wait()) // after which nothing is written to errs
	return m, errs.b, err
}

// tail keeps the end of what is written to it: a runtime that dies says so last.
type tail struct {
	b    []byte
	most int
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	if t.b = append(t.b, p...); len(t.b) > 2*t.most {
		t.b = append(t.b[:0], t.b[len(t.b)-t.most:]...)
	}
	return len(p), nil
}
