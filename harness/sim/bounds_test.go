package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

func TestSimulationsAreBounded(t *testing.T) {
	steady, err := workloads.Lookup("steady")
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(c *Config){
		"": func(c *Config) {
			c.Start = lastStart
			c.Duration = bounds.MaxVirtualDuration
			c.Every = bounds.MaxVirtualDuration / maxSamples
			c.Load = harness.OpenAt(0.1)
			c.Tracked = 100
		},
		"a duration of 87840h0m0.000000001s: give at": func(c *Config) {
			c.Duration = bounds.MaxVirtualDuration + 1
		},
		"virtual time starts at 9999-12-31T00:00:00Z: give a moment from 19": func(c *Config) {
			c.Start = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
		},
		"virtual time starts at 1969-12-31T23:59:59Z":              func(c *Config) { c.Start = time.Unix(-1, 0) },
		"a sample every 1ns for 1m0s makes 60,000,000,000 samples": func(c *Config) { c.Every = 1 },
		"100,000 samples of 10,000 tracked subjects are 1,000,000,000 read": func(c *Config) {
			c.Every = time.Minute / maxSamples
			c.Tracked = 10_000
		},
		"a sample every 1µs for 1h40m0s makes 6,000,000,000 samples": func(c *Config) {
			c.Requests, c.Load, c.Every = 6000, harness.OpenAt(1), time.Microsecond
		},
		"1000001 tracked subjects": func(c *Config) { c.Tracked = bounds.MaxTracked + 1 },
		"1e+09 requests per second for 1s are 1,000,000,000 requests": func(c *Config) {
			c.Load = harness.OpenAt(1e9)
			c.Duration = time.Second
		},
		"10 requests per second for 1m0s and 10,000,000,000 more of": func(c *Config) {
			c.Load = harness.OpenAt(10)
			c.Rushes = []Rush{{Rate: 1e9, From: c.Start, For: 10 * time.Second}}
		},
		"the rush 1@2126-": func(c *Config) {
			c.Requests = 5
			c.Rushes = []Rush{{Rate: 1, From: c.Start.AddDate(100, 0, 0), For: 1}}
		},
		"256 regions: give at most 255": func(c *Config) {
			c.Topology.Regions = strings.Split(strings.Repeat("x,", 255)+"x", ",")
		},
		"the region us is given twice": func(c *Config) {
			c.Topology.Regions = []string{"us", "us"}
		},
		"the name \"a\\x1b[31m\" of a region": func(c *Config) {
			c.Topology.Regions = []string{"a\x1b[31m"}
		},
		"\"instance/0:clock=8785h\": give another value of clock": func(c *Config) {
			c.Trouble = trouble.List{trouble.ClockAhead(0, 8785*time.Hour)}
		},
	} {
		c := Config{Plan: harness.Plan{Strategies: []strategies.Selection{{Meta: &strategies.Meta{Name: "a"}}},
			Traffic: harness.Traffic{Workload: steady}}}
		c.Policy.Limit = 1
		c.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		change(&c)
		err := c.Complete()
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What a trace makes of --every is known once it is read.
func TestCheckStream(t *testing.T) {
	info := workloads.Info{Trace: &workloads.TraceInfo{Span: time.Hour}}
	c := Config{Every: time.Microsecond}
	c.Stream.Set("speed", 1)
	if err := c.CheckStream(info); err == nil ||
		!strings.HasPrefix(err.Error(), "a sample every 1µs for 1h0m0s makes 3,600,000,000 samples") {
		t.Error(err)
	}
	c.Every = time.Second
	if err := c.CheckStream(info); err != nil {
		t.Error(err)
	}
	c.Stream.Set("speed", 1e-3)
	info.Trace.Span = 200 * time.Hour
	if err := c.CheckStream(info); err == nil ||
		!strings.HasPrefix(err.Error(),
			"the trace spans 200h0m0s, which at 0.001 times the recorded speed takes 200000 hours") {
		t.Error(err)
	}
}

// How long a closed loop of so many requests takes is not known in advance: its series
// gets coarser instead of longer.
func TestSeriesAreThinned(t *testing.T) {
	s := sampler{out: &results.Series{}, every: time.Millisecond}
	for i := range int64(10) {
		s.out.Samples = append(s.out.Samples, results.Sample{AtNS: i + 1})
	}
	s.thin(11)
	if len(s.out.Samples) != 10 || s.every != time.Millisecond {
		t.Fatalf("%d samples every %v", len(s.out.Samples), s.every)
	}
	s.thin(10)
	var at []int64
	for _, x := range s.out.Samples {
		at = append(at, x.AtNS)
	}
	if fmt.Sprint(at) != "[2 4 6 8 10]" || s.every != 2*time.Millisecond {
		t.Errorf("samples at %v, every %v", at, s.every)
	}
}
