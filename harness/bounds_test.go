package harness

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// bounded is a plan at all of its bounds.
func bounded() Plan {
	return Plan{
		Strategies: []strategies.Selection{selected(strategies.Meta{Name: "a"})},
		Traffic: Traffic{
			Workload: &workloads.Meta{}, Requests: bounds.MaxRequests, Load: OpenAt(bounds.MaxRate),
			Duration: 1,
			Stream:   workloads.Params{Options: quota.Options{"speed": fmt.Sprint(minSpeed)}},
		},
		Policy: quota.Policy{Limit: quota.MaxLimit}, Workers: 1, Callers: Callers{Life: bounds.MaxLife},
	}
}

func TestPlansAreBounded(t *testing.T) {
	ok := bounded()
	if err := ok.Complete(1); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(p *Plan){
		"a limit of 1152921504606846977: give at most": func(p *Plan) { p.Policy.Limit++ },
		"134,217,729 requests: at most 134,217,728 of": func(p *Plan) { p.Requests++ },
		"a rate of 1.1e+09 ":                           func(p *Plan) { p.Load = OpenAt(1.1e9) },
		"a rate of NaN ":                               func(p *Plan) { p.Load = OpenAt(math.NaN()) },
		"a life of 87840h0m0.000000001s: give at most": func(p *Plan) { p.Life++ },
		"a speed of 0.0009: give 0.001 to 1e+06 times": func(p *Plan) { p.Stream.Set("speed", 0.0009) },
		"a speed of NaN":                               func(p *Plan) { p.Stream.Set("speed", math.NaN()) },
	} {
		p := bounded()
		spoil(&p)
		if err := p.Complete(1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestCheckHistory(t *testing.T) {
	for _, c := range []struct {
		plan       Plan
		rate, more float64
		length     time.Duration
		want       string
	}{
		{rate: 1 << 27, length: time.Second},
		{rate: 1<<27 + 1, length: time.Second,
			want: "1.34217729e+08 requests per second for 1s are 134,217,729 requests, and at most 134,217,728 of one run " +
				"can be judged"},
		{plan: Plan{Traffic: Traffic{Requests: 5}}, rate: 1e9, length: time.Hour},
		{plan: Plan{Keeping: Keeping{HistoryLimit: 1 << 28}}, rate: 1 << 28, length: time.Second},
		{rate: 1 << 26, length: time.Second, more: 1<<26 + 1,
			want: "6.7108864e+07 requests per second for 1s and 67,108,865 more of rushes are 134,217,729 requests"},
		{rate: 1e9, length: math.MaxInt64,
			want: "1e+09 requests per second for 2562047h47m16.854775807s are 1,000,000,000,000,000,000 requests"},
	} {
		err := c.plan.CheckHistory(c.rate, c.length, c.more)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestCheckReplay(t *testing.T) {
	info := workloads.Info{Trace: &workloads.TraceInfo{Span: 10 * time.Hour}}
	for _, c := range []struct {
		speed    float64
		duration time.Duration
		load     Load
		length   time.Duration
		refused  bool
	}{
		{speed: 1, length: 10 * time.Hour}, {speed: 0.1, refused: true}, {speed: 0.1, duration: time.Hour, length: time.Hour},
		{speed: 1000, length: 36 * time.Second}, {}, {speed: 1e-3, load: Closed()},
	} {
		p := Plan{
			Traffic: Traffic{
				Stream: workloads.Params{Options: quota.Options{"speed": fmt.Sprint(c.speed)}}, Duration: c.duration,
				Load: c.load,
			}}
		length, err := p.CheckReplay(info, 24*time.Hour)
		if length != c.length || (err != nil) != c.refused {
			t.Errorf("%+v: %v, %v", c, length, err)
		}
	}
}

func TestCheckSkew(t *testing.T) {
	const year = 366 * 24 * time.Hour
	if err := bounds.CheckSkew([]time.Duration{year, -year, 0}); err != nil {
		t.Error(err)
	}
	for _, d := range []time.Duration{year + 1, -year - 1, math.MaxInt64, math.MinInt64} {
		if err := bounds.CheckSkew([]time.Duration{0, d}); err == nil ||
			!strings.HasPrefix(err.Error(), "the clock of instance 1 is ahead by ") {
			t.Errorf("%v: %v", d, err)
		}
	}
}
