package render

import (
	"bytes"
	"fmt"
	"html/template"

	"github.com/quotabench/quotabench/internal/report/html"
)

// HTML is one page about all bundles, in their order. It draws their plots.
func HTML(bundles []*Bundle) ([]byte, error) {
	var records []html.Record
	var about func(string) (About, bool)
	for _, bundle := range bundles {
		record := html.Record{Name: bundle.Name, File: bundle.File, Exploration: bundle.Exploration,
			Provenance: bundle.Provenance}
		var err error
		record.Drawings, err = bundle.drawings()
		if err != nil {
			return nil, err
		}
		records = append(records, record)
		if bundle.About != nil {
			about = bundle.About
		}
	}
	var out bytes.Buffer
	if err := html.Write(&out, records, about); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// drawings are all plots of the bundle.
func (b *Bundle) drawings() (out []html.Drawing, err error) {
	for _, k := range Plots() {
		drawn, _, err := Draw(b, k)
		if err != nil {
			return nil, err
		}
		for _, drawing := range drawn {
			svg, width, err := drawing.Plot.Element()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", drawing.Name, err)
			}
			out = append(out, html.Drawing{
				Format: k.Name, Doc: k.Doc, Series: drawing.Series, Finding: drawing.Finding, Title: drawing.Plot.Title(),
				Desc:  drawing.Plot.Desc(),
				Steps: drawing.Plot.Steps(),
				SVG:   template.HTML(svg), Width: width, //nolint:gosec // all text in it is escaped
			})
		}
	}
	return out, nil
}

// Text is the report of all bundles as tables and timelines, in their order.
func Text(bundles []*Bundle) ([]byte, error) {
	var out bytes.Buffer
	for i, bundle := range bundles {
		if !bundle.hasReport() {
			continue
		}
		part, err := report(bundle)
		if err != nil {
			return nil, err
		}
		if bundle.Name != "" {
			if i > 0 {
				out.WriteString("\n\n")
			}
			fmt.Fprintf(&out, "== %s ==\n\n", bundle.Name)
		}
		out.Write(part)
	}
	return visible(&out), nil
}
