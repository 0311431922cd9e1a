package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"
)

// The line fits whatever the width, and says what is left as far as that follows from
// what is done.
func TestProgressLine(t *testing.T) {
	now := int64(0)
	p := NewProgress(&bytes.Buffer{})
	p.now, p.began = func() int64 { return now }, 0
	p.Begin(4)
	for _, c := range []struct {
		passed time.Duration
		state  Status
		want   string
	}{
		{0, Status{Text: "first"}, "first  0s"},
		{30 * time.Second, Status{Text: "half of it", Share: 0.25}, "half of it  30s, about 1m30s left"},
		{30 * time.Second, Status{Text: "bounded", Share: 0.25, Most: 10 * time.Second}, "about 10s left"},
		{2 * time.Second, Status{Text: "a search", Most: 28 * time.Second}, "2s, at most 28s left"},
		{time.Hour, Status{Text: strings.Repeat("漢字", 60), Share: 0.5}, "about 1h0m0s left"},
		{time.Second, Status{Text: "\x1b[31mred", Share: 0.5}, `\u001b[31mred`},
	} {
		now, p.state = int64(c.passed), c.state
		for _, width := range []int{79, 119, 199} {
			got := p.render(width)
			if uniseg.StringWidth(got) > width {
				t.Errorf("%d cells of %d: %q", uniseg.StringWidth(got), width, got)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%q does not say %q", got, c.want)
			}
		}
	}
}

// Where there is no terminal, each step is a line, and nothing is rewritten.
func TestProgressInAPipe(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	p.Begin(2)
	p.Running("incr-expire", 1, 2)
	p.Line("warning: full")
	p.Running("incr-expire", 2, 2)
	p.End()
	want := "[1/2] round 1 of 2: incr-expire\nwarning: full\n[2/2] round 2 of 2: incr-expire\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestProgressOfFilling: what takes long before a step is said now and then, and its end if its beginning was.
func TestProgressOfFilling(t *testing.T) {
	var out bytes.Buffer
	now := int64(0)
	p := NewProgress(&out)
	p.now, p.began = func() int64 { return now }, 0
	p.Begin(2)
	for n, passed := range []time.Duration{time.Second, 15 * time.Second} {
		p.Running("lib", n+1, 2)
		for i := range 5 {
			now += int64(passed) / 5
			p.Filling(float64(i+1) / 5)
		}
	}
	want := `[1/2] round 1 of 2: lib
[2/2] round 2 of 2: lib
2 of 2  round 2 of 2: lib, setting subjects up: 80 %, 13s, about 13s left
2 of 2  round 2 of 2: lib, subjects are set up, 16s, about 16s left
`
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
