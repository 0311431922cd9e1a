// Package render lists the formats that results are written in. A new format is one more
// entry of [Exports], or of [Renderers] and [Names] if every run is to write it.
package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/html"
	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// Bundle is what one invocation produced. What it did not produce is nil.
type Bundle struct {
	// File is the record of runs, measured or simulated.
	File *results.File
	// Series are how simulated runs developed, one per run.
	Series []results.Series
	// Exploration is what searches, counts and replays of schedules found.
	Exploration *results.Exploration
	// Provenance is set if File leaves out what differs from machine to machine.
	Provenance *results.Provenance
	// Name tells the bundle from others on one page; empty for the only one.
	Name string
	// NoBitmaps leaves out plots as PNG, which take most of the time of writing a short run.
	NoBitmaps bool
	// About looks up what a strategy says of itself, by its public name. It may be nil.
	About func(strategy string) (About, bool)
}

// About is what a page tells of a strategy.
type About = html.About

// Output is one rendered file.
type Output struct {
	// Format is the [Renderer] that made it.
	Format string
	// Name is the file's name, without a directory.
	Name  string
	Bytes []byte
}

// Renderer is one format.
type Renderer struct {
	Name string
	// Ext is how the names of its files end, without the dot.
	Ext string
	Doc string // one line
	// Render returns the files, none if the bundle has nothing for this format.
	// It may return [plot.ErrNothingToPlot] for runs without the figures that a
	// plot shows.
	Render func(bundle *Bundle) ([]Output, error)
}

// Renderers returns all formats, in the order in which they are written: records
// first, so that figures are kept whatever happens to a drawing.
func Renderers() []Renderer {
	return append([]Renderer{
		{"results", "json", "the record of all runs, which everything else follows from",
			resultsJSON},
		{"exploration", "json", "the record of searches, counts and replays of schedules",
			record(files.ExplorationName, (*Bundle).hasExploration, explorationJSON)},
		{reportFormat, "txt", "the tables and timelines, as on the terminal",
			record(files.TextName, (*Bundle).hasReport, report)},
		{"series", "json", "simulated runs over virtual time, sample by sample",
			record(files.SeriesName, (*Bundle).hasSeries, seriesJSON)},
		{"series-table", "csv", "the same as one table, a line per strategy and sample",
			record(seriesTableName, (*Bundle).hasSeries, seriesCSV)},
		{"provenance", "json", "where and when a simulation ran",
			record(provenanceName, (*Bundle).hasProvenance, provenance)},
	}, append(plotRenderers(), Renderer{"page", "html", "all of it as one page for a browser, plots and charts included",
		record(files.HTMLName, (*Bundle).hasReport, page)})...)
}

func page(bundle *Bundle) ([]byte, error) { return HTML([]*Bundle{bundle}) }

// Records are the names of the files that everything else can be made from again.
func Records() []string { return []string{files.ResultsName, files.SeriesName, files.ExplorationName} }

// Names are the files that may be written, except those of single strategies.
func Names() []string {
	names := []string{
		files.ResultsName, files.ExplorationName, files.ComparisonName, files.TextName, files.HTMLName,
		files.SeriesName, seriesTableName, provenanceName, refusedName, refusalName,
	}
	for _, k := range Plots() {
		for _, name := range k.Files {
			names = append(names, name+".svg", name+".png")
		}
	}
	return names
}

// reportFormat is the name of the format that is also shown on the terminal.
const reportFormat = "report"

// Undrawn is a plot that could not be drawn.
type Undrawn struct {
	// Name of its file; empty for any format.
	Name string
	// Why it could not.
	Why error
}

// String is one line.
func (u Undrawn) String() string { return codes.NotDrawn + format.Join(": ", u.Name, u.Why.Error()) }

