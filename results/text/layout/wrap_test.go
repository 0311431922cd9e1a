package layout

import (
	"slices"
	"strings"
	"testing"
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
		{"配额检查", 4, "配额|检查"},
		{"", 5, ""},
	} {
		if got := strings.Join(Wrap(c.in, c.width), "|"); got != c.want {
			t.Errorf("wrap %q at %d: %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestGridOptional(t *testing.T) {
	g := Grid{Columns: []Column{{Title: "a", Left: true}, {Title: "b", Optional: true, Over: "gone"}, {Title: "c", Optional: true, Over: "both of them"}, {Title: "d", Over: "both of them"}}}
	g.Add("x", "", "", "1")
	g.AddRule()
	g.Add("y", "", "2", "3")
	want := []string{"   ┈ both of them ┈", "a  c              d", "───────────────────", "x  -              1", "───────────────────", "y  2              3"}
	if got := g.Lines(40); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
