package plot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image/png"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// ErrNothingToPlot is returned if no run has the figures that a plot shows.
var ErrNothingToPlot = errors.New("nothing to plot")

// Plot is a drawing of a fixed size, ready to be rendered. The same results give
// the same bytes.
type Plot struct {
	title string
	// desc says what the drawing shows, with its main figures, to those who cannot see it.
	desc          string
	width, height vg.Length
	// foot is the height of what stands below the body.
	foot  vg.Length
	paint func(canvas draw.Canvas)
	steps []float64
}

// Title is what stands above the drawing.
func (p *Plot) Title() string { return p.title }

// Desc describes the drawing in one or two sentences with its main figures.
func (p *Plot) Desc() string { return p.desc }

// Steps are the places at which the steps of a sequence chart end, as parts of its height from the top; nil of other
// drawings.
func (p *Plot) Steps() []float64 { return p.steps }

// ground paints the whole canvas white, so that a drawing reads the same on a dark page.
func (p *Plot) ground(canvas draw.Canvas) {
	canvas.FillPolygon(white, []vg.Point{{}, {X: p.width}, {X: p.width, Y: p.height}, {Y: p.height}})
}

// pngDPI makes text crisp on screens of today.
const pngDPI = 144

// PNG renders the plot as a bitmap.
func (p *Plot) PNG() ([]byte, error) {
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(p.width, p.height), vgimg.UseDPI(pngDPI),
		vgimg.UseBackgroundColor(white))}
	p.paint(draw.New(canvas))
	var buffer bytes.Buffer
	// a third faster, a twentieth larger
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&buffer, canvas.Image()); err != nil {
		return nil, fmt.Errorf("render png: %w", err)
	}
	return buffer.Bytes(), nil
}

// Render draws as "svg" or as "png".
func (p *Plot) Render(ext string) ([]byte, error) {
	switch ext {
	case "svg":
		return p.SVG()
	case "png":
		return p.PNG()
	default:
		return nil, fmt.Errorf("cannot draw as %q: choose svg or png", ext)
	}
}

// maxDots is the number from which looking for places takes seconds, and reading too.
const maxDots = 100

// drawn reports a number of strategies that no plot shows: none, and why, or too many.
func drawn(strategies int, none string) error {
	switch {
	case strategies == 0:
		return fmt.Errorf("%w: %s", ErrNothingToPlot, none)
	case strategies > maxDots:
		return fmt.Errorf("%d strategies are too many for one plot: select at most %d", strategies, maxDots)
	}
	return nil
}

// series is a strategy as plots know it.
type series struct {
	*results.Summary
	label string
	group ranking.Group
	// other is set if it keeps something in a store that is neither Redis nor SQL.
	other bool
	// style is the same in all plots of a record.
	style seriesStyle
}

// plotted returns the summaries of a file in the order of reports, each with a label that tells it from the
// others: with what settings differ in, if there are several.
func plotted(file results.File) []series {
	var out []series
	settings := ranking.Of(file)
	names := make([]string, len(settings))
	for _, of := range []func(*results.Summary) string{policyOf, workloadOf} {
		is := func(n int) string { return of(settings[n].Strategies[0].Summary) }
		differs := false
		for n := range settings {
			differs = differs || is(n) != is(0)
		}
		for n := 0; differs && n < len(settings); n++ {
			names[n] = format.Join(", ", names[n], is(n))
		}
	}
	for n := range settings {
		name := names[n]
		if slices.Contains(names[:n], name) {
			name = format.Join(", ", name, fmt.Sprintf("setting %d", n+1))
		}
		for i := range settings[n].Strategies {
			strategy := &settings[n].Strategies[i]
			label := drawable(shorten(format.Plain(strategy.Label)))
			if name != "" {
				label += " (" + name + ")"
			}
			other := slices.ContainsFunc(strategy.Summary.Stored, func(k results.Stored) bool {
				return file.Class(k.Store) == codes.ClassOther
			})
			out = append(out, series{Summary: strategy.Summary, label: label, group: strategy.Group, other: other})
		}
	}
	n := 0
	for store := range inProcess + 1 { // strategies of one panel follow each other, so that their styles differ
		for i := range out {
			if out[i].store() == store {
				out[i].style = styleOf(n)
				n++
			}
		}
	}
	return out
}

