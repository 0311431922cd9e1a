package results

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/stat"
)

// Sweep says which parameters the runs of a file differ in. The values of a run are in
// [Params.Point].
type Sweep struct {
	// Parameters that vary, one or two.
	Parameters []Swept `json:"parameters"`
	// Until is the condition whose edge is looked for, e.g. "p99<5ms"; empty for none.
	Until string `json:"until,omitempty"`
	// Search is set if the values of the only parameter were chosen by a search
	// between the two that are listed.
	Search bool `json:"search,omitempty"`
}

// Swept is a parameter that varies.
type Swept struct {
	// Name as the command line takes it, e.g. "workers" or "three-tier.lag".
	Name string `json:"name"`
	// Values in the order in which they were given; in a search the lowest and the
	// highest that it may try.
	Values []string `json:"values"`
}

// SweepSeries is one strategy over the values of the first parameter.
type SweepSeries struct {
	// Strategy is its label without the options that vary.
	Strategy string
	// Second is the value of the second parameter; empty if there is one parameter.
	Second string
	// Points in ascending order of the value, or in the given order if a value is no
	// number.
	Points []SweepPoint
}

// SweepPoint is one strategy at one value.
type SweepPoint struct {
	// Value as it was given.
	Value string
	// X is the value as a number, times in nanoseconds, or its place among the given ones if it is none.
	X       float64
	Summary *Summary
}

// SweepSeries puts the summaries of a sweep in order: strategies by name, and
// within one the values of the second parameter. It is nil if the file is of no
// sweep.
func (f *File) SweepSeries() []SweepSeries {
	if f.Sweep == nil || len(f.Sweep.Parameters) == 0 {
		return nil
	}
	first := f.Sweep.Parameters[0]
	var out []SweepSeries
	all := f.Summarised()
	for i := range all {
		summary := &all[i]
		series := SweepSeries{Strategy: f.Sweep.Unswept(summary.Label)}
		if len(f.Sweep.Parameters) > 1 {
			series.Second = summary.Params.Point[f.Sweep.Parameters[1].Name]
		}
		point := SweepPoint{Value: summary.Params.Point[first.Name], Summary: summary}
		x, numeric := stat.ParseValue(point.Value)
		if !numeric {
			x = float64(slices.Index(first.Values, point.Value))
		}
		point.X = x
		sweepSeries, _ := collect.In(&out, series, func(x SweepSeries) bool {
			return x.Strategy == series.Strategy && x.Second == series.Second
		})
		sweepSeries.Points = append(sweepSeries.Points, point)
	}
	for i := range out {
		slices.SortStableFunc(out[i].Points, func(a, b SweepPoint) int { return cmp.Compare(a.X, b.X) })
	}
	slices.SortStableFunc(out, func(a, b SweepSeries) int {
		return cmp.Or(strings.Compare(a.Strategy, b.Strategy), f.Sweep.second(a.Second)-f.Sweep.second(b.Second))
	})
	return out
}

func (s *Sweep) second(value string) int {
	if len(s.Parameters) < 2 {
		return 0
	}
	return slices.Index(s.Parameters[1].Values, value)
}

// Unswept is a strategy's label without the options that vary.
func (s *Sweep) Unswept(label string) string {
	name, options, ok := strings.Cut(label, ":")
	if !ok {
		return name
	}
	var kept []string
	drop := false
	for part := range strings.SplitSeq(options, ",") {
		option, _, isOption := strings.Cut(part, "=")
		if isOption {
			drop = slices.ContainsFunc(s.Parameters, func(swept Swept) bool {
				return swept.Name == option || swept.Name == name+"."+option
			})
		}
		if !drop {
			kept = append(kept, part)
		}
	}
	if kept == nil {
		return name
	}
	return name + ":" + strings.Join(kept, ",")
}
