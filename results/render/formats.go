package render

import (
	"bytes"
	"encoding/json"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results/codec"
)

// The names of the records.
const (
	ResultsName     = "results.json"
	ExplorationName = "exploration.json"
	// ComparisonName is what run --against found.
	ComparisonName = "comparison.json"

	// SeriesName is how simulations developed.
	SeriesName = "series.json"

	reportName      = "report.txt"
	seriesTableName = "series.csv"
	provenanceName  = "provenance.json"
)

// record is a format of one file, of bundles that have a part.
func record(name string, has func(*Bundle) bool, encode func(*Bundle) ([]byte, error)) func(*Bundle) ([]Output, error) {
	return func(b *Bundle) ([]Output, error) {
		if !has(b) {
			return nil, nil
		}
		data, err := encode(b)
		if err != nil {
			return nil, err
		}
		return []Output{{Name: name, Bytes: data}}, nil
	}
}

// The parts of a bundle; hasRuns reports whether there is anything to tabulate or to draw.
func (b *Bundle) hasFile() bool        { return b.File != nil }
func (b *Bundle) hasRuns() bool        { return b.File != nil && len(b.File.Runs) > 0 }
func (b *Bundle) hasExploration() bool { return b.Exploration != nil }
func (b *Bundle) hasSeries() bool      { return b.Series != nil }
func (b *Bundle) hasProvenance() bool  { return b.Provenance != nil }
func (b *Bundle) hasReport() bool      { return b.hasRuns() || b.Exploration != nil }

func resultsJSON(b *Bundle) ([]byte, error)     { return codec.Encode(*b.File) }
func explorationJSON(b *Bundle) ([]byte, error) { return codec.ExplorationJSON(b.Exploration) }
func seriesJSON(b *Bundle) ([]byte, error)      { return codec.SeriesJSON(b.Series) }
func seriesCSV(b *Bundle) ([]byte, error)       { return codec.SeriesCSV(b.Series) }

func report(b *Bundle) ([]byte, error) {
	var t bytes.Buffer
	var err error
	if b.hasRuns() {
		err = text.Table(&t, layout.Page{}, *b.File)
	} else {
		err = text.Exploration(&t, layout.Page{}, b.Exploration)
	}
	return visible(&t), err
}

// visible is a text for terminals: names in a record may come from anywhere.
func visible(t *bytes.Buffer) []byte { return []byte(format.Visible(t.String())) }

func provenance(b *Bundle) ([]byte, error) {
	data, err := json.MarshalIndent(b.Provenance, "", "  ")
	return append(data, '\n'), err
}
