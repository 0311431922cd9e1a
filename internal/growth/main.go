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
	"fmt"
	"io"
	"path/filepath"

	"github.com/quotabench/quotabench/internal/program"
)

func main() { program.Main(run) }

// Paths below the root of the source tree.
const (
	recordPath = "results/baseline/growth/growth.json"
	pagePath   = "docs/growth.md"
	imagesPath = "docs/images"
)

func run(ctx context.Context, args []string, _, stderr io.Writer) int {
	p := program.New("growth", stderr)
	pageOnly := p.Bool("page", false, "write plots and page from the record that is there")
	if code, ok := p.Begin(args); !ok {
		return code
	}
	if p.NArg() > 0 {
		return p.Fail(ctx, program.Usage, fmt.Errorf("%s is no flag: there is -page, and without it everything is measured", p.Arg(0)))
	}
	root, err := program.Root(ctx)
	if err != nil {
		return p.Fail(ctx, program.Usage, err)
	}
	if !*pageOnly {
		rec, err := measure(ctx, root, sweeps(), stderr)
		if err == nil {
			err = rec.write(filepath.Join(root, recordPath))
		}
		if err != nil {
			return p.Fail(ctx, program.Failed, err)
		}
	}
	rec, err := readRecord(filepath.Join(root, recordPath))
	if err != nil {
		return p.Fail(ctx, program.Usage, err)
	}
	if err := rec.publish(root); err != nil {
		return p.Fail(ctx, program.Failed, err)
	}
	return 0
}
