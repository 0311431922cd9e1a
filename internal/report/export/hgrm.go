package export

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// Percentiles are those of one strategy, setting and kind of latency.
type Percentiles struct {
	// Name tells it from others of the same file: the strategy, its loop, the kind of latency, and
	// the number of the setting if it is not the first of that strategy and loop.
	Name string
	// Text is in the form of HdrHistogram's percentile files, in microseconds, with
	// a first line that says what it is.
	Text []byte
}

// ErrNoHistogram says that a record holds no histogram: simulations and measurements that keep
// percentiles alone have none.
var ErrNoHistogram = errors.New("the record holds no histogram of a latency")

// HGRM renders the latencies of all kept rounds together: the same that reports take their
// percentiles from.
func HGRM(file *results.File) ([]Percentiles, error) {
	var out []Percentiles
	number := map[string]int{}
	for _, group := range grouped(file) {
		first := group.runs[0]
		runs := group.timed()
		of := first.Params.Label + "-" + first.Params.Loop
		number[of]++
		for _, kind := range kinds {
			merged, rounds, err := over(runs, kind.of)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", first.Params.Label, err)
			}
			if merged == nil || merged.Count() == 0 {
				continue
			}
			var buffer bytes.Buffer
			fmt.Fprintf(&buffer, "#[%s time of %s under %s, limit %d, %s loop, %s, in microseconds]\n", kind.name,
				format.Plain(first.Params.Label),
				format.Plain(first.Workload), first.Params.Limit, first.Params.Loop, format.Number(rounds, "round"))
			if err := merged.WriteHGRM(&buffer); err != nil {
				return nil, fmt.Errorf("%s: %w", first.Params.Label, err)
			}
			name := of + "-" + kind.name
			if n := number[of]; n > 1 {
				name += "-" + strconv.Itoa(n)
			}
			out = append(out, Percentiles{name, buffer.Bytes()})
		}
	}
	if len(out) == 0 {
		return nil, ErrNoHistogram
	}
	return out, nil
}

var kinds = []struct {
	name string
	of   func(run *results.Run) *results.Latency
}{
	{"service", func(run *results.Run) *results.Latency { return &run.Service }},
	{"response", func(run *results.Run) *results.Latency { return run.Response }},
	{"settlement", func(run *results.Run) *results.Latency {
		if run.Settlement == nil {
			return nil
		}
		return &run.Settlement.Service
	}},
}

// over adds the histograms of all rounds up; nil if a round has none that can be
// added, since a part of the rounds would pass for all.
func over(runs []*results.Run,
	of func(*results.Run) *results.Latency) (merged *results.Histogram, rounds int, err error) {
	for _, run := range runs {
		latency := of(run)
		if latency == nil || latency.Samples == 0 {
			continue
		}
		histogram, err := latency.Decode()
		if err != nil {
			return nil, 0, err
		}
		if histogram == nil {
			return nil, 0, nil
		}
		if merged == nil {
			merged = results.NewHistogram()
		}
		merged.Merge(histogram)
		rounds++
	}
	return merged, rounds, nil
}
