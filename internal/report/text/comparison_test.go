package text_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
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

// A comparison shows a new bug itself, once, and how to repeat it.
func TestComparisonShowsTheSchedule(t *testing.T) {
	steps := []results.Step{
		{Number: 1, Actor: "A", Role: codes.RoleClient, Event: codes.EventCommand, Command: "GET k", Reply: "0", Limit: 1},
		{Number: 2, Actor: "A", Role: codes.RoleClient, Event: codes.EventCommand, Command: "SET k 2", Reply: "OK",
			Outcome: "admitted", InUse: 2, Limit: 1, Stored: []results.StoredKey{{Key: "k", Value: "2"}}},
	}
	search := func(properties ...results.Property) *results.Exploration {
		x := results.NewExploration()
		found := &results.Search{Strategy: "mine", Policy: "p", Unit: "calls", Claim: "nothing else", Runs: 3,
			Properties: []results.Property{"leak", "drift", "ttl"}}
		for _, property := range properties {
			found.Findings = append(found.Findings, results.Finding{Strategy: "mine", Property: property,
				Detail: "2 calls in use, the limit is 1", Steps: steps, Token: "qb2.token",
				Columns: []results.Column{{Name: "A", Role: codes.RoleClient}}})
		}
		x.Searches = []*results.Search{found}
		return &x
	}
	c, err := compare.Compare(compare.Side{Name: "base", Exploration: search()},
		compare.Side{Name: "head", Exploration: search("leak", "drift", "ttl")},
		compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := text.Comparison(&b, layout.Page{}, c); err != nil {
		t.Fatal(err)
	}
	for want, times := range map[string]int{
		"LEAK of mine in 2 steps: 2 calls in use, the limit is 1": 1, "SET k 2 = OK -> admitted": 1, "2, no ttl": 1,
		"explore --replay qb2.token": 1, "and 2 more findings of this strategy": 1, "counterexamples": 0, "FAIL: ": 1,
	} {
		if n := strings.Count(b.String(), want); n != times {
			t.Errorf("%q is there %d times, want %d, in\n%s", want, n, times, b.String())
		}
	}
}
