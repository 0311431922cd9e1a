package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
)

// Colours of a chart, dark enough to be told apart in print.
var (
	chartBlue   = color.NRGBA{0x0b, 0x53, 0x94, 0xff}
	chartRed    = color.NRGBA{0xb3, 0x14, 0x1c, 0xff}
	chartGreen  = color.NRGBA{0x1b, 0x6e, 0x3c, 0xff}
	chartAmber  = color.NRGBA{0x8a, 0x5a, 0x00, 0xff}
	lifelineInk = color.NRGBA{0xb0, 0xb8, 0xc1, 0xff}
	storeGround = color.NRGBA{0xe8, 0xee, 0xf4, 0xff}
	bandGround  = color.NRGBA{0xfd, 0xf3, 0xe1, 0xff}
	faultGround = color.NRGBA{0xfb, 0xe9, 0xe9, 0xff}
)

// Sequence draws a finding as a sequence chart: a lifeline per actor and store, a
// row per step with an arrow for the command and a dashed one for its reply,
// verdicts on the lifeline of who is told them, faults in red, the truth at the
// right. A finding without steps gives [ErrNothingToPlot].
func Sequence(finding *results.Finding) (*Plot, error) {
	if finding == nil || len(finding.Steps) == 0 {
		return nil, fmt.Errorf("%w: the finding has no steps", ErrNothingToPlot)
	}
	chart := layOut(finding)
	sheet := sheetOf(finding)
	sheet.width = vg.Length(chart.width)
	drawn := sheet.plot(vg.Length(chart.bottom), func(canvas draw.Canvas) {
		d := &drawing{canvas}
		d.bands(chart)
		d.lifelines(chart)
		for i := range chart.rows {
			d.row(chart, &chart.rows[i])
		}
		d.truths(chart)
		d.stored(chart)
	})
	top := drawn.height - drawn.foot - vg.Length(chart.bottom)
	for _, row := range chart.rows {
		drawn.steps = append(drawn.steps, float64((top+vg.Length(row.y+row.height))/drawn.height))
	}
	return drawn, nil
}

// drawing draws on a canvas by coordinates from its upper left corner, without the margin.
type drawing struct{ canvas draw.Canvas }

func (d *drawing) at(x, y float64) vg.Point {
	return vg.Point{X: d.canvas.Min.X - margin + vg.Length(x), Y: d.canvas.Max.Y - vg.Length(y)}
}

// The styles of a chart's text.
func plainText(c color.Color) draw.TextStyle { return textStyle(sansSize, c, false) }
func boldText(c color.Color) draw.TextStyle  { return textStyle(sansSize, c, true) }
func smallText(c color.Color) draw.TextStyle { return textStyle(11, c, false) }

func monoText(c color.Color) draw.TextStyle {
	style := textStyle(monoSize, c, false)
	style.Font = monoFont(monoSize)
	return style
}

// text sets a line on its baseline, from, around or up to x.
func (d *drawing) text(x, y float64, align text.XAlignment, style draw.TextStyle, line string) {
	d.canvas.FillText(aligned(style, align, text.YBottom), d.at(x, y), drawable(line))
}

// point and area are in points of the drawing, from its upper left corner.
type (
	point struct{ value, y float64 }
	area  struct{ value, y, width, height float64 }
)

// over sets a line, from or around a point, on a filled ground, which keeps it readable if it crosses lifelines.
func (d *drawing) over(p point, align text.XAlignment, style draw.TextStyle, ground color.Color, line string) {
	extents := style.FontExtents()
	w := float64(style.Width(drawable(line)))
	left := p.value
	if align == text.XCenter {
		left -= w / 2
	}
	d.box(area{left - 1, p.y - float64(extents.Ascent) + 1, w + 2, float64(extents.Ascent+extents.Descent) - 1}, ground,
		nil)
	d.text(p.value, p.y, align, style, line)
}

func (d *drawing) line(from, to point, stroke color.Color, width float64, dashes ...vg.Length) {
	a := d.at(from.value, from.y)
	b := d.at(to.value, to.y)
	d.canvas.StrokeLine2(draw.LineStyle{Color: stroke, Width: vg.Length(width), Dashes: dashes}, a.X, a.Y, b.X, b.Y)
}

