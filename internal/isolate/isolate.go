// Package isolate has this program started again as a child that does one task for it.
// Code that is not under a program's control can end a process, as a panic on a goroutine
// of a library does, and Go has no way to recover that: in a child it ends no more than
// the task.
//
// A child is given its task as one JSON value on its standard input and answers with
// JSON values on its standard output. The input stays open: its end, by intent or because
// the parent has ended, asks the child to finish.
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
)

// variable is set in the environment of a child, which has none of its own.
const variable = "QUOTABENCH_ISOLATED"

// Within reports whether this process is a child.
func Within() bool { return os.Getenv(variable) != "" }

// Serve is for the beginning of a program: where this process has been started for tasks
// of that kind, it does its task and does not return. The context of do ends when the
// parent closes the input.
func Serve[T any](kind string, do func(ctx context.Context, task *T, to *json.Encoder) error) {
	if len(os.Args) != 2 || os.Args[1] != kind {
		return
	}
	signal.Ignore(os.Interrupt) // which reaches the parent, too
	if err := serve(os.Stdin, os.Stdout, do); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve[T any](in io.Reader, out io.Writer, do func(ctx context.Context, task *T, to *json.Encoder) error) error {
	task := new(T)
	if err := json.NewDecoder(in).Decode(task); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return do(ctx, task, json.NewEncoder(out))
}

// Every calls tell now and then until what it returns is called. That returns once no
// call goes on.
func Every(d time.Duration, tell func() error) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if tell() != nil {
					return
				}
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// Child starts this program again for a task of a kind that it serves. next is given each
// value that the child sends, and reports whether it was the last. Where the child has
// ended before that, and the Go runtime says that code in it is to blame, the error is a
// [*Death].
func Child[T any](ctx context.Context, kind string, task any, next func(T) (last bool)) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, kind)
	said := &tail{most: 1 << 20}
	cmd.Env = append(os.Environ(), variable+"=1", "GOTRACEBACK=single")
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	given, err := json.Marshal(task)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	end := sync.OnceFunc(func() { _ = in.Close() })
	defer context.AfterFunc(ctx, end)()
	defer end()
	_, err = in.Write(append(given, '\n'))
	from := json.NewDecoder(out)
	for last := false; err == nil && !last; {
		var v T
		if err = from.Decode(&v); err == nil {
			last = next(v)
		}
	}
	end()
	if err = errors.Join(err, cmd.Wait()); err == nil { // after which nothing more is said
		return nil
	}
	if d := newDeath(said.b); d != nil {
		return d
	}
	return fmt.Errorf("the process of the task %s: %w: %s", kind, err, bytes.TrimSpace(said.b[max(0, len(said.b)-1_000):]))
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
