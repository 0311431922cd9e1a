// Package program is what programs that measure this source tree have in common: flags,
// Ctrl-C, exit codes and the root of the tree.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// Exit codes other than 0.
const (
	Failed      = 1
	Usage       = 2
	Interrupted = 130
)

// Main calls run with the program's arguments and ends the program with the code that it
// returns. The first Ctrl-C ends the context, a second one the program.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Program is a program: its flags, and the way in which it says that it failed.
type Program struct {
	*flag.FlagSet
	stderr io.Writer
}

// New makes a program without flags.
func New(name string, stderr io.Writer) *Program {
	program := &Program{flag.NewFlagSet(name, flag.ContinueOnError), stderr}
	program.SetOutput(stderr)
	return program
}

// Begin reads the arguments. If ok is false the program ends with the code: help was
// asked for, or an argument is wrong, and that is said already.
func (p *Program) Begin(args []string) (code int, ok bool) {
	switch err := p.Parse(args); {
	case err == nil:
		return 0, true
	case errors.Is(err, flag.ErrHelp):
		return 0, false
	default:
		return Usage, false
	}
}

// Fail says why the program ends and returns the code that it ends with: the one given,
// or Interrupted if the context has ended.
func (p *Program) Fail(ctx context.Context, code int, err error) int {
	if ctx.Err() != nil {
		code = Interrupted
		err = errors.New("interrupted")
	}
	fmt.Fprintf(p.stderr, "%s: %v\n", p.Name(), err)
	return code
}

// Root is the root of the source tree that the program runs in, or below which it does.
func Root(ctx context.Context) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/quotabench/quotabench").Output()
	if root := strings.TrimSpace(string(dir)); err == nil && root != "" {
		return root, nil
	}
	return "", errors.Join(errors.New("run it in quotabench's folder tools, with Go installed"), err)
}
