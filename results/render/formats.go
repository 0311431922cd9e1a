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

func one(name string, b []byte, err error) ([]Output, error) {
	if err != nil {
		return nil, err
	}
	return []Output{{Name: name, Bytes: b}}, nil
}

func resultsJSON(b *Bundle) ([]Output, error) {
	if b.File == nil {
		return nil, nil
	}
	data, err := codec.Encode(*b.File)
	return one(ResultsName, data, err)
}

// hasRuns reports whether there is anything to tabulate or to draw.
func (b *Bundle) hasRuns() bool { return b.File != nil && len(b.File.Runs) > 0 }

func explorationJSON(b *Bundle) ([]Output, error) {
	if b.Exploration == nil {
		return nil, nil
	}
	data, err := codec.ExplorationJSON(b.Exploration)
	return one(ExplorationName, data, err)
}

func report(b *Bundle) ([]Output, error) {
	var t bytes.Buffer
	switch {
	case b.hasRuns():
		err := text.Table(&t, layout.Page{}, *b.File)
		return one(reportName, visible(&t), err)
	case b.Exploration != nil:
		err := text.Exploration(&t, layout.Page{}, b.Exploration)
		return one(reportName, visible(&t), err)
	default:
		return nil, nil
	}
}

// visible is a text for terminals: names in a record may come from anywhere.
func visible(t *bytes.Buffer) []byte { return []byte(format.Visible(t.String())) }

func seriesJSON(b *Bundle) ([]Output, error) {
	if b.Series == nil {
		return nil, nil
	}
	data, err := codec.SeriesJSON(b.Series)
	return one(SeriesName, data, err)
}

func seriesCSV(b *Bundle) ([]Output, error) {
	if b.Series == nil {
		return nil, nil
	}
	data, err := codec.SeriesCSV(b.Series)
	return one(seriesTableName, data, err)
}

func provenance(b *Bundle) ([]Output, error) {
	if b.Provenance == nil {
		return nil, nil
	}
	data, err := json.MarshalIndent(b.Provenance, "", "  ")
	return one(provenanceName, append(data, '\n'), err)
}
