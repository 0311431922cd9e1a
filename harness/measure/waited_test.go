package measure

import (
	"iter"
	"testing"

	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/results"
)

// ms is so many milliseconds in nanoseconds.
func ms(n float64) int64 { return int64(n * 1e6) }

// oneWait is a thread that waited for a core between two moments.
type oneWait struct{ from, to int64 }

func (w oneWait) Explains(all iter.Seq[monitor.Moment], least int64) float64 {
	moments, explained := 0., 0.
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
	p.d.epoch = 0
	p.cores = oneWait{from: ms(10), to: ms(12.5)}
	l := results.Latency{Distribution: results.Distribution{P50: ms(1), P90: ms(1), P99: ms(4), P999: ms(5), P9999: ms(5)}}
	s := newSlowest(ms(100))
	s.record(ms(10), ms(5))
	s.record(ms(60), ms(2))
	p.tails().look(&l, s, "response")
	if w := l.Waited; w.P99 != 1 || w.P999 != 1 || w.P9999 != 1 || w.P90 != 0.5 {
		t.Errorf("%+v", w)
	}
	requireDiscard(t, p.run, "waited-for-core", results.DiscardsNothing)
	if a := p.run.Audit; !a.Valid || !a.TimingsValid || !a.ResponseValid() {
		t.Errorf("something is taken back: %+v", a)
	}
}
