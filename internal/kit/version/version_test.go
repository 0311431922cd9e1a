package version

import (
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestOfARelease: what the linker stamps is what the program says.
func TestOfARelease(t *testing.T) {
	releaseVersion = "1.2.3"
	releaseCommit = "0123456789abcdef"
	releaseDate = "2026-01-02T03:04:05Z"
	t.Cleanup(func() {
		releaseVersion = ""
		releaseCommit = ""
		releaseDate = ""
	})
	if Date() != releaseDate || !strings.HasPrefix(Text(), "1.2.3 (0123456789ab") {
		t.Errorf("%s of %s", Text(), Date())
	}
	if v := Published(); v != "v1.2.3" {
		t.Errorf("others require %q", v)
	}
	for _, releaseVersion = range []string{"1.2.4-snapshot-0123456", ""} {
		if v := Published(); v != "" {
			t.Errorf("others require %q, which is not published", v)
		}
	}
}
