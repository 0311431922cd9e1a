package text_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// compared is a comparison in which a strategy with an odd name became slower.
func compared(t *testing.T) *compare.Comparison {
	t.Helper()
	base := fixture.New(10, fixture.Strategies[1], fixture.Strategies[3])
	head := fixture.New(10, fixture.Strategies[1], fixture.Strategies[3])
	for i := range base.Runs {
		if b, h := &base.Runs[i], &head.Runs[i]; b.Strategy == "incr-expire-atomic" {
			b.Params.Label = "a|b\n::error::x`*_[y](z)<script>@all"
			h.Params.Label = b.Params.Label
			h.ThroughputPerS /= 1.3
		}
	}
	c, err := compare.Compare(compare.Side{Name: "base", File: &base}, compare.Side{Name: "head", File: &head},
		compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComparison(t *testing.T) {
	c := compared(t)
	for name, x := range map[string]struct {
		write func(io.Writer, layout.Page, *compare.Comparison) error
		want  []string
	}{
		"text": {text.Comparison, []string{"FAIL: 1 figure fails", "throughput/reference", "-23.1 %",
			"10 and 10 rounds, p", "\nsame "}},
		"markdown": {text.ComparisonMarkdown, []string{"**FAIL: 1 figure fails", `| worse | a\|b ::error::x`, "&lt;script&gt;&#64;all |"}},
		"github": {text.ComparisonAnnotations,
			[]string{"::error title=quotabench::a|b ::error::x", "-23.1 %25", "::notice title=quotabench::FAIL"}},
	} {
		var b bytes.Buffer
		if err := x.write(&b, layout.Page{}, c); err != nil {
			t.Fatal(err)
		}
		for _, want := range x.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, b.String())
			}
		}
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "::error::") {
				t.Errorf("%s: a name became a command: %s", name, line)
			}
		}
	}
	if lines := text.FailureLines(c.Failed()); len(lines) != 1 || strings.Contains(lines[0], "\n") {
		t.Errorf("%q", lines)
	}
}
