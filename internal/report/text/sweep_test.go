package text

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

// swept is a strategy at 1, 2, 4, 8 and 16 workers that makes 1,000 decisions/s for each
// of up to 4, and waits for connections beyond.
func swept(until string) results.File {
	f := fixture.New(6)
	f.Sweep = &results.Sweep{Parameters: []results.Swept{{Name: "workers", Values: []string{"1", "2", "4", "8", "16"}}},
		Until: until}
	base := fixture.New(6, fixture.Strategies[0]).Runs
	for i, v := range f.Sweep.Parameters[0].Values {
		workers := 1 << i
		for _, r := range base {
			r.Params.Workers = workers
			r.Params.Point = map[string]string{"workers": v}
			r.ThroughputPerS = 1000*float64(min(workers, 4)) + float64(r.Repetition)
			r.PoolWait = []results.PoolWait{{Store: "redis", Taken: r.Issued, Waited: r.Issued / 4,
				WaitNS: r.Issued * int64(1000*max(0, workers-4))}}
			f.Runs = append(f.Runs, r)
		}
	}
	return f
}

func sweepText(t *testing.T, f results.File, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := Table(&b, layout.Page{Width: width}, f); err != nil {
		t.Fatal(err)
	}
	for l := range strings.SplitSeq(b.String(), "\n") {
		if w := uniseg.StringWidth(l); w > width {
			t.Errorf("%d cells of %d: %s", w, width, l)
		}
	}
	return b.String()
}

func TestSweepSaysTheFigures(t *testing.T) {
	name := fixture.New(1, fixture.Strategies[0]).Runs[0].Params.Label
	for _, width := range []int{100, 120} {
		text := sweepText(t, swept(""), width)
		for _, want := range []string{
			"Use " + name + ": never over the limit in 6,000 windows",
			"4 PASS              ≤ 20  306 [301–312]  719 [699–742]  4.00 [4.00–4.01]          1.05",
			"6 of each point, the points in random order within a round", "rounds kept: 6 of 6",
		} {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(want), " ")) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		if width < 120 {
			continue // rows are folded
		}
		for l := range strings.SplitSeq(text, "\n") {
			verdict := strings.Contains(l, "PASS")
			if strings.HasPrefix(l, "16 ") && !verdict && (!strings.Contains(l, "12.0 µs") || !strings.Contains(l, "25.0 %")) {
				t.Errorf("the planted wait is not in %s", l)
			}
		}
		if strings.Contains(text, "50 workers") {
			t.Errorf("what varies is said to be one value:\n%s", text)
		}
	}
}

