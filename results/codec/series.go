package codec

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// SeriesCSV renders series as one table: a line per strategy and sample. Counters of a
// tier that a strategy does not have are empty.
func SeriesCSV(series []results.Series) ([]byte, error) {
	var tiers, counters []string
	for _, s := range series {
		tiers = collect.Union(tiers, s.Tiers...)
		counters = collect.Union(counters, s.Counters...)
	}
	head := []string{"strategy", "at_s", "issued", "admitted", "rejected", "errors", "in_flight", "usage", "fill", "leak",
		"false_rejects",
		"keys"}
	for _, text := range tiers {
		head = append(head, "decided by "+text)
	}
	for _, text := range counters {
		for _, field := range []string{"readings", "unknown", "drifting", "drift", "drift size", "worst drift", "staleness_s",
			"mean staleness_s", "never"} {
			head = append(head, format.Cell(text+" "+field))
		}
	}
	lines := [][]string{head}
	for _, s := range series {
		for _, sample := range s.Samples {
			lines = append(lines, seriesRow(&s, &sample, tiers, counters))
		}
	}
	var buffer bytes.Buffer
	err := csv.NewWriter(&buffer).WriteAll(lines)
	return buffer.Bytes(), err
}

func seriesRow(series *results.Series, sample *results.Sample, tiers, counters []string) []string {
	row := []string{format.Cell(series.Strategy), seconds(sample.AtNS)}
	for _, n := range []int64{sample.Issued, sample.Admitted, sample.Rejected, sample.Errors, sample.InFlight,
		sample.Usage, sample.Fill, sample.Leak, sample.FalseRejects, sample.Keys} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	for _, text := range tiers {
		row = append(row, cell(slices.Index(series.Tiers, text), func(i int) string {
			return strconv.FormatInt(sample.Hits[i], 10)
		}))
	}
	for _, name := range counters {
		i := slices.Index(series.Counters, name)
		if i < 0 {
			row = append(row, make([]string, 9)...)
			continue
		}
		counter := sample.Counters[i]
		for _, n := range []int64{counter.Readings, counter.Unknown, counter.Drifting, counter.Drift, counter.Size,
			counter.Worst} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		row = append(row, seconds(counter.StalenessNS), seconds(counter.MeanNS), strconv.FormatInt(counter.Never, 10))
	}
	return row
}

func cell(i int, f func(int) string) string {
	if i < 0 {
		return ""
	}
	return f(i)
}

// seconds prints nanoseconds exactly, without trailing zeros.
func seconds(ns int64) string {
	sign := ""
	if ns < 0 {
		sign = "-"
		ns = -ns
	}
	text := fmt.Sprintf("%s%d.%09d", sign, ns/1e9, ns%1e9)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// SeriesJSON renders series with their schema version.
func SeriesJSON(series []results.Series) ([]byte, error) {
	data, err := json.MarshalIndent(results.SeriesFile{Schema: codes.SeriesVersion, Series: series}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the series: %w", err)
	}
	return append(data, '\n'), nil
}

func decodeSeries(d document) ([]results.Series, error) {
	var file results.SeriesFile
	if err := d.decode(&file, codes.SeriesVersion, "simulate again", compiled.series); err != nil {
		return nil, err
	}
	for i := range file.Series {
		series := &file.Series[i]
		for j := range series.Samples {
			if sample := &series.Samples[j]; len(sample.Hits) != len(series.Tiers) ||
				len(sample.Counters) != len(series.Counters) {
				return nil, fmt.Errorf("series[%d] (%s): sample %d has %d hits and %d counters, and there are %d tiers and %d "+
					"counters",
					i, shortened(format.Plain(series.Strategy)), j, len(sample.Hits), len(sample.Counters), len(series.Tiers),
					len(series.Counters))
			}
		}
	}
	return file.Series, nil
}
