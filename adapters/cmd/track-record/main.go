// Command track-record writes docs/track-record.md anew. It runs in the folder adapters.
package main

import (
	"fmt"
	"os"

	"github.com/quotabench/quotabench/adapters/track"
	"github.com/quotabench/quotabench/harness"
)

func main() {
	harness.ServeIsolated()
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "track-record:", err)
		os.Exit(1)
	}
}

func write() error {
	goMod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	steps, err := track.Steps()
	if err != nil {
		return err
	}
	return os.WriteFile("../docs/track-record.md", track.Render(goMod, steps), 0o600)
}
