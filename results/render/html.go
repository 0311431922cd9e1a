package render

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/results/html"
	"github.com/quotabench/quotabench/results/plot"
)

const htmlName = "report.html"

// page is the report of one bundle for a browser.
func page(b *Bundle) ([]Output, error) {
	if !b.hasRuns() && b.Exploration == nil {
		return nil, nil
	}
	data, err := HTML([]*Bundle{b})
	return one(htmlName, data, err)
}

// HTML is one page about all bundles, in their order. It draws their plots.
func HTML(bundles []*Bundle) ([]byte, error) {
	var records []html.Record
	var o html.Options
	for _, b := range bundles {
		r := html.Record{Name: b.Name, File: b.File, Series: b.Series, Exploration: b.Exploration, Provenance: b.Provenance}
		var err error
		if r.Drawings, err = b.drawings(); err != nil {
			return nil, err
		}
		records = append(records, r)
		if b.About != nil {
			o.About = b.About
		}
	}
	var out bytes.Buffer
	if err := html.Write(&out, records, o); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// drawings are those of all formats that are SVG.
func (b *Bundle) drawings() (out []html.Drawing, err error) {
	for _, r := range Renderers() {
		switch {
		case r.Ext != "svg":
		case r.Name == sequenceFormat:
			out, err = b.charts(out, r)
		case r.Name == seriesFormat:
			out, err = b.developments(out, r)
		default:
			var drawn []Output
			drawn, err = r.Render(b)
			for _, o := range drawn {
				out = append(out, html.Drawing{Format: r.Name, Doc: r.Doc, SVG: o.Bytes})
			}
		}
		if errors.Is(err, plot.ErrNothingToPlot) {
			err = nil
		}
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", r.Name, err)
		}
	}
	return out, nil
}

// charts are the sequence charts of an exploration, each with its finding.
func (b *Bundle) charts(out []html.Drawing, r Renderer) ([]html.Drawing, error) {
	if b.Exploration == nil {
		return out, nil
	}
	for _, f := range b.Exploration.Charts() {
		var chart bytes.Buffer
		if err := plot.Sequence(&chart, f); err != nil {
			return nil, err
		}
		out = append(out, html.Drawing{Format: r.Name, Doc: r.Doc, Finding: f, SVG: chart.Bytes()})
	}
	return out, nil
}

// developments are the plots of series, each with its series.
func (b *Bundle) developments(out []html.Drawing, r Renderer) ([]html.Drawing, error) {
	for i := range b.Series {
		p, err := plot.Series(b.Series[i])
		if errors.Is(err, plot.ErrNothingToPlot) {
			continue // the run ended before its first sample
		}
		if err != nil {
			return nil, err
		}
		svg, err := p.SVG()
		if err != nil {
			return nil, err
		}
		out = append(out, html.Drawing{Format: r.Name, Doc: r.Doc, Series: &b.Series[i], SVG: svg})
	}
	return out, nil
}

// Text is the report of all bundles as tables and timelines, in their order.
func Text(bundles []*Bundle) ([]byte, error) {
	var out bytes.Buffer
	for i, b := range bundles {
		part, err := report(b)
		if err != nil {
			return nil, err
		}
		for _, o := range part {
			if b.Name != "" {
				if i > 0 {
					out.WriteString("\n\n")
				}
				fmt.Fprintf(&out, "== %s ==\n\n", b.Name)
			}
			out.Write(o.Bytes)
		}
	}
	return visible(&out), nil
}
