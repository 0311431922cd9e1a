// Command man writes the manual pages of quotabench to a directory, one for each command.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kit/exit"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "man: give one directory for the pages")
		os.Exit(exit.Usage)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(exit.Failed)
	}
}

// write writes the same bytes each time that it is called with the same program.
func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Command(io.Discard, io.Discard)
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Title: "QUOTABENCH", Section: "1", Source: "quotabench " +
		root.Version, Manual: "quotabench manual"}
	return doc.GenManTree(root, header, dir)
}
