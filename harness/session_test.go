package harness

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// counting is a strategy whose own figures are planted.
type counting struct {
	strategies.Strategy
	retries, size, most int64
}

func (c *counting) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "retries", Unit: "retries", Value: c.retries},
		{Name: "size", Unit: "bytes", Value: c.size, Kind: strategies.MeasureLevel},
		{Name: "depth", Unit: "charges", Value: c.most, Kind: strategies.MeasureMost},
	}
}

// TestMeter plants figures of two instances before and in a pass: what was counted
// before is taken off, levels are those of the end, and of the largest the larger.
func TestMeter(t *testing.T) {
	a, b := &counting{retries: 5, size: 100, most: 9}, &counting{retries: 1, size: 20, most: 3}
	s := &Session{Instances: []strategies.Strategy{a, b}}
	before := s.Meter()
	a.retries, b.retries, a.size, b.most = 10, 3, 150, 12
	want := []results.Measure{
		{Name: "retries", Unit: "retries", Value: 7}, {Name: "size", Unit: "bytes", Kind: "level", Value: 170},
		{Name: "depth", Unit: "charges", Kind: "most", Value: 12},
	}
	if got := MeterSince(before, s.Meter()); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (&Session{Instances: []strategies.Strategy{struct{ strategies.Strategy }{}}}).Meter(); got != nil {
		t.Errorf("a strategy without figures has %+v", got)
	}
}
