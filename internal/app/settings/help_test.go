package settings

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// Lists in help texts keep their columns at every width.
func TestReflowedLists(t *testing.T) {
	text := "Prose that\nis one.\n\nPlots:\n  latency      latency by percentile, of each\n               strategy\n  " +
		"leak         leak\n\n  kept as it is"
	got := strings.Join(reflowed(layout.Page{Width: 40}, text), "\n")
	want := "Prose that is one.\n\nPlots:\n  latency      latency by percentile, of\n               each strategy\n  " +
		"leak         leak\n\n  kept as it is"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
