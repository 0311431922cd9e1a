package layout

import (
	"slices"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/document"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"one two three", 7, "one two|three"},
		{"one two three", 13, "one two three"},
		{"(≤ 0.20 %)", 9, "(≤|0.20 %)"},
		{"a:b=literal,c=job", 12, "a:b=literal,|c=job"},
		{"unbreakable", 4, "unbr|eaka|ble"},
		{"of usr/bin", 9, "of usr/|bin"},
		{"is n/m here", 6, "is n/m|here"},
		{"it is n/m", 8, "it is|n/m"},
		{"20 requests/s (modelled)", 12, "20|requests/s|(modelled)"},
		{"at 20 requests/s", 15, "at 20|requests/s"},
		{"配额检查", 4, "配额|检查"},
		{"", 5, ""},
	} {
		if got := strings.Join(Wrap(c.in, c.width), "|"); got != c.want {
			t.Errorf("wrap %q at %d: %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestGridOptional(t *testing.T) {
	g := document.Table{Columns: []document.Column{{Title: "a", Left: true}, {Title: "b", Optional: true, Over: "gone"},
		{Title: "c", Optional: true, Over: "both of them"}, {Title: "d", Over: "both of them"}}}
	g.Add("x", "", "", "1")
	g.AddRule()
	g.Add("y", "", "2", "3")
	want := []string{"   ┈ both of them ┈", "a  c              d",
		"───────────────────", "x  -              1",
		"───────────────────", "y  2              3"}
	if got := (Page{Width: 40}).Table(&g); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// If not all columns fit, further ones stand below, next to the first one again;
// numbers and words stay whole.
func TestGridInPanels(t *testing.T) {
	g := document.Table{Columns: []document.Column{
		{Title: "strategy", Left: true, Flexible: true, Minimum: 10}, {Title: "a title of words"},
		{Title: "p50", Over: "service"}, {Title: "p99", Over: "service"}, {Title: "why", Left: true, Flexible: true},
	}}
	g.Add("three-tier:lag=0s,batch=256", "12,345,678", "1.5 ms", "1,234.5 ms", "a reason of some words")
	got := (Page{Width: 30}).Table(&g)
	for _, l := range got {
		if TextWidth(l) > 30 {
			t.Errorf("%d cells: %s", TextWidth(l), l)
		}
	}
	all := strings.Join(got, "\n")
	for _, whole := range []string{"three-tier:", "batch=256", "12,345,678", "1,234.5 ms", "of words", "reason"} {
		if !strings.Contains(all, whole) {
			t.Errorf("%q is broken in\n%s", whole, all)
		}
	}
	if n := strings.Count(all, "strategy"); n < 2 {
		t.Errorf("%d tables, want more:\n%s", n, all)
	}
	if wide := (Page{Width: 200}).Table(&g); len(wide) != 4 {
		t.Errorf("with room for all it takes %d lines", len(wide))
	}
}
