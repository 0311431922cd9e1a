package text

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// TestFaults: each strategy has a table of its own, with a row for each fault, the figures under their names, and the
// reasons.
func TestFaults(t *testing.T) {
	shown := func(leak string) (out []claims.Shown) {
		for _, key := range figures.Table("faults") {
			out = append(out, claims.Shown{Key: key})
		}
		out[0].Text, out[4].Text, out[6].Text = leak, "~2.80 ms", "1.40 ms"
		out[4].Disturbed = true
		return out
	}
	r := &claims.Report{Claims: []claims.Judgement{
		{Record: "away", ID: "a", Verdict: claims.Refuted, Why: "it admits", Measured: "leak 12", Figures: shown("12")},
		{Record: "away", ID: "b", Verdict: claims.Holds, Figures: shown("0")},
		{Record: "late", ID: "a", Verdict: claims.Undecided, Close: true, Why: "no run"},
	}}
	var text, markdown bytes.Buffer
	if err := errors.Join(Faults(&text, layout.Page{}, r), ClaimsMarkdown(&markdown, r)); err != nil {
		t.Fatal(err)
	}
	want := `away refuted 12 ~2.80 ms 1.40 ms
late undecided, close - -
away: it admits
late: no run
b
away holds 0 ~2.80 ms 1.40 ms
What strategies declare: 1 refuted, 1 undecided, 1 holds. 1 close: another pass may decide otherwise. ~ something else than the strategy had a part in it, e.g. runs made at the same time (--parallel).`
	got := strings.Join(strings.Fields(text.String()), " ")
	for _, line := range strings.Split(want, "\n") {
		if _, rest, ok := strings.Cut(got, line); ok {
			got = rest
		} else {
			t.Errorf("it lacks %q in its place:\n%s", line, &text)
		}
	}
	if !strings.Contains(markdown.String(), "| a | refuted |") ||
		!strings.Contains(markdown.String(), "leak 12; it admits") {
		t.Errorf("in Markdown:\n%s", &markdown)
	}
}
