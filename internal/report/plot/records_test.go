package plot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// nasty are records that are hard to draw.
func nasty() map[string]results.File {
	out := map[string]results.File{}
	for _, n := range []int{1, 2, 45} {
		out[fmt.Sprintf("%d strategies", n)] = fixture.New(1, fixture.Many(n)...)
	}
	long := fixture.New(1, fixture.Many(20)...)
	for i := range long.Runs {
		long.Runs[i].Params.Label = fmt.Sprintf("strategy-%02d:%s", i, strings.Repeat("option=value,", 4))
	}
	out["names of 60 characters"] = long
	word := fixture.New(1, fixture.Many(12)...)
	for i := range word.Runs {
		word.Runs[i].Params.Label = fmt.Sprintf("%02d%s", i, strings.Repeat("W", 58))
	}
	out["words of 60 characters"] = word
	equal := fixture.New(1, fixture.Many(30)...)
	for i := range equal.Runs {
		equal.Runs[i].Service = equal.Runs[0].Service
		equal.Runs[i].Leak = results.Leak{Trials: 10}
	}
	out["equal values"] = equal
	leaks := fixture.New(1, fixture.Many(30)...)
	for i := range leaks.Runs {
		leaks.Runs[i].Service = leaks.Runs[0].Service
		leaks.Runs[i].Leak = results.Leak{Units: 10, Trials: 10, PctOfLimit: 5}
		leaks.Runs[i].FalseRejects = results.FalseRejects{Count: 5, PctOfValid: 5}
	}
	out["equal leaks"] = leaks
	zero := fixture.New(1, fixture.Strategies...)
	for i := range zero.Runs {
		zero.Runs[i].Service.Distribution = results.Distribution{Samples: 1_000_000, StallsP99: 100, StallsP999: 100}
		zero.Runs[i].Leak = results.Leak{}
		zero.Runs[i].ThroughputPerS = 0
	}
	out["zeros"] = zero
	disturbed := fixture.New(1, fixture.Strategies...)
	for i := range disturbed.Runs {
		disturbed.Runs[i].Audit.Discard("machine-busy", codes.Disturbs, "the machine was busy")
	}
	out["all disturbed"] = disturbed
	for name, f := range fixture.Cases() {
		out[name] = f
	}
	return out
}

// TestEveryRecord draws records as they were measured, and nasty ones: no label is cut
// off or overlaps another.
func TestEveryRecord(t *testing.T) {
	all := nasty()
	for _, name := range testenv.Pick([]string{"run-rolling", "run-uploads", "sim-regions"},
		[]string{"run", "run-slow", "run-rolling", "run-uploads", "sim-month-end", "sim-regions"}) {
		all[name] = fixture.Must[results.File](t)(codec.Read("../../../results/baseline/" + name + "/results.json"))
	}
	for name, f := range all {
		f.Summaries = f.Summarised() // once for both plots
		for plot, draw := range map[string]func(results.File) (*Plot, error){"latency": Latency, "leak": Leak} {
			p, err := draw(f)
			if errors.Is(err, ErrNothingToPlot) {
				if len(f.Runs) > 0 {
					t.Errorf("%s of %s: %v", plot, name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s of %s: %v", plot, name, err)
				continue
			}
			checkSVG(t, plot+" of "+name, p)
		}
	}
}