// box fills a rectangle, and frames it if a stroke is given.
func (d *drawing) box(a area, fill, stroke color.Color) {
	right := a.value + a.width
	low := a.y + a.height
	corners := []vg.Point{d.at(a.value, a.y), d.at(right, a.y), d.at(right, low), d.at(a.value, low)}
	d.canvas.FillPolygon(fill, corners)
	if stroke != nil {
		d.canvas.StrokeLines(draw.LineStyle{Color: stroke, Width: 1}, append(corners, corners[0]))
	}
}

// headWidth is half the width of a lane's head.
func (l *lane) headWidth() float64 {
	widest := vg.Length(0)
	for _, h := range l.head {
		widest = max(widest, boldText(ink).Width(drawable(h)))
	}
	return float64(widest)/2 + 12
}

func (d *drawing) lifelines(c *chart) {
	for _, lane := range c.lanes {
		fill := white
		stroke := ink
		width := 1.0
		if lane.store != "" {
			fill = storeGround
			stroke = chartBlue
			width = 3
		}
		d.line(point{lane.value, headHeight}, point{lane.value, cmp.Or(lane.end, c.bottom)}, lifelineInk, width)
		half := lane.headWidth()
		d.box(area{lane.value - half, 0, 2 * half, headHeight}, fill, stroke)
		y := headHeight/2 + 4.5 - 7*float64(len(lane.head)-1)
		for i, h := range lane.head {
			style := boldText(ink)
			if i > 0 {
				style = smallText(ink)
			}
			d.text(lane.value, y+14*float64(i), text.XCenter, style, h)
		}
	}
	for _, span := range c.busy {
		d.box(area{c.lanes[span.lane].value - 4, span.from - 4, 8, span.to - span.from + 4}, white, faint)
	}
}

// ground of a row.
func (r *row) ground() color.Color {
	switch {
	case r.kind != markBand:
		return white
	case r.fault:
		return faultGround
	default:
		return bandGround
	}
}

