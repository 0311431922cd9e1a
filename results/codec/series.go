package codec

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	head := []string{"strategy", "at_s", "issued", "admitted", "rejected", "errors", "in_flight", "usage", "fill", "leak", "false_rejects",
		"keys"}
	for _, t := range tiers {
		head = append(head, "decided by "+t)
	}
	for _, c := range counters {
		for _, field := range []string{"readings", "unknown", "drifting", "drift", "drift size", "worst drift", "staleness_s",
			"mean staleness_s", "never"} {
			head = append(head, format.Cell(c+" "+field))
		}
	}
	lines := [][]string{head}
	for _, s := range series {
		for _, x := range s.Samples {
			lines = append(lines, seriesRow(&s, &x, tiers, counters))
		}
	}
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(lines)
	return b.Bytes(), err
}

func seriesRow(s *results.Series, x *results.Sample, tiers, counters []string) []string {
	row := []string{format.Cell(s.Strategy), seconds(x.AtNS)}
	for _, n := range []int64{x.Issued, x.Admitted, x.Rejected, x.Errors, x.InFlight, x.Usage, x.Fill, x.Leak, x.FalseRejects, x.Keys} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	for _, t := range tiers {
		row = append(row, cell(slices.Index(s.Tiers, t), func(i int) string { return strconv.FormatInt(x.Hits[i], 10) }))
	}
	for _, name := range counters {
		i := slices.Index(s.Counters, name)
		if i < 0 {
			row = append(row, make([]string, 9)...)
			continue
		}
		c := x.Counters[i]
		for _, n := range []int64{c.Readings, c.Unknown, c.Drifting, c.Drift, c.Size, c.Worst} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		row = append(row, seconds(c.StalenessNS), seconds(c.MeanNS), strconv.FormatInt(c.Never, 10))
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
	s := fmt.Sprintf("%s%d.%09d", sign, ns/1e9, ns%1e9)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// SeriesJSON renders series with their schema version.
func SeriesJSON(series []results.Series) ([]byte, error) {
	b, err := json.MarshalIndent(results.SeriesFile{Schema: results.SeriesVersion, Series: series}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the series: %w", err)
	}
	return append(b, '\n'), nil
}

// DecodeSeries reads series that [SeriesJSON] rendered, all of them of this version's form.
func DecodeSeries(b []byte) ([]results.Series, error) { return shapedAs(b, decodeSeries) }

func decodeSeries(d document) ([]results.Series, error) {
	var f results.SeriesFile
	if err := d.decode(&f, results.SeriesVersion, "simulate again", compiled.series); err != nil {
		return nil, err
	}
	for i := range f.Series {
		s := &f.Series[i]
		for j := range s.Samples {
			if x := &s.Samples[j]; len(x.Hits) != len(s.Tiers) || len(x.Counters) != len(s.Counters) {
				return nil, fmt.Errorf("series[%d] (%s): sample %d has %d hits and %d counters, and there are %d tiers and %d counters",
					i, shortened(format.Plain(s.Strategy)), j, len(x.Hits), len(x.Counters), len(s.Tiers), len(s.Counters))
			}
		}
	}
	return f.Series, nil
}
