//go:build unix

// Command growth measures how the program grows: with subjects, with virtual days, with
// clients and script length, with states. Each point is a process of its own, so that
// its memory is its own. make growth runs it:
//
//	go run ./internal/growth           # measure, then write record, plots and page
//	go run ./internal/growth -page     # write plots and page from the record that is there
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// Paths below the root of the source tree.
const (
	recordPath = "results/baseline/growth/growth.json"
	pagePath   = "docs/growth.md"
	imagesPath = "docs/images"
)

func run(ctx context.Context, args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("growth", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pageOnly := flags.Bool("page", false, "write plots and page from the record that is there")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	fail := func(code int, err error) int {
		if ctx.Err() != nil {
			code, err = 130, errors.New("interrupted")
		}
		fmt.Fprintln(stderr, "growth:", err)
		return code
	}
	if flags.NArg() > 0 {
		return fail(2, fmt.Errorf("%s is no flag: there is -page, and without it everything is measured", flags.Arg(0)))
	}
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	if err != nil || root == "." || root == filepath.Dir(os.DevNull) {
		return fail(2, errors.New("run it in quotabench's source tree, with Go installed"))
	}
	if !*pageOnly {
		rec, err := measure(ctx, root, sweeps(), stderr)
		if err == nil {
			err = rec.write(filepath.Join(root, recordPath))
		}
		if err != nil {
			return fail(1, err)
		}
	}
	rec, err := readRecord(filepath.Join(root, recordPath))
	if err != nil {
		return fail(2, err)
	}
	if err := rec.publish(root); err != nil {
		return fail(1, err)
	}
	return 0
}
