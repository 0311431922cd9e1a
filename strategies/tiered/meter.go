package tiered

import (
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// screened asks the filter, and counts what it answers.
func (in *instance) screened(s quota.Subject) bool {
	if in.filter == nil {
		in.passed.Add(1)
		return false
	}
	found, added := in.filter.look(s)
	if !found {
		in.passed.Add(1)
		return false
	}
	in.filtered.Add(1)
	if !added {
		in.falsePositives.Add(1)
	}
	return true
}

// Measures implements strategies.Meter. The tiers' hit rates follow from the first
// three: of all checks, the filter answered "filter hits"; of the "cache lookups",
// Redis answered all but the "cache misses". Times are in microseconds, from a
// charge to the statement that carries it.
func (in *instance) Measures() []strategies.Measure {
	out := []strategies.Measure{
		{Name: "cache lookups", Unit: "checks", Value: in.passed.Load()},
		{Name: "cache misses", Unit: "checks", Value: in.misses.Load()},
		{Name: "charge failed", Unit: "units", Value: in.chargeFailed.Load()},
	}
	if in.filter != nil {
		out = append(out,
			strategies.Measure{Name: "filter hits", Unit: "checks", Value: in.filtered.Load(), Metric: strategies.MetricFilterHits},
			strategies.Measure{
				Name: "false positives", Unit: "checks", Value: in.falsePositives.Load(), Metric: strategies.MetricFalsePositives,
			},
			strategies.Measure{Name: "filter size", Unit: "bytes", Value: in.filter.bytes(), Kind: strategies.MeasureLevel},
		)
	}
	if in.write == writeBackMode {
		out = append(out,
			strategies.Measure{Name: "written back", Unit: "statements", Value: in.written.Load()},
			strategies.Measure{Name: "queue depth", Unit: "charges", Value: in.queue.depth(), Kind: strategies.MeasureLevel},
			strategies.Measure{Name: "queue depth, most", Unit: "charges", Value: in.queue.longest.Load(), Kind: strategies.MeasureMost},
			strategies.Measure{Name: "queue lag, sum", Unit: "us", Value: in.queue.waited.Load()},
			strategies.Measure{
				Name: "queue lag, most", Unit: "us", Value: in.queue.latest.Load(), Kind: strategies.MeasureMost, Metric: strategies.MetricQueueLag,
			},
		)
	}
	return out
}
