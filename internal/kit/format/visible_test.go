package format

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, ü and 漢字\n\ttab": "plain text, ü and 漢字\n\ttab",
		"\x1b[31mred\a\r\x7f\x00":     `\u001b[31mred\u0007\u000d\u007f\u0000`,
		"\u009b31m":                   `\u009b31m`,
		"\x9b31m":                     `\x9b31m`,
		"user\u202etxt.exe":           `user\u202etxt.exe`,
		"":                            "",
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What is written in parts is the same as what is written at once, and JSON stays
// JSON of the same meaning.
func TestVisibleWriter(t *testing.T) {
	b, err := json.Marshal("a\x1b[31m\u009b\u202eü漢😀\x7f")
	if err != nil {
		t.Fatal(err)
	}
	for part := 1; part <= len(b); part++ {
		var out bytes.Buffer
		w := VisibleWriter(&out)
		for rest := b; len(rest) > 0; rest = rest[min(part, len(rest)):] {
			if n, err := w.Write(rest[:min(part, len(rest))]); err != nil || n != min(part, len(rest)) {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if got := out.String(); got != Visible(string(b)) || strings.ContainsFunc(got, hidden) {
			t.Fatalf("in parts of %d: %q", part, got)
		}
		var text string
		if err := json.Unmarshal(out.Bytes(), &text); err != nil || text != "a\x1b[31m\u009b\u202eü漢😀\x7f" {
			t.Fatalf("%q, %v", text, err)
		}
	}
}

func TestShorten(t *testing.T) {
	for n := range 40 {
		in := strings.Repeat("ü漢", n)
		got := Shorten(in, 60)
		if len(got) > 60 || !utf8.ValidString(got) || len(in) <= 60 && got != in {
			t.Errorf("%d bytes become %d: %q", len(in), len(got), got)
		}
	}
	if got := Shorten("--flag \""+strings.Repeat("x", 1000)+
		"\": give a number", 120); !strings.HasPrefix(got, "--flag ") || !strings.HasSuffix(got, ": give a number") {
		t.Error(got)
	}
}