// TestSweepSaysTheSetting: a sweep says of its setting what other runs do, except what varies, and of one round that it
// says nothing about how much figures vary.
func TestSweepSaysTheSetting(t *testing.T) {
	f := swept("")
	f.Runs = slices.DeleteFunc(f.Runs, func(r results.Run) bool { return r.Repetition > 1 })
	for i := range f.Runs {
		r := &f.Runs[i]
		r.Params.Trouble = trouble.MustParse("callers:killed=0.01,after=2")
		r.Placement = &results.Placement{Mode: codes.PlacedShared, Procs: 2, Reason: "planted"}
	}
	text := strings.Join(strings.Fields(sweepText(t, f, 120)), " ")
	for _, want := range []string{"trouble callers:killed=0.01,after=2",
		"shared by harness and stores, GOMAXPROCS 2 (shared: planted)", "closed loop · 2 instances · 0 client retries",
		"1 of each point, the points in random order within a round; one round says nothing about how much figures vary"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestSweepSaysTheEdge(t *testing.T) {
	for until, want := range map[string]string{
		"throughput>3000":  "throughput>3000 holds from workers 4 (4,004/s) on, and not at 2 (2,004/s)",
		"pool-wait<1us":    "pool-wait<1us holds up to workers 4 (0), and not at 8 (4.00 µs)",
		"throughput>9000":  "throughput>9000 holds at no value of workers: 1,004/s at the first and 4,004/s at the last",
		"throughput>1":     "throughput>1 holds at every value of workers, up to 16 (4,004/s)",
		"sql/commands>100": "it is not known whether sql/commands>100 holds: ",
	} {
		f := swept(until)
		if strings.HasPrefix(until, "sql") {
			for i := range f.Runs {
				f.Runs[i].Cost.Commands = 0
			}
		}
		text := strings.Join(strings.Fields(sweepText(t, f, 120)), " ")
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", until, want, text)
		}
	}
	// Two stretches have no edge.
	f := swept("throughput>3000")
	for i := range f.Runs {
		if f.Runs[i].Params.Workers == 8 {
			f.Runs[i].ThroughputPerS = 10
		}
	}
	if text := strings.Join(strings.Fields(sweepText(t, f, 120)), " "); !strings.Contains(text,
		"has no one edge, it holds at workers 4 (4,004/s), 16 (4,004/s) and not in between") {
		t.Errorf("two stretches:\n%s", text)
	}
}

// A disturbed timing is printed and marked, and a time that holds a condition as an upper bound
// holds it.
func TestSweepOfDisturbedTimings(t *testing.T) {
	f := swept("p99<50us")
	for i := range f.Runs {
		r := &f.Runs[i]
		r.Service.P99 = int64(20_000 * (r.Params.Workers))
		r.Service.Histogram = ""
		r.OthersShare = 0.42
		r.Audit.Discard("machine-busy", codes.Disturbs, "planted")
	}
	text := strings.Join(strings.Fields(sweepText(t, f, 120)), " ")
	for _, want := range []string{
		"p99<50us holds up to workers 2 (40.0 µs)", "~80.0 µs",
		"~ other programs used 42 % of the processor: latencies are upper bounds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A second parameter makes a series, and a table, of each of its values.
func TestSweepOfTwo(t *testing.T) {
	f := swept("")
	f.Sweep.Parameters = append(f.Sweep.Parameters, results.Swept{Name: "pool", Values: []string{"4", "8"}})
	runs := f.Runs
	f.Runs = nil
	for _, pool := range []string{"8", "4"} {
		for _, r := range runs {
			r.Params.Point = map[string]string{"workers": r.Params.Point["workers"], "pool": pool}
			f.Runs = append(f.Runs, r)
		}
	}
	text := sweepText(t, f, 120)
	name := f.Runs[0].Params.Label
	last := 0
	for _, want := range []string{"Use " + name + ", pool 4: ", "over " + name +
		", pool 8 (as good)", "── " + name + ", pool 4 ──", "── " + name + ", pool 8 ──", "\n" +
		name + ", pool 4\n", "\n" + name + ", pool 8\n"} {
		i := strings.Index(text[last:], want)
		if i < 0 {
			t.Fatalf("no %q after the first %d characters of\n%s", want, last, text)
		}
		last += i
	}
	if err := Table(new(bytes.Buffer), layout.Page{}, swept("nonsense>1")); err == nil {
		t.Error("a condition that cannot be read is no error")
	}
	empty := swept("")
	empty.Runs = nil
	if text := sweepText(t, empty, 120); !strings.Contains(text, "Nothing was measured") {
		t.Errorf("nothing was measured:\n%s", text)
	}
}

// TestSweepSaysWhatToUse plants strategies of which one is right, and values of an option of which one is.
func TestSweepSaysWhatToUse(t *testing.T) {
	both := swept("")
	other := swept("").Runs
	for i := range other {
		r := &other[i]
		r.Strategy = "racy"
		r.Params.Label = "racy"
		if r.Params.Workers == 8 {
			r.Leak.Units = 7
			r.Leak.Possible = 7
			r.Leak.WorstUnits = 7
			r.Leak.LeakedTrials = 1
		}
	}
	both.Runs = append(both.Runs, other...)
	option := swept("")
	option.Sweep.Parameters = []results.Swept{{Name: "x.lag", Values: []string{"1s", "2s"}}}
	option.Runs = option.Runs[:12]
	for i := range option.Runs {
		r := &option.Runs[i]
		r.Params.Point = map[string]string{"x.lag": []string{"1s", "2s"}[i/6]}
		if i/6 == 0 {
			r.Leak.Units = 7
			r.Leak.Possible = 7
			r.Leak.WorstUnits = 7
			r.Leak.LeakedTrials = 1
		}
	}
	rates := swept("throughput>1")
	rates.Sweep.Parameters[0].Name = "rate"
	rates.Sweep.Search = true
	slow := swept("").Runs[:24] // up to 8
	for i := range slow {
		slow[i].Strategy, slow[i].Params.Label = "a-slow-one", "a-slow-one"
	}
	rates.Runs = append(rates.Runs, slow...)
	for i := range rates.Runs {
		r := &rates.Runs[i]
		r.Params.Loop = codes.OpenLoop
		r.Params.RatePerS = float64(r.Params.Workers)
		r.Params.Point = map[string]string{"rate": r.Params.Point["workers"]}
		response := r.Service
		r.Response = &response
	}
	never := swept("throughput>9000")
	for want, f := range map[string]results.File{
		"Use incr-expire: never over the limit":                                                                    both,
		"It was chosen over racy (over the limit).":                                                                both,
		"Use incr-expire at x.lag 2s: never over the limit":                                                        option,
		"It was chosen over incr-expire at x.lag 1s (over the limit).":                                             option,
		"Use incr-expire at rate 16: throughput>1 holds at every value":                                            rates,
		"It was chosen over a-slow-one at rate 8 (slower).":                                                        rates,
		"No strategy that ran is known to hold throughput>9000. incr-expire: throughput>9000 holds at no value of": never,
	} {
		d, err := DecideSweep(&f)
		if err != nil {
			t.Fatal(err)
		}
		brief := d.Table.To(document.Brief)
		if said := strings.Join(d.Advice, " "); !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
		if len(brief.Columns) > 7 || len(brief.Notes) > 3 || len(d.Untested) == 0 {
			t.Errorf("%d columns, %d notes, %d things untested", len(brief.Columns), len(brief.Notes), len(d.Untested))
		}
	}
}
