package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// The line fits whatever the width, and says what is left as far as that follows from
// what is done.
func TestProgressLine(t *testing.T) {
	now := int64(0)
	p := NewProgress(&bytes.Buffer{})
	p.now = func() int64 { return now }
	p.began = 0
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
		now = int64(c.passed)
		p.state = c.state
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

// TestProgressInAPipe: a line is written every 10 seconds at most, each step if that is wanted,
// and nothing but messages by a quiet one.
func TestProgressInAPipe(t *testing.T) {
	const last = "[2/2] round 2 of 2: incr-expire\n"
	for want, detail := range map[string][2]bool{
		"warning: full\n" + last: {}, "warning: full\n": {true, false},
		"[1/2] round 1 of 2: incr-expire\nwarning: full\n" + last: {false, true},
	} {
		var out bytes.Buffer
		now := int64(0)
		p := NewProgress(&out)
		p.now = func() int64 { return now }
		p.Detail(detail[0], detail[1])
		p.Begin(2)
		now += int64(5 * time.Second)
		p.Running("incr-expire", 1, 2)
		p.Line("warning: full")
		now += int64(5 * time.Second)
		p.Running("incr-expire", 2, 2)
		p.End()
		if out.String() != want {
			t.Errorf("%v: got %q, want %q", detail, out.String(), want)
		}
	}
}

// TestProgressOfFilling: what takes long before a step is said now and then.
func TestProgressOfFilling(t *testing.T) {
	var out bytes.Buffer
	now := int64(0)
	p := NewProgress(&out)
	p.now = func() int64 { return now }
	p.Begin(2)
	for n, passed := range []time.Duration{time.Second, 26 * time.Second} {
		p.Running("lib", n+1, 2)
		for i := range 5 {
			now += int64(passed) / 5
			p.Filling(float64(i+1) / 5)
		}
	}
	want := `2 of 2  round 2 of 2: lib, setting subjects up: 40 %, 11s, about 11s left
2 of 2  round 2 of 2: lib, setting subjects up: 80 %, 22s, about 22s left
`
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// fakeScreen is a terminal of unknown size.
type fakeScreen struct{ bytes.Buffer }

func (*fakeScreen) Fd() uintptr { return ^uintptr(0) }

// TestProgressAbove: lines stand above the one that is rewritten, are replaced by those that are
// shown next, and go with it at the end.
func TestProgressAbove(t *testing.T) {
	var out fakeScreen
	p := NewProgress(&out)
	p.tty = &out
	p.now = func() int64 { return 0 }
	p.began = 0
	p.Running("lib", 1, 2)
	above := func(lines ...string) {
		p.Above(func(layout.Page) []string { return lines })
	}
	above("one", "two\x1b[2J")
	above("three")
	out.Reset()
	p.Line("warning: full")
	const line = "round 1 of 2: lib  0s\x1b[K\x1b[J"
	want := "\r\x1b[1A\x1b[Jwarning: full\n\rthree\x1b[K\n" + line
	if out.String() != want {
		t.Errorf("a message: got %q, want %q", out.String(), want)
	}
	out.Reset()
	above("one", "two\x1b[2J")
	want = "\r\x1b[1Aone\x1b[K\ntwo\\u001b[2J\x1b[K\n" + line
	if out.String() != want {
		t.Errorf("other lines: got %q, want %q", out.String(), want)
	}
	out.Reset()
	p.End()
	above("late")
	want = "\r\x1b[2A\x1b[J"
	if out.String() != want {
		t.Errorf("the end: got %q, want %q", out.String(), want)
	}
}
