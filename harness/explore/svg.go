package explore

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// Geometry of a sequence chart, in pixels.
const (
	laneWidth  = 300
	rowHeight  = 34
	leftMargin = 56
	headHeight = 70
	charsWide  = 46 // characters of a command that fit beside a lane
)

// WriteSVG draws a finding as a sequence chart: a lane per actor, a row per step,
// the truth at the right, faults in red.
func WriteSVG(w io.Writer, f *Finding) error {
	out := bufio.NewWriter(w)
	cols := f.actors()
	lanes := max(len(cols), 1)
	width := leftMargin + lanes*laneWidth + 110
	height := headHeight + len(f.Steps)*rowHeight + 24
	p := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) } // Flush tells of errors
	p(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, width, height, width, height)
	p(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	p(`<text x="12" y="22" font-size="15" font-weight="bold">%s: %s</text>`, html.EscapeString(string(f.Property)), html.EscapeString(f.Detail))
	for i, c := range cols {
		x := leftMargin + i*laneWidth
		p(`<text x="%d" y="52" font-weight="bold">%s</text>`, x-4, html.EscapeString(f.Columns[c]))
		p(`<line x1="%d" y1="58" x2="%d" y2="%d" stroke="#999"/>`, x, x, height-16)
	}
	truth := leftMargin + lanes*laneWidth
	p(`<text x="%d" y="52" font-weight="bold">in use</text>`, truth)
	for i, s := range f.Steps {
		y := headHeight + i*rowHeight + 12
		p(`<text x="12" y="%d" fill="#666">T%d</text>`, y+4, s.Number)
		lane := slices.Index(cols, s.Column)
		colour, text := "#0b62a4", s.text()
		switch {
		case lane < 0:
			colour, text = "#b35900", s.Actor+": "+text
			p(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-dasharray="6 4"/>`, leftMargin-14, y, truth-10, y, colour)
			lane, y = 0, y-4
		case s.Fault != "":
			colour = "#c00000"
			fallthrough
		default:
			p(`<circle cx="%d" cy="%d" r="4.5" fill="%s"/>`, leftMargin+lane*laneWidth, y, colour)
		}
		for j, line := range clip(wrap(text, charsWide), 2) {
			p(`<text x="%d" y="%d" fill="%s" font-size="11">%s</text>`, leftMargin+lane*laneWidth+10, y+4+12*j, colour, html.EscapeString(line))
		}
		fill := "#333"
		if s.InUse > s.Limit {
			fill = "#c00000"
		}
		p(`<text x="%d" y="%d" fill="%s">%d of %d</text>`, truth, headHeight+i*rowHeight+16, fill, s.InUse, s.Limit)
	}
	p(`</svg>`)
	return out.Flush()
}

// clip keeps n lines and says where more was.
func clip(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	lines = slices.Clone(lines[:n])
	lines[n-1] = strings.TrimRight(lines[n-1], " ") + " ..."
	return lines
}
