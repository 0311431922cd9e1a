package measure

import (
	"iter"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// TestPlantedJobLatency: of a pass of 1 ms, requests of 70 ns overlap three rounds of a job, of which two ran at
// once, and requests of 5 ns do not. Rounds outside of the pass count nowhere.
func TestPlantedJobLatency(t *testing.T) {
	const epoch, length = 5_000_000, 1_000_000
	rounds := &roundTimes{}
	for _, r := range [][2]int64{{500_000, 500_100}, {1_000, 2_000}, {1_500, 3_000}, {-900, -800},
		{length + 1, length + 9}} {
		rounds.add(epoch+r[0], epoch+r[1])
	}
	j := newJobLatency("rebuild", rounds, epoch, length)
	var events []oracle.Event
	add := func(call, took int64) { events = append(events, oracle.Event{Call: call, Reply: call + took}) }
	for _, call := range []int64{930, 2_500, 3_000, 499_930, 500_100} {
		add(call, 70) // the first and the fourth end as a round begins, the third and the fifth begin as it ends
	}
	add(400, 2_700) // around two of them
	for _, call := range []int64{0, 994, 3_001, 499_994, 500_101, 900_000} {
		add(call, 5)
	}
	refund := events[0]
	refund.Kind = oracle.Refund
	eachTake(j.take)(append(events, refund))
	got := j.finish()
	if got.Job != "rebuild" || got.Rounds != 3 || got.LongestNS != 1500 {
		t.Errorf("%d rounds of %s, the longest of %d ns", got.Rounds, got.Job, got.LongestNS)
	}
	if d := got.During; d.Samples != 6 || d.P50 != 70 || d.Max < 2699 || d.Max > 2702 {
		t.Errorf("during rounds: %+v", d)
	}
	if d := got.Others; d.Samples != 6 || d.Max != 5 {
		t.Errorf("others: %+v", d)
	}
	if newJobLatency("rebuild", &roundTimes{}, epoch, length) != nil {
		t.Error("a job that did not run has figures")
	}
}

// TestOverTime plants amounts in known slices, and requires them back.
func TestOverTime(t *testing.T) {
	const slice = 1_000
	r := results.Run{Rates: results.Rates{ElapsedNS: slice*overTimeSlices - 1}}
	o := overTimeOf(&r)
	var events []oracle.Event
	plant := func(n int, at int64, kind oracle.Kind, out oracle.Outcome) {
		for range n {
			events = append(events, oracle.Event{Call: at - 1, Reply: at, Kind: kind, Outcome: out})
		}
	}
	plant(3, 0, oracle.Take, oracle.Admitted)
	plant(5, slice-1, oracle.Take, oracle.Rejected)
	plant(7, slice, oracle.Take, oracle.RejectedDegraded)
	plant(11, 30*slice, oracle.Take, oracle.Failed)
	plant(13, 30*slice, oracle.Take, oracle.Admitted)
	plant(17, 30*slice, oracle.Take, oracle.Short) // no request of its own
	plant(19, 30*slice, oracle.Commit, oracle.Admitted)
	plant(23, 99*slice, oracle.Take, oracle.Admitted) // after the end
	eachTake(o.take)(events[:10])
	eachTake(o.take)(events[10:])
	want := func(name string, got []int64, planted map[int]int64) {
		all := make([]int64, overTimeSlices)
		for k, n := range planted {
			all[k] = n
		}
		if !slices.Equal(got, all) {
			t.Errorf("%s: %v, want %v", name, got, planted)
		}
	}
	if o.out.SliceNS != slice || !o.out.Sound() {
		t.Errorf("slices of %d", o.out.SliceNS)
	}
	want("admitted", o.out.Admitted, map[int]int64{0: 3, 30: 13, 59: 23})
	want("rejected", o.out.Rejected, map[int]int64{0: 5, 1: 7})
	want("errors", o.out.Errors, map[int]int64{30: 11})
	short := overTimeOf(&results.Run{Rates: results.Rates{ElapsedNS: 5}})
	eachTake(short.take)(events)
	if short.out.Sound() {
		t.Error("a run of 5 ns was cut into slices")
	}
}

// ms is so many milliseconds in nanoseconds.
func ms(n float64) int64 { return int64(n * 1e6) }

// oneWait is a thread that waited for a core between two moments.
type oneWait struct{ from, to int64 }

func (w oneWait) Explains(all iter.Seq[monitor.Moment], least int64) float64 {
	moments := 0.
	explained := 0.
	for m := range all {
		moments++
		if w.to-w.from >= least && m.From < w.to && w.from < m.To+m.Latency {
			explained++
		}
	}
	return explained / moments
}

func (oneWait) Record(float64) *results.Waiting { return &results.Waiting{} }
func (oneWait) End()                            {}

// TestPercentilesAreMarked: the finding names the percentiles and the loop's kind of time,
// and takes nothing back.
func TestPercentilesAreMarked(t *testing.T) {
	p := auditPass()
	p.drive.epoch = 0
	p.cores = oneWait{from: ms(10), to: ms(12.5)}
	l := results.Latency{Distribution: results.Distribution{P50: ms(1), P90: ms(1), P99: ms(4), P999: ms(5), P9999: ms(5)}}
	s := newSlowest(ms(100))
	s.record(ms(10), ms(5))
	s.record(ms(60), ms(2))
	p.look(&l, s, "response")
	if w := l.Waited; w.P99 != 1 || w.P999 != 1 || w.P9999 != 1 || w.P90 != 0.5 {
		t.Errorf("%+v", w)
	}
	requireDiscard(t, p.run, "waited-for-core", codes.DiscardsNothing)
	if a := p.run.Audit; !a.Valid || a.Disturbed() || !a.Planned() {
		t.Errorf("something is taken back: %+v", a)
	}
}
