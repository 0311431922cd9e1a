package plot

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

func TestThroughput(t *testing.T) {
	f := fixture.New(3, fixture.Strategies...)
	if _, err := Throughput(f); !errors.Is(err, ErrNothingToPlot) {
		t.Errorf("without decisions over time: %v", err)
	}
	for i := range f.Runs {
		r := &f.Runs[i]
		r.Params.Trouble = trouble.MustParse("redis:empty@0.3-0.6", "limit:is=4@0.5", "redis/2:cut@0.7-0.8",
			"redis:latency=1ms")
		o := &results.OverTime{SliceNS: 1e6}
		for k := range 60 {
			o.Admitted = append(o.Admitted, int64(10*k))
			o.Rejected = append(o.Rejected, int64(r.Repetition))
			o.Errors = append(o.Errors, 0)
		}
		r.OverTime = o
		if r.Strategy == "redis-hash" {
			o.Admitted = o.Admitted[:5] // damaged
		}
	}
	p := fixture.Must[*Plot](t)(Throughput(f))
	text := checkSVG(t, "throughput", p).text
	for _, want := range []string{"decisions per second", "time since the start of a round",
		"Shaded: redis was taken away. Shaded: the network was bad (redis/2:cut@0.7-0.8).",
		"Not shown (the record does not have it): redis-hash.", "lua-reserve"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing about %q in %s", want, text)
		}
	}
	// 10 k + the median of 1, 2 and 3, in a slice of a millisecond
	s, ok := paceOf(f.Runs, plotted(f)[0])
	if !ok || s.perS[0] != 2_000 || s.perS[59] != 592_000 || s.sliceNS != 1e6 {
		t.Errorf("%v: %v per second in slices of %v", ok, s.perS, s.sliceNS)
	}
}

// TestDates plants a month that ends in the middle, and an hour that is left out.
func TestDates(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones: ", err)
	}
	for name, c := range map[string]struct {
		start time.Time
		end   time.Duration
		want  []string
		never string
	}{
		"minutes": {time.Date(2026, 2, 28, 23, 50, 0, 0, time.UTC), 20 * time.Minute,
			[]string{"23:55", "1 Mar", "00:05"}, "24:00"},
		"a day": {time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), 24 * time.Hour,
			[]string{"15:00", "1 Dec", "30 November 2026 12:00 to 1 December 2026 12:00 UTC"}, "31"},
		"the clock moves": {time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), 9 * time.Hour,
			[]string{"29 Mar", "01:00", "03:00", "10:00"}, "24:00"},
		"a month": {time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 31 * 24 * time.Hour, []string{"1 Jan", "31 Jan"},
			"00:00 00:00"},
		"years": {time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 4 * 365 * 24 * time.Hour, []string{"Jan 2026", "Jan 2027"},
			"1 Jan"},
	} {
		title, ticks := dates(c.start, c.end)
		text := title
		for i, k := range ticks {
			text += " " + k.Label
			if i > 0 && k.Value <= ticks[i-1].Value && name != "the clock moves" {
				t.Errorf("%s: %s comes after %s", name, ticks[i-1].Label, k.Label)
			}
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", name, want, text)
			}
		}
		if strings.Contains(strings.TrimPrefix(text, title), c.never) || len(ticks) > 32 {
			t.Errorf("%s: %d ticks, %s", name, len(ticks), text)
		}
	}
}

func TestSeriesOfACalendar(t *testing.T) {
	s := results.Series{Strategy: "monthly", Unit: "links", Tracked: 2, Start: "2026-02-28T23:00:00Z", Zone: "UTC",
		WindowEndsNS: []int64{int64(time.Hour), int64(99 * time.Hour)}, Tiers: []string{"model", "redis"},
		Counters: []string{"model"}}
	for i := range 9 {
		s.Samples = append(s.Samples, results.Sample{AtNS: int64(i) * int64(15*time.Minute), Issued: int64(i),
			Usage: int64(i), Hits: []int64{int64(i), 0}, Counters: []results.Counter{{Readings: 2, Drift: -8, Size: 12}}})
	}
	text := checkSVG(t, "calendar", fixture.Must[*Plot](t)(Series(s))).text
	for _, want := range []string{"28 February 2026 23:00 to 1 March 2026 01:00 UTC", "1 Mar", "window ends",
		"PostgreSQL (modelled)", "0 throughout, and not drawn: leak, false rejects",
		"Drift of PostgreSQL (modelled): -8 links", "units withheld"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing about %q in %s", want, text)
		}
	}
	if strings.Contains(text, "time since the start") {
		t.Error("a calendar has times since the start")
	}
}
