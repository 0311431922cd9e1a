package plot

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text/layout"
)

// Colours of a chart, dark enough to be told apart in print.
const (
	inkHex   = "#1f2933"
	faintHex = "#7b8794"
	blueHex  = "#0b5394"
	redHex   = "#b3141c"
	greenHex = "#1b6e3c"
	amberHex = "#8a5a00"
	mono     = `font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="11"`
	banded   = "#fdf3e1"
)

// Sequence draws a finding as a sequence chart: a lifeline per actor and store, a
// row per step with an arrow for the command and a dashed one for its reply,
// verdicts on the lifeline of who is told them, faults in red, the truth at the
// right.
func Sequence(w io.Writer, f *results.Finding) error {
	c := layOut(f)
	d := &drawing{out: bufio.NewWriter(w)}
	d.p(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" font-family="DejaVu Sans, Verdana, Helvetica, Arial, sans-serif" font-size="12">`,
		c.width, c.height, c.width, c.height)
	d.p(`<title>%s</title>`, html.EscapeString(strings.Join(c.title, " ")))
	d.p(`<desc>%s</desc>`, html.EscapeString(strings.Join(append(c.subtitle, c.foot...), " ")))
	d.p(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	d.texts(c)
	d.bands(c)
	d.lifelines(c)
	for i := range c.rows {
		d.row(c, &c.rows[i])
	}
	d.truths(c)
	d.p(`</svg>`)
	return d.out.Flush()
}

// verbs say what a strategy does whose schedule breaks a property.
var verbs = map[results.Property]string{
	"leak": "leaks", "guarantee": "breaks its guarantee", "false-reject": "rejects wrongly", "drift": "drifts",
	"ttl": "leaves an immortal key", "stranded": "strands units", "negative": "counts below zero",
	"forgotten": "forgets", "stuck": "gets stuck", "deadlock": "deadlocks", "serialization-failure": "fails to serialize",
}

// addTexts wraps what stands above and below the chart to its width.
func (c *chart) addTexts(f *results.Finding) {
	verb, ok := verbs[f.Property]
	if !ok {
		verb = "breaks " + string(f.Property)
	}
	headline := fmt.Sprintf("%s %s: %s", f.Strategy, verb, f.Detail)
	// Two lanes are narrow; the text above them need not be as narrow.
	c.width = max(c.width, 560)
	chars := func(size float64) int { return int((c.width - 32) / size) }
	c.title = layout.Wrap(headline, chars(10.1))
	faults := "no fault"
	if len(f.Faults) > 0 {
		names := make([]string, len(f.Faults))
		for i, x := range f.Faults {
			names[i] = string(x)
		}
		faults = "faults: " + strings.Join(names, ", ")
	}
	c.subtitle = layout.Wrap(fmt.Sprintf("the shortest schedule found: %s under the policy %s, %s", steps(len(f.Steps)), f.Policy, faults), chars(sansChar))
	if f.Token != "" {
		c.foot = layout.Wrap("quotabench explore --replay "+f.Token, chars(monoChar))
	}
}

// drawing writes elements; its Flush tells of errors.
type drawing struct{ out *bufio.Writer }

func (d *drawing) p(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *drawing) text(x, y float64, anchor, fill, more, text string) {
	d.p(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" %s>%s</text>`, x, y, anchor, fill, more, html.EscapeString(text))
}

func (d *drawing) line(x1, y1, x2, y2 float64, stroke, more string) {
	d.p(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" %s/>`, x1, y1, x2, y2, stroke, more)
}

func (d *drawing) texts(c *chart) {
	y := 30.0
	for _, l := range c.title {
		d.text(16, y, "start", inkHex, `font-size="16" font-weight="bold"`, l)
		y += 20
	}
	for _, l := range c.subtitle {
		d.text(16, y, "start", faintHex, "", l)
		y += 16
	}
	for i, l := range c.foot {
		d.text(16, c.bottom+22+14*float64(i), "start", faintHex, mono, l)
	}
}

func (d *drawing) lifelines(c *chart) {
	for _, l := range c.lanes {
		end := c.bottom
		if l.end > 0 {
			end = l.end
		}
		more := `stroke-width="1"`
		if l.store != "" {
			more = `stroke-width="3"`
		}
		d.line(l.x, c.top+headHeight, l.x, end, "#b0b8c1", more)
		wide := 0
		for _, h := range l.head {
			wide = max(wide, len(h))
		}
		half := float64(wide)*7.9/2 + 12
		fill, stroke := "#ffffff", inkHex
		if l.store != "" {
			fill, stroke = "#e8eef4", blueHex
		}
		d.p(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="3" fill="%s" stroke="%s"/>`, l.x-half, c.top, 2*half, headHeight, fill, stroke)
		y := c.top + headHeight/2 + 4.5 - 7*float64(len(l.head)-1)
		for i, h := range l.head {
			more := `font-weight="bold"`
			if i > 0 {
				more = `font-size="11"`
			}
			d.text(l.x, y+14*float64(i), "middle", inkHex, more, h)
		}
	}
	for _, s := range c.busy {
		x := c.lanes[s.lane].x
		d.p(`<rect x="%.1f" y="%.1f" width="8" height="%.1f" fill="#ffffff" stroke="%s"/>`, x-4, s.from-4, s.to-s.from+4, faintHex)
	}
}

func (d *drawing) bands(c *chart) {
	for _, r := range c.rows {
		if r.kind == markBand {
			fill := banded
			if r.fault {
				fill = "#fbe9e9"
			}
			d.p(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, leftMargin, r.y+3, c.truth-truthWidth/2-leftMargin, r.height-6, fill)
		}
	}
}

// middle is the line that the step's number stands on.
func (r *row) middle() float64 {
	if r.kind == markBand || r.kind == markNote {
		return r.y + r.height/2 + 4
	}
	return r.arrow() + 4
}

// row draws what a step is about.
func (d *drawing) row(c *chart, r *row) {
	d.text(16, r.middle(), "start", faintHex, "", fmt.Sprintf("T%d", r.step.Number))
	colour := blueHex
	if r.fault {
		colour = redHex
	}
	switch r.kind {
	case markBand:
		if !r.fault {
			colour = amberHex
		}
		for i, l := range r.label {
			d.text((leftMargin+c.truth-truthWidth/2)/2, r.y+rowGap/2+float64(i+1)*lineHeight+2, "middle", colour, `font-style="italic"`+halo, l)
		}
		return
	case markNote:
		d.note(c, r, colour)
	case markCall, markBoth:
		d.label(c, r, r.label, r.arrow()-6, colour)
		d.arrow(c.lanes[r.lane].x, c.lanes[r.store].x, r.arrow(), colour, false, r.broken)
		if r.answer != "" {
			y := r.arrow() + lineHeight + 6
			d.label(c, r, []string{r.answer}, y-5, inkHex)
			d.arrow(c.lanes[r.store].x, c.lanes[r.lane].x, y, inkHex, true, false)
		}
	case markReply:
		if !r.fault {
			colour = inkHex
		}
		d.label(c, r, r.label, r.arrow()-6, colour)
		d.arrow(c.lanes[r.store].x, c.lanes[r.lane].x, r.arrow(), colour, true, r.broken)
	}
	if r.step.Outcome != "" {
		d.verdict(c.lanes[r.lane].x, r.pill(), r.step.Outcome)
	}
}

// halo keeps text readable where it crosses a line.
const halo = ` stroke="#ffffff" stroke-width="3" paint-order="stroke" stroke-linejoin="round"`

// label sets lines beside the actor's lifeline, on the side of the store, the last
// one at y.
func (d *drawing) label(c *chart, r *row, lines []string, y float64, colour string) {
	x, anchor := c.lanes[r.lane].x+labelRoom, "start"
	if c.lanes[r.store].x < c.lanes[r.lane].x {
		x, anchor = c.lanes[r.lane].x-labelRoom, "end"
	}
	for i, l := range lines {
		d.text(x, y-float64(len(lines)-1-i)*lineHeight, anchor, colour, mono, l)
	}
}

// arrow draws from one lifeline to another, or half the way and a cross.
func (d *drawing) arrow(from, to, y float64, colour string, dashed, broken bool) {
	dir := 1.0
	if to < from {
		dir = -1
	}
	from += 4 * dir
	to -= 4 * dir
	more := `stroke-width="1.3"`
	if dashed {
		more += ` stroke-dasharray="5 3"`
	}
	if broken {
		to = from + (to-from)*0.55
		d.line(from, y, to, y, colour, more)
		d.cross(to+5*dir, y, colour)
		return
	}
	d.line(from, y, to-5*dir, y, colour, more)
	d.p(`<path d="M%.1f %.1f L%.1f %.1f L%.1f %.1f Z" fill="%s"/>`, to, y, to-8*dir, y-4, to-8*dir, y+4, colour)
}

func (d *drawing) cross(x, y float64, colour string) {
	d.line(x-5, y-5, x+5, y+5, colour, `stroke-width="2.2"`)
	d.line(x-5, y+5, x+5, y-5, colour, `stroke-width="2.2"`)
}

// note marks a step that is no command.
func (d *drawing) note(c *chart, r *row, colour string) {
	x, y := c.lanes[r.lane].x, r.y+rowGap/2+lineHeight/2+1
	if r.ends {
		y = r.y + r.height/2
		d.cross(x, y, redHex)
		d.text(x+14, y+4, "start", redHex, `font-weight="bold"`+halo, r.label[0])
		return
	}
	if !r.fault {
		colour = faintHex
		d.p(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="#ffffff" stroke="%s"/>`, x, y, faintHex)
	}
	for i, l := range r.label {
		d.text(x+labelRoom, y+4+float64(i)*lineHeight, "start", colour, halo, l)
	}
}

// verdict is what a caller is told.
func (d *drawing) verdict(x, y float64, text string) {
	colour := amberHex
	switch {
	case strings.HasPrefix(text, "admitted"):
		colour = greenHex
	case strings.HasPrefix(text, "error"):
		colour = redHex
	case strings.HasPrefix(text, "refunded"), strings.HasPrefix(text, "committed"):
		colour = blueHex
	}
	text = short(text)
	half := float64(len(text))*sansChar/2 + 9
	d.p(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="9" fill="#ffffff" stroke="%s"/>`, x-half, y, 2*half, pillHeight, colour)
	d.text(x, y+pillHeight-5.5, "middle", colour, `font-weight="bold" font-size="11"`, text)
}

// truths fills the column at the right: what is in use after each step.
func (d *drawing) truths(c *chart) {
	d.text(c.truth, c.top+headHeight/2+4, "middle", inkHex, `font-weight="bold"`, "in use")
	before := int64(-1)
	for i := range c.rows {
		r := &c.rows[i]
		fill, more := faintHex, ""
		switch {
		case r.step.InUse > r.step.Limit:
			fill, more = redHex, `font-weight="bold"`
		case r.step.InUse != before:
			fill = inkHex
		}
		before = r.step.InUse
		y := r.middle()
		if r.step.Outcome != "" { // which is what changes it
			y = r.pill() + pillHeight - 5.5
		}
		d.text(c.truth, y, "middle", fill, more, fmt.Sprintf("%d of %d", r.step.InUse, r.step.Limit))
	}
}

// steps is a number of steps in words.
func steps(n int) string {
	if n == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}