func (d *drawing) bands(c *chart) {
	for _, row := range c.rows {
		if row.kind == markBand {
			d.box(area{leftMargin, row.y + 3, c.truth - truthWidth/2 - leftMargin, row.height - 6}, row.ground(), nil)
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
	d.text(16, r.middle(), text.XLeft, plainText(faint), fmt.Sprintf("T%d", r.step.Number))
	colour := chartBlue
	if r.fault {
		colour = chartRed
	}
	switch r.kind {
	case markBand:
		if !r.fault {
			colour = chartAmber
		}
		for i, l := range r.label {
			at := point{(leftMargin + c.truth - truthWidth/2) / 2, r.y + rowGap/2 + float64(i+1)*lineHeight + 2}
			d.over(at, text.XCenter, plainText(colour), r.ground(), l)
		}
		return
	case markNote:
		d.note(c, r, colour)
	case markCall, markBoth:
		d.label(c, r, r.label, r.arrow()-6, colour)
		d.arrow(c.lanes[r.lane].value, c.lanes[r.store].value, r.arrow(), colour, arrowStyle{broken: r.broken})
		if r.answer != "" {
			y := r.arrow() + lineHeight + 6
			d.label(c, r, []string{r.answer}, y-5, ink)
			d.arrow(c.lanes[r.store].value, c.lanes[r.lane].value, y, ink, arrowStyle{dashed: true})
		}
	case markReply:
		if !r.fault {
			colour = ink
		}
		d.label(c, r, r.label, r.arrow()-6, colour)
		d.arrow(c.lanes[r.store].value, c.lanes[r.lane].value, r.arrow(), colour, arrowStyle{true, r.broken})
	}
	if r.step.Outcome != "" {
		d.verdict(point{c.lanes[r.lane].value, r.pill()}, &r.step)
	}
}

// label sets lines next to the actor's lifeline, on the side of the store, the
// last one at y.
func (d *drawing) label(c *chart, r *row, lines []string, y float64, colour color.Color) {
	value := c.lanes[r.lane].value + labelRoom
	align := text.XLeft
	if c.lanes[r.store].value < c.lanes[r.lane].value {
		value = c.lanes[r.lane].value - labelRoom
		align = text.XRight
	}
	for i, l := range lines {
		d.text(value, y-float64(len(lines)-1-i)*lineHeight, align, monoText(colour), l)
	}
}

// arrowStyle says whether an arrow is a reply, and whether it is lost on the way.
type arrowStyle struct{ dashed, broken bool }

// arrow draws from one lifeline to another, or half the way and a cross.
func (d *drawing) arrow(from, to, y float64, colour color.Color, style arrowStyle) {
	dir := math.Copysign(1, to-from)
	from += 4 * dir
	to -= 4 * dir
	var dashes []vg.Length
	if style.dashed {
		dashes = []vg.Length{5, 3}
	}
	if style.broken {
		to = from + (to-from)*0.55
		d.line(point{from, y}, point{to, y}, colour, 1.3, dashes...)
		d.cross(to+5*dir, y, colour)
		return
	}
	d.line(point{from, y}, point{to - 5*dir, y}, colour, 1.3, dashes...)
	d.canvas.FillPolygon(colour, []vg.Point{d.at(to, y), d.at(to-8*dir, y-4), d.at(to-8*dir, y+4)})
}

func (d *drawing) cross(x, y float64, colour color.Color) {
	d.line(point{x - 5, y - 5}, point{x + 5, y + 5}, colour, 2.2)
	d.line(point{x - 5, y + 5}, point{x + 5, y - 5}, colour, 2.2)
}

// note marks a step that is no command.
func (d *drawing) note(c *chart, r *row, colour color.Color) {
	value := c.lanes[r.lane].value
	y := r.y + rowGap/2 + lineHeight/2 + 1
	if r.ends {
		y = r.y + r.height/2
		d.cross(value, y, chartRed)
		d.over(point{value + 14, y + 4}, text.XLeft, boldText(chartRed), white, r.label[0])
		return
	}
	if !r.fault {
		colour = faint
		d.canvas.DrawGlyphNoClip(draw.GlyphStyle{Color: white, Radius: 3.5, Shape: draw.CircleGlyph{}}, d.at(value, y))
		d.canvas.DrawGlyphNoClip(draw.GlyphStyle{Color: faint, Radius: 3.5, Shape: draw.RingGlyph{}}, d.at(value, y))
	}
	for i, l := range r.label {
		d.over(point{value + labelRoom, y + 4 + float64(i)*lineHeight}, text.XLeft, plainText(colour), white, l)
	}
}

// verdict is what a caller is told.
func (d *drawing) verdict(at point, step *results.Step) {
	colour := chartAmber
	switch step.Told {
	case codes.ToldAdmitted:
		colour = chartGreen
	case codes.ToldError:
		colour = chartRed
	case codes.ToldRefunded, codes.ToldCommitted:
		colour = chartBlue
	}
	style := textStyle(11, colour, true)
	outcome := short(step.Outcome)
	half := float64(style.Width(drawable(outcome)))/2 + 10
	d.box(area{at.value - half, at.y, 2 * half, pillHeight}, white, colour)
	d.text(at.value, at.y+pillHeight-5.5, text.XCenter, style, outcome)
}

// truths fills the column at the right: what is in use after each step.
func (d *drawing) truths(c *chart) {
	d.text(c.truth, headHeight/2+4, text.XCenter, boldText(ink), "in use")
	before := int64(-1)
	for i := range c.rows {
		row := &c.rows[i]
		style := plainText(faint)
		switch {
		case row.step.InUse > row.step.Limit:
			style = boldText(chartRed)
		case row.step.InUse != before:
			style = plainText(ink)
		}
		before = row.step.InUse
		y := row.middle()
		if row.step.Outcome != "" { // which is what changes it
			y = row.pill() + pillHeight - 5.5
		}
		d.text(c.truth, y, text.XCenter, style, fmt.Sprintf("%d of %d", row.step.InUse, row.step.Limit))
	}
}

// stored fills the column behind the truth: what the steps leave in Redis.
func (d *drawing) stored(c *chart) {
	if c.stored == 0 {
		return
	}
	d.text(c.stored, headHeight/2+4, text.XLeft, boldText(ink), "then stored")
	for i := range c.rows {
		row := &c.rows[i]
		top := row.middle() - float64(len(row.stored)-1)*lineHeight/2
		for k, line := range row.stored {
			d.text(c.stored, top+float64(k)*lineHeight, text.XLeft, monoText(ink), line)
		}
	}
}
