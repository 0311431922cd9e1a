package format

import (
	"strings"
	"testing"
)

func TestFileNames(t *testing.T) {
	for _, name := range []string{"redis-away", "a", "ADR_8.x", "größe-2", strings.Repeat("x", 100)} {
		if err := CheckFileName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "../victim", "a/b", "/tmp/x", `a\b`, "a\x1bb", "\u202ea", "a\nb", "a b",
		"\xff",
		".hidden", "C:x", strings.Repeat("x", 101)} {
		if err := CheckFileName(name); err == nil {
			t.Errorf("%q is taken", name)
		}
		if safe := FileName(name); strings.ContainsAny(safe, "/\\:\x1b\n\u202e") {
			t.Errorf("%q becomes %q", name, safe)
		}
	}
}
