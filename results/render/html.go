package render

import (
	"bytes"
	"fmt"
	"html/template"

	"github.com/quotabench/quotabench/internal/report/html"
	"github.com/quotabench/quotabench/results"
)

// HTMLName is the page of a record.
const HTMLName = "report.html"

// HTML is one page about all bundles, in their order. It draws their plots.
func HTML(bundles []*Bundle) ([]byte, error) {
	var records []html.Record
	var about func(string) (About, bool)
	var explored *results.Exploration
	for _, b := range bundles {
		explored = explored.With(b.Exploration)
	}
	for _, b := range bundles {
		r := html.Record{Name: b.Name, File: b.File, Exploration: b.Exploration, Provenance: b.Provenance}
		var err error
		r.Drawings, err = b.drawings(explored)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		if b.About != nil {
			about = b.About
		}
	}
	var out bytes.Buffer
	if err := html.Write(&out, records, about); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// drawings are all that there is of it. What draws runs against schedules takes those
// that were explored anywhere, if none are in the bundle.
func (b *Bundle) drawings(explored *results.Exploration) (out []html.Drawing, err error) {
	against := *b
	if b.File != nil && b.Exploration == nil {
		against.Exploration = explored
	}
	for _, k := range Plots() {
		from := b
		if k.Files != nil {
			from = &against
		}
		drawn, _, err := Draw(from, k)
		if err != nil {
			return nil, err
		}
		for _, d := range drawn {
			svg, width, err := d.Plot.Element()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Name, err)
			}
			out = append(out, html.Drawing{
				Format: k.Name, Doc: k.Doc, Series: d.Series, Finding: d.Finding, Title: d.Plot.Title(), Desc: d.Plot.Desc(),
				SVG: template.HTML(svg), Width: width, //nolint:gosec // all text in it is escaped
			})
		}
	}
	return out, nil
}

// Text is the report of all bundles as tables and timelines, in their order.
func Text(bundles []*Bundle) ([]byte, error) {
	var out bytes.Buffer
	for i, b := range bundles {
		if !b.hasReport() {
			continue
		}
		part, err := report(b)
		if err != nil {
			return nil, err
		}
		if b.Name != "" {
			if i > 0 {
				out.WriteString("\n\n")
			}
			fmt.Fprintf(&out, "== %s ==\n\n", b.Name)
		}
		out.Write(part)
	}
	return visible(&out), nil
}