// Each renders a bundle in every format and passes the files on, one after the
// other. Plots that could not be drawn are returned. The first error of put ends it. One of a
// renderer does not keep what others make of the bundle from being written.
func Each(bundle *Bundle, put func(Output) error) (undrawn []Undrawn, wrong error) {
	for _, renderer := range Renderers() {
		outputs, err := renderer.Render(bundle)
		if missing, ok := errors.AsType[*drawError](err); ok && errors.Is(err, plot.ErrNothingToPlot) {
			undrawn = append(undrawn, Undrawn{missing.name, missing.err})
			continue
		}
		if err != nil && wrong == nil {
			wrong = fmt.Errorf("render %s: %w", renderer.Name, err)
		}
		for _, output := range outputs {
			output.Format = renderer.Name
			if err := put(output); err != nil {
				return undrawn, err
			}
		}
	}
	return undrawn, wrong
}

const (
	refusedName     = "results-refused.json"
	refusalName     = "results-refused.txt"
	seriesTableName = "series.csv"
	provenanceName  = "provenance.json"
)

// record is a format of one file, of bundles that have a part.
func record(name string, has func(*Bundle) bool, encode func(*Bundle) ([]byte, error)) func(*Bundle) ([]Output, error) {
	return func(bundle *Bundle) ([]Output, error) {
		if !has(bundle) {
			return nil, nil
		}
		data, err := encode(bundle)
		if err != nil {
			return nil, err
		}
		return []Output{{Name: name, Bytes: data}}, nil
	}
}

// The parts of a bundle; hasRuns reports whether there is anything to draw, and hasTable whether there is to tabulate.
func (b *Bundle) hasFile() bool        { return b.File != nil }
func (b *Bundle) hasRuns() bool        { return b.File != nil && len(b.File.Runs) > 0 }
func (b *Bundle) hasTable() bool       { return b.hasRuns() || b.File != nil && b.File.Considered != nil }
func (b *Bundle) hasExploration() bool { return b.Exploration != nil }
func (b *Bundle) hasSeries() bool      { return b.Series != nil }
func (b *Bundle) hasProvenance() bool  { return b.Provenance != nil }
func (b *Bundle) hasReport() bool      { return b.hasTable() || b.Exploration != nil }

// resultsJSON is the record of runs. One that does not fit its schema, which nothing reads again, is kept under another
// name next to what is wrong with it.
func resultsJSON(bundle *Bundle) ([]Output, error) {
	if bundle.File == nil {
		return nil, nil
	}
	data, err := codec.Encode(*bundle.File)
	switch {
	case err == nil:
		return []Output{{Name: files.ResultsName, Bytes: data}}, nil
	case len(data) == 0:
		return nil, err
	}
	refused := []Output{{Name: refusedName, Bytes: data}, {Name: refusalName, Bytes: []byte(err.Error() + "\n")}}
	return refused, fmt.Errorf("%w: what was measured is in %s", err, refusedName)
}

func explorationJSON(bundle *Bundle) ([]byte, error) {
	return codec.ExplorationJSON(bundle.Exploration)
}
func seriesJSON(bundle *Bundle) ([]byte, error) { return codec.SeriesJSON(bundle.Series) }
func seriesCSV(bundle *Bundle) ([]byte, error)  { return codec.SeriesCSV(bundle.Series) }

func report(bundle *Bundle) ([]byte, error) {
	var buffer bytes.Buffer
	var err error
	if bundle.hasTable() {
		err = text.Table(&buffer, layout.Page{}, *bundle.File)
	} else {
		err = text.Exploration(&buffer, layout.Page{}, bundle.Exploration)
	}
	return visible(&buffer), err
}

// visible is a text for terminals: names in a record may come from anywhere.
func visible(buffer *bytes.Buffer) []byte { return []byte(format.Visible(buffer.String())) }

func provenance(bundle *Bundle) ([]byte, error) {
	data, err := json.MarshalIndent(bundle.Provenance, "", "  ")
	return append(data, '\n'), err
}
