package cli

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/version"
	"github.com/quotabench/quotabench/results"
)

// --version says what the program was built from, and what it writes.
func TestVersion(t *testing.T) {
	o := call(t.Context(), "--version")
	wanted := []string{
		"quotabench " + version.Text() + "\n", "\ncommitted  ", runtime.Version() + " for " + runtime.GOOS,
		fmt.Sprintf("schema %d of results.json\n", results.SchemaVersion),
	}
	for _, want := range wanted {
		if o.code != exit.OK || !strings.Contains(o.stdout, want) {
			t.Errorf("exit %d, no %q: %s%s", o.code, want, o.stdout, o.stderr)
		}
	}
}
