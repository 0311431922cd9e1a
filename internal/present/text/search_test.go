package text

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// A find of a library says under which limit and window it was made, in words; that of a
// strategy with a policy of its own does not.
func TestSearchSaysThePolicy(t *testing.T) {
	const words = "found with a limit of 1 request refilling 2 per 3s"
	for window, finds := range map[string]bool{"refilling 2 per 3s": true, "": true, "per fixed 1h": false} {
		r := &results.Search{Strategy: "mine", Policy: "1-request-refilling-2-per-3s", Limit: 1, Unit: "requests", Window: window}
		if finds {
			r.Findings = []results.Finding{{Property: "leak", Detail: "2 requests in use"}}
		}
		var b bytes.Buffer
		if err := Search(&b, layout.Page{}, r); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		if got := strings.Contains(text, words); got != (finds && window != "") || !strings.Contains(text, strings.TrimSpace("with a limit of 1 request "+window)) {
			t.Errorf("window %q:\n%s", window, &b)
		}
	}
}
