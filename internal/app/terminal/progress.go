package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rivo/uniseg"
	"golang.org/x/term"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// Progress shows how far a command has come: a line that is rewritten on a terminal, with what
// is known so far above it, and a line every 10 seconds elsewhere. Its methods may be called from
// several goroutines.
type Progress struct {
	w   io.Writer
	tty screen // nil if w is no terminal
	now func() int64

	quiet, verbose bool

	mu    sync.Mutex
	steps int           // in all; 0 if that is not known
	most  time.Duration // for all of them; 0 if that is not known
	begun int
	state Status
	began int64    // when the first step began, in nanoseconds
	told  int64    // when the step began, or when its filling was last shown
	wrote int64    // when the last line was written, or when the first step began
	above []string // stands above the line
	drawn int      // lines that are on the terminal
	ended bool
}

// screen is a terminal.
type screen interface {
	io.Writer
	Fd() uintptr
}

// Status is one moment of a command that takes long.
type Status struct {
	// Text says what goes on, in one line.
	Text string
	// Doing is what comes first in a step; empty for nothing.
	Doing string
	// Share of the whole that is done, 0 to 1; 0 if it is not known.
	Share float64
	// Most is how long it takes at most from now on; 0 if that is not known. If
	// Share is known, too, what follows from that is shown.
	Most time.Duration
}

// How often a status is shown: on a terminal, and elsewhere.
const (
	redraw = 250 * time.Millisecond
	report = 10 * time.Second
)

// NewProgress writes to w.
func NewProgress(w io.Writer) *Progress {
	progress := &Progress{w: w, now: clock.Nano}
	if file, ok := of(w); ok && os.Getenv("TERM") != "dumb" {
		progress.tty = file
	}
	progress.began = progress.now()
	progress.wrote = progress.began
	return progress
}

// Detail has nothing of the progress shown, but messages, or, if not on a terminal, each step
// of a measurement.
func (p *Progress) Detail(quiet, verbose bool) {
	p.quiet = quiet
	p.verbose = verbose
}

// Begin says how many steps there will be.
func (p *Progress) Begin(steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps, p.began = steps, p.now()
	p.wrote = p.began
}

// Within says how long all steps take at most.
func (p *Progress) Within(most time.Duration) { p.most = most }

// Running says that the next step of a measurement begins. Steps before it have ended.
func (p *Progress) Running(strategy string, round, rounds int) {
	text := fmt.Sprintf("round %d of %d: %s", round, rounds, strategy)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	p.state, p.told = Status{Text: text}, p.now()
	if p.most > 0 {
		p.state.Most = max(1, p.most-time.Duration(p.now()-p.began))
	}
	if p.steps > 0 {
		p.state.Share = float64(p.begun-1) / float64(p.steps)
	}
	switch {
	case p.tty != nil:
		p.draw()
	case p.verbose || p.due():
		fmt.Fprintf(p.w, "[%d/%d] %s\n", p.begun, p.steps, text)
	}
}

// due reports whether a line may be written, and takes it that it is.
func (p *Progress) due() bool {
	now := p.now()
	if p.quiet || now-p.wrote < int64(report) {
		return false
	}
	p.wrote = now
	return true
}

// Filling says now and then which share of the subjects is set up for the step.
func (p *Progress) Filling(share float64) {
	p.mu.Lock()
	status := p.state
	now := p.now()
	due := now-p.told >= int64(p.every())
	if share >= 1 {
		due = status.Doing != ""
		status.Doing = "subjects are set up"
	} else {
		status.Doing = fmt.Sprintf("setting subjects up: %.0f %%", 100*share)
	}
	if due {
		p.told = now
	}
	p.mu.Unlock()
	if due {
		p.show(status)
	}
}

// every is how often a status is shown.
func (p *Progress) every() time.Duration {
	if p.tty == nil {
		return report
	}
	return redraw
}

// Watch shows what read says, now and then, until the returned function is called.
// If not on a terminal, it waits for a while first, so that what is over soon leaves
// no line.
func (p *Progress) Watch(read func() Status) (stop func()) {
	return clock.Aside(func(wait func(time.Duration) bool) {
		for wait(p.every()) {
			p.show(read())
		}
	})
}

// show shows a status.
func (p *Progress) show(status Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = status
	if p.ended {
		return
	}
	switch {
	case p.tty != nil:
		p.draw()
	case p.verbose || p.due():
		fmt.Fprintln(p.w, strings.Join(p.parts(), ", "))
	}
}

