package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/cli"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// Each command that is offered has a page.
func TestPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	pages := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err != nil:
			t.Error(err)
		case !strings.HasPrefix(string(page), ".nh\n.TH \"QUOTABENCH\"") || !strings.Contains(string(page), ".SH NAME"):
			t.Errorf("%s is no manual page: %.60q", name, page)
		}
		pages++
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				visit(sub)
			}
		}
	}
	visit(cli.Command(io.Discard, io.Discard))
	if pages < 10 {
		t.Errorf("%d pages", pages)
	}
}
