package condition

import (
	"math"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
)

// TestThousands are apart in fractions, too.
func TestThousands(t *testing.T) {
	for x, want := range map[float64]string{12345.6: "12,346", -2044.4766: "-2,044", 999.5: "999.5", 0.45163: "0.4516",
		1000: "1,000"} {
		if got := exactly(x).Text(); got != want {
			t.Errorf("%v is shown as %q, want %q", x, got, want)
		}
	}
}

// TestListsOfLists: a function takes the numbers of a list in a list, too.
func TestListsOfLists(t *testing.T) {
	nested := []any{exactly(1), []any{exactly(2), []any{exactly(4)}}}
	if got := flat(nil, nested); len(got) != 3 || got[2].(Number).Value != 4 {
		t.Errorf("%v", got)
	}
}

// TestSpelling: a condition may be written as people write it, and means the same as Go's form of it.
func TestSpelling(t *testing.T) {
	properties := []results.Property{"leak", "false-reject"}
	for text, want := range map[string]string{
		"leak=none":                          "leak==none",
		"leak != 0 && p99<5ms":               "leak != 0 && p99<5*ms",
		"p99.9 <= 1.5s":                      "p99_9 <= 1.5*s",
		"p99.99/reference>=2":                "p99_99/reference>=2",
		"bare.p99.9<1us":                     "bare_p99_9<1*us",
		"leak-pct>1":                         "leak_pct>1",
		"leak-1>1":                           "leak-1>1",
		"false-reject=0":                     "false_reject==0",
		`a["leak-pct=5ms"].leak-pct = 0`:     `a["leak-pct=5ms"].leak_pct == 0`,
		`a["x"].service_ns.p99 <= 10*us`:     `a["x"].service_ns.p99 <= 10*us`,
		`a["x"].leak - a["y"].leak-worst==0`: `a["x"].leak - a["y"].leak_worst==0`,
		"leak=>1":                            "leak=>1",
	} {
		if got := spelled(text, properties); got != want {
			t.Errorf("%s is spelled %s, want %s", text, got, want)
		}
	}
}

// TestWaitedForCore: a percentile that waiting for a core may explain in most rounds is an upper bound and has the
// mark, except in gates. In a quotient it is a bound, unless both sides waited.
func TestWaitedForCore(t *testing.T) {
	claims := &Record{File: &results.File{Kind: results.Measured}}
	gates := &Record{File: claims.File, anyRounds: true}
	p99 := func(of *Record, waited int) Number {
		figure := results.Figure{Value: 3e6, Lo: 2e6, Hi: 4e6, Coverage: 0.95, Rounds: 10}
		return of.percentile(results.Percentile{Figure: figure, Status: codes.Pooled, Waited: waited}, "p99").(Number)
	}
	for name, one := range map[string]struct {
		figure Number
		limit  float64
		want   string
	}{
		"waited, above":     {p99(claims, 6), 1e6, "undecided"},
		"waited, below":     {p99(claims, 6), 5e6, "holds"},
		"not waited, above": {p99(claims, 5), 1e6, "refuted"},
		"a gate":            {p99(gates, 10), 1e6, "refuted"},
	} {
		if got, err := compare("<", one.figure, exactly(one.limit), 0); err != nil || got.String() != one.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, one.want)
		}
	}
	if text := p99(claims, 6).Text(); text != "~3.00 ms (2.00 ms to 4.00 ms)" {
		t.Errorf("it is shown as %q", text)
	}
	for name, one := range map[string]struct {
		above, below Number
		lo, hi       float64
	}{
		"above":   {p99(claims, 6), p99(claims, 0), 0, 2},
		"below":   {p99(claims, 0), p99(claims, 6), 0.5, math.Inf(1)},
		"both":    {p99(claims, 6), p99(claims, 6), 0.5, 2},
		"neither": {p99(claims, 0), p99(claims, 0), 0.5, 2},
	} {
		got, err := compute("/", one.above, one.below)
		if number, ok := got.(Number); err != nil || !ok || number.Lo != one.lo || number.Hi != one.hi {
			t.Errorf("%s waited: %+v, %v, want %v to %v", name, got, err, one.lo, one.hi)
		}
	}
}
