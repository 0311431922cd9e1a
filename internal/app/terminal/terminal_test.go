package terminal

import (
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// Messages break between words if a terminal is narrow, and commands that are there
// to be copied do not break.
func TestFoldLines(t *testing.T) {
	const message = "quotabench: unknown strategy \"incr-expir\": did you mean incr-expire?"
	const command = "    quotabench run incr-expire --redis process:replicas=1"
	if got := foldLines("\n"+message+"\n", 100); got != "\n"+message+"\n" {
		t.Errorf("a line that fits became %q", got)
	}
	got := foldLines(message+"\n"+command+"\nrest", 40)
	if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(message+" "+command+" rest"), " ") {
		t.Errorf("words changed: %q", got)
	}
	if !strings.HasSuffix(got, "\n"+command+"\nrest") {
		t.Errorf("the command was broken, or a line end was added: %q", got)
	}
	for l := range strings.Lines(strings.Replace(got, command, "", 1)) {
		if layout.TextWidth(strings.TrimSuffix(l, "\n")) > 40 {
			t.Errorf("%q is too wide", l)
		}
	}
}
