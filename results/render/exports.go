package render

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/report/export"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Exports returns the formats in which other tools read a record. They are written
// when asked for, and not with every run.
func Exports() []Renderer {
	return []Renderer{
		{"gobench", "txt", "runs in Go's benchmark format, a line per round, for benchstat",
			record("gobench.txt", (*Bundle).hasFile, func(bundle *Bundle) ([]byte, error) {
				return export.GoBench(bundle.File), nil
			})},
		{"hgrm", "hgrm", "latencies in HdrHistogram's percentile format, one file per strategy, loop and kind", hgrm},
		{"csv", "csv", "a row per run and round, per sample of a series, or per property of an exploration", asCSV},
		{"json", "json", "the records themselves", asJSON},
	}
}

func hgrm(bundle *Bundle) (out []Output, err error) {
	if bundle.File == nil {
		return nil, nil
	}
	all, err := export.HGRM(bundle.File)
	if err != nil {
		return nil, err
	}
	taken := map[string]int{}
	for _, percentiles := range all {
		name := fileName(percentiles.Name)
		taken[name]++
		if taken[name] > 1 { // two labels may differ in what a file's name cannot hold
			name += fmt.Sprintf("-again-%d", taken[name])
		}
		out = append(out, Output{Name: name + ".hgrm", Bytes: percentiles.Text})
	}
	return out, nil
}

func asCSV(bundle *Bundle) (out []Output, err error) {
	for _, render := range []func(*Bundle) ([]Output, error){
		record("runs.csv", (*Bundle).hasFile, func(b *Bundle) ([]byte, error) { return export.RunsCSV(b.File) }),
		record(seriesTableName, (*Bundle).hasSeries, seriesCSV),
		record("exploration.csv", (*Bundle).hasExploration, func(b *Bundle) ([]byte, error) {
			return export.ExplorationCSV(b.Exploration)
		}),
	} {
		more, err := render(bundle)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// asJSON has the records of a bundle.
func asJSON(bundle *Bundle) (out []Output, err error) {
	for _, render := range []func(*Bundle) ([]Output, error){
		resultsJSON,
		record(files.SeriesName, (*Bundle).hasSeries, seriesJSON),
		record(files.ExplorationName, (*Bundle).hasExploration, explorationJSON),
	} {
		more, err := render(bundle)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// Only is the part of a bundle that is about one strategy: a label, or a public name
// with whatever options. A name that does not occur is an error.
func (b *Bundle) Only(name string) (*Bundle, error) {
	out := &Bundle{Name: b.Name, About: b.About, Provenance: b.Provenance, NoBitmaps: b.NoBitmaps}
	var known []string
	is := func(label string) bool {
		known = collect.Union(known, label)
		public, _, _ := strings.Cut(label, ":")
		return label == name || public == name
	}
	found := false
	if b.File != nil {
		file := *b.File
		file.Runs = keep(file.Runs, func(run *results.Run) bool { return is(run.Params.Label) })
		// Which rounds are kept follows from all strategies.
		file.Summaries = keep(b.File.Summarised(), func(summary *results.Summary) bool { return is(summary.Label) })
		out.File = &file
		found = len(file.Runs) > 0
	}
	if b.Series != nil {
		out.Series = keep(b.Series, func(series *results.Series) bool { return is(series.Strategy) })
		found = found || len(out.Series) > 0
	}
	if b.Exploration != nil {
		exploration := *b.Exploration
		exploration.Searches = keep(exploration.Searches, func(search **results.Search) bool {
			return is((*search).Strategy)
		})
		exploration.Censuses = keep(exploration.Censuses, func(census **results.Census) bool {
			return is((*census).Strategy)
		})
		exploration.Replays = keep(exploration.Replays, func(replay **results.Replay) bool { return is((*replay).Strategy) })
		out.Exploration = &exploration
		found = found || len(exploration.Searches)+len(exploration.Censuses)+len(exploration.Replays) > 0
	}
	if !found {
		return nil, quota.Unknown("strategy", name, known, "")
	}
	return out, nil
}

// keep returns what passes, in a list of its own.
func keep[T any](all []T, passes func(*T) bool) []T {
	out := []T{}
	for i := range all {
		if passes(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}