// Above shows lines above the line that is rewritten, in place of those that were there. Elsewhere
// than on a terminal, and on one with little room, render is not called.
func (p *Progress) Above(render func(layout.Page) []string) {
	if p.tty == nil || p.quiet {
		return
	}
	width, height := p.size()
	if width <= leastPage {
		return
	}
	lines := render(layout.Page{Width: width - 1, Colour: Coloured(p.w)})
	lines = lines[:min(len(lines), max(0, height-2))]
	for i, text := range lines {
		lines[i] = layout.Painted(text, format.Visible)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.above = lines
	if !p.ended {
		p.draw()
	}
}

// Line prints a message without leaving half a line behind.
func (p *Progress) Line(text string) { fmt.Fprintln(p, text) }

// Write implements [io.Writer] for messages.
func (p *Progress) Write(data []byte) (n int, err error) {
	p.Aside(func() { n, err = p.w.Write(data) })
	return n, err
}

// Aside has f write to the terminal in place of the line, which comes back afterwards.
func (p *Progress) Aside(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.drawn > 0
	p.clear()
	f()
	if again {
		p.draw()
	}
}

// End removes the line for good, and what stands above it.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.ended = true
}

// clear removes what is drawn. What cannot be drawn is not worth a run.
func (p *Progress) clear() {
	if p.drawn > 0 {
		fmt.Fprint(p.tty, p.top()+eraseBelow)
		p.drawn = 0
	}
}

// What a terminal obeys.
const (
	eraseLine  = "\x1b[K"
	eraseBelow = "\x1b[J"
)

// top moves the cursor to where the drawing begins.
func (p *Progress) top() string {
	if p.drawn < 2 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", p.drawn-1)
}

// draw writes the line, and what stands above it, over what was drawn before.
func (p *Progress) draw() {
	if p.quiet {
		return
	}
	width, _ := p.size()
	var builder strings.Builder
	builder.WriteString(p.top())
	for _, text := range p.above {
		builder.WriteString(text + eraseLine + "\n")
	}
	builder.WriteString(p.render(width-1) + eraseLine + eraseBelow)
	fmt.Fprint(p.tty, builder.String())
	p.drawn = len(p.above) + 1
}

// size of the terminal, in cells.
func (p *Progress) size() (width, height int) {
	width, height, err := term.GetSize(int(p.tty.Fd()))
	if err != nil || width < 20 {
		return 80, 24
	}
	return width, height
}

// barWidth is the width of the bar, in cells.
const barWidth = 20

// render is the line of at most width cells.
func (p *Progress) render(width int) string {
	parts := p.parts()
	times := strings.Join(parts[1:], ", ")
	head := ""
	if p.state.Share > 0 || p.steps > 0 {
		full := min(barWidth, int(p.state.Share*barWidth+0.5))
		head = strings.Repeat("█", full) + strings.Repeat("░", barWidth-full) + " "
	}
	if uniseg.StringWidth(head+parts[0]+times)+2 > width {
		head = "" // what goes on matters more
	}
	room := max(8, width-uniseg.StringWidth(head)-uniseg.StringWidth(times)-2)
	return head + cropped(parts[0], room) + "  " + times
}

// parts are what is said: what goes on, for how long, and how long it will.
func (p *Progress) parts() []string {
	text := format.Visible(p.state.Text)
	if p.state.Doing != "" {
		text += ", " + p.state.Doing
	}
	if p.steps > 0 && p.begun > 0 {
		text = fmt.Sprintf("%d of %d  %s", min(p.begun, p.steps), p.steps, text)
	}
	passed := time.Duration(p.now() - p.began)
	parts := []string{text, shortTime(passed)}
	if left := p.left(passed); left != "" {
		parts = append(parts, left)
	}
	return parts
}

// left says how long it takes from now on: as long for what is to be done as it took
// for what is.
func (p *Progress) left(passed time.Duration) string {
	const enough = 0.02 // of the whole, to tell from
	status := p.state
	switch {
	case status.Share >= enough:
		rest := time.Duration(float64(passed) * (1 - status.Share) / status.Share)
		if status.Most > 0 {
			rest = min(rest, status.Most)
		}
		return "about " + shortTime(rest) + " left"
	case status.Most > 0:
		return "at most " + shortTime(status.Most) + " left"
	default:
		return ""
	}
}

// shortTime is a time to the second, e.g. 1m20s.
func shortTime(duration time.Duration) string { return duration.Round(time.Second).String() }

// cropped is a text of at most width cells.
func cropped(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var builder strings.Builder
	used := 0
	for graphemes := uniseg.NewGraphemes(text); graphemes.Next(); {
		used += graphemes.Width()
		if used > width-1 {
			break
		}
		builder.WriteString(graphemes.Str())
	}
	return builder.String() + "…"
}
