package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/results"
)

// TestVersionOfARelease: what the linker stamps is what the program says.
func TestVersionOfARelease(t *testing.T) {
	releaseVersion, releaseCommit, releaseDate = "1.2.3", "0123456789abcdef", "2026-01-02T03:04:05Z"
	t.Cleanup(func() { releaseVersion, releaseCommit, releaseDate = "", "", "" })
	o := call(t.Context(), "version")
	for _, want := range []string{"quotabench 1.2.3 (0123456789ab", "committed  2026-01-02T03:04:05Z", "schema 3 of results.json"} {
		if o.code != ExitOK || !strings.Contains(o.stdout, want) {
			t.Errorf("exit %d, no %q in %s", o.code, want, o.stdout)
		}
	}
	var said struct {
		Version, Date string
		Schema        int
	}
	if o := call(t.Context(), "version", "--json"); json.Unmarshal([]byte(o.stdout), &said) != nil || said.Version != "1.2.3" || said.Date != releaseDate || said.Schema != results.SchemaVersion {
		t.Errorf("%s", o.stdout)
	}
}
