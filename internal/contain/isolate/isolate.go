// Package isolate runs a task in a process of its own, which is this program started again.
// Code that is not under a program's control can end its process: a panic on a goroutine
// of a library does, and Go has no way to recover it. In a child it ends only the task.
//
// A child reads its task as one JSON value from standard input, and writes news and the
// answer as JSON values to standard output. The input stays open: when it ends, because the
// parent says so or is gone, the child has to finish.
package isolate

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

	"github.com/quotabench/quotabench/internal/kit/clock"
)

// variable is set in the environment of a child, to its directory.
const variable = "QUOTABENCH_ISOLATED"

// Dir is a directory for the files of this child, which its parent removes; empty if this
// process is no child.
func Dir() string { return os.Getenv(variable) }

// said is one value that a child writes: news, or as the last one its answer or an error.
type said[N, A any] struct {
	News   N      `json:",omitempty"`
	Answer A      `json:",omitempty"`
	Error  string `json:",omitempty"`
}

// do is how a child does one kind of task.
type do func(ctx context.Context, decoder *json.Decoder, out func(*said[any, any]) error) error

var (
	kinds  = map[string]do{}
	serves bool // this program calls [Serve]
)

// Handle adds a kind of task. It is called by the init functions of packages that need it.
// The context of f ends when the parent closes the input. tell may be called from any
// goroutine until f returns, and fails once the parent is gone.
func Handle[Q, A any](kind string, f func(ctx context.Context, q *Q, tell func(news any) error) (A, error)) {
	kinds[kind] = func(ctx context.Context, decoder *json.Decoder, out func(*said[any, any]) error) error {
		q := new(Q)
		if err := decoder.Decode(q); err != nil {
			return fmt.Errorf("read the task: %w", err)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
		a, err := f(ctx, q, func(news any) error { return out(&said[any, any]{News: news}) })
		if err != nil {
			return out(&said[any, any]{Error: err.Error()})
		}
		return out(&said[any, any]{Answer: a})
	}
}

// Serve is for the beginning of a program. In a child it does the task and does not return.
func Serve() {
	serves = true
	if Dir() == "" || len(os.Args) != 2 || kinds[os.Args[1]] == nil {
		return
	}
	signal.Ignore(os.Interrupt) // which reaches the parent, too
	var mutex sync.Mutex
	encoder := json.NewEncoder(os.Stdout)
	err := kinds[os.Args[1]](context.Background(), json.NewDecoder(os.Stdin), func(s *said[any, any]) error {
		mutex.Lock()
		defer mutex.Unlock()
		return encoder.Encode(s)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Every calls tell ten times a second until the returned function is called or tell fails.
// When that returns, no call is under way.
func Every(tell func() error) (end func()) {
	return clock.Aside(func(wait func(time.Duration) bool) {
		for wait(100 * time.Millisecond) {
			if tell() != nil {
				return
			}
		}
	})
}

// Run has a child do a task of a kind that [Handle] knows, and passes its news on. The
// child's directory is made in dir, the system's own if that is empty. If code has ended
// the child, the error is a [*Death].
func Run[N, A any](ctx context.Context, dir, kind string, task any, news func(N)) (answer A, err error) {
	if !serves {
		return answer, errors.New("a process of its own needs a program that calls harness.ServeIsolated at its beginning")
	}
	dir, err = os.MkdirTemp(dir, "quotabench-child-")
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	given, err := json.Marshal(task)
	if err != nil {
		return answer, err
	}
	child, err := start(dir, kind)
	if err != nil {
		return answer, err
	}
	defer context.AfterFunc(ctx, child.end)()
	_, err = child.closer.Write(append(given, '\n'))
	var last said[*N, *A]
	for err == nil && last.Answer == nil && last.Error == "" {
		last = said[*N, *A]{}
		err = child.out.Decode(&last)
		if err == nil && last.News != nil {
			news(*last.News)
		}
	}
	child.end()
	err = errors.Join(err, child.cmd.Wait())
	switch {
	case err == nil && last.Error != "":
		return answer, errors.New(last.Error)
	case err == nil:
		return *last.Answer, nil
	}
	if death := newDeath(child.errors.data); death != nil {
		death.trail, err = readTrail(dir)
		return answer, errors.Join(death, err)
	}
	return answer, fmt.Errorf("the process of the task %s: %w: %s", kind, err,
		bytes.TrimSpace(child.errors.data[max(0, len(child.errors.data)-1_000):]))
}

// child is a process that was started for a task.
type child struct {
	cmd    *exec.Cmd
	closer io.WriteCloser
	out    *json.Decoder
	errors tail
	end    func() // closes in
}

func start(dir, kind string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(program, kind), errors: tail{most: 1 << 20}}
	c.cmd.Env = append(os.Environ(), variable+"="+dir, "GOTRACEBACK=single")
	c.cmd.Stderr = &c.errors
	c.closer, err = c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.end = sync.OnceFunc(func() { _ = c.closer.Close() })
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(out)
	return c, c.cmd.Start()
}

// tail keeps the end of what is written to it: a runtime that dies says so last.
type tail struct {
	data []byte
	most int
}

// Write implements [io.Writer].
func (t *tail) Write(data []byte) (int, error) {
	t.data = append(t.data, data...)
	if len(t.data) > 2*t.most {
		t.data = append(t.data[:0], t.data[len(t.data)-t.most:]...)
	}
	return len(data), nil
}