func policyOf(summary *results.Summary) string   { return format.Plain(summary.Policy) }
func workloadOf(summary *results.Summary) string { return format.Plain(summary.Workload) }

// shorten cuts labels that no plot has room for.
func shorten(label string) string {
	const most = 80
	if r := []rune(label); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return label
}

// caption says under a title what the latencies rest on.
func caption(file results.File, all []series) string {
	s := all[0]
	params := s.AtRate().Params
	loop := fmt.Sprintf("closed loop, %s", format.Number(s.Params.Workers, "worker"))
	if params.Loop == codes.OpenLoop {
		loop = format.Join(" ", "open loop,", format.Plain(params.Arrivals), "at", format.Digits(params.RatePerS)+"/s")
	}
	if slices.ContainsFunc(all, func(x series) bool { return x.Policy != s.Policy }) {
		several := *s.Summary // each row names its own
		several.Policy = "several policies"
		return captionOf(file, &several, loop, keptText(all))
	}
	return captionOf(file, s.Summary, loop, keptText(all))
}

// captionOf begins with the workload and the policy, and ends with the stores.
func captionOf(file results.File, summary *results.Summary, parts ...string) string {
	policy := fmt.Sprintf("%s (%s)", format.Plain(summary.Policy),
		format.Units(summary.Params.Limit, format.Plain(summary.Params.Unit)))
	caption := format.Join(" · ", "workload "+
		format.Plain(summary.Workload), policy, format.Join(" · ", parts...), file.StoresText())
	if file.Kind == results.Simulated {
		caption = "SIMULATED in virtual time, latencies are modelled · " + caption
	}
	return drawable(caption)
}

// keptText says how many rounds are behind the timings, of those that were run.
func keptText(all []series) string {
	by := func(a, b series) int { return cmp.Compare(a.AtRate().Timed, b.AtRate().Timed) }
	summary := slices.MinFunc(all, by).AtRate()
	hi := slices.MaxFunc(all, by).AtRate()
	kept := strconv.Itoa(summary.Timed)
	if summary.Timed < hi.Timed {
		kept += fmt.Sprintf(" to %d", hi.Timed)
	}
	return format.Plural(int64(hi.Rounds), "round", "rounds") + ", timings of " + kept + " kept"
}

// captions collect who is missing from a plot, by what is missing and why.
type captions struct{ collect.By[missing, string] }

type missing struct{ what, why string }

func (c *captions) add(what, label, why string) { c.Add(missing{what, why}, label) }

// text is a sentence for each.
func (c *captions) text() string {
	var out []string
	for _, missing := range c.Keys {
		out = append(out, missing.what+" ("+missing.why+"): "+strings.Join(c.Of[missing], ", ")+".")
	}
	return strings.Join(out, " ")
}

// latencyOf is what plots of latency show of a strategy.
func latencyOf(summary *results.Summary) results.Figure { return summary.Latency().P99.Figure }

// disturbance is a sentence on what disturbed the timings that a plot shows; empty if none of them is
// marked.
func disturbance(all []series, shown func(*results.Summary) results.Figure) string {
	var summaries []results.Summary
	for _, series := range all {
		if shown(series.Summary).Disturbed {
			summaries = append(summaries, *series.Summary)
		}
	}
	if text := figures.Disturbance(summaries); text != "" {
		return text + "."
	}
	return ""
}

// marked is the label of a strategy whose timing is shown.
func marked(label string, timing results.Figure) string {
	if timing.Disturbed {
		return figures.Mark + label
	}
	return label
}
