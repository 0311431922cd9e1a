package quota

import (
	"testing"
	"time"
)

func TestMemoIsWhatTheWindowSays(t *testing.T) {
	var m Memo
	start := time.Date(2026, time.January, 31, 23, 0, 0, 0, time.UTC)
	windows := []Window{
		{Kind: CalendarMonth}, {Kind: CalendarDay}, {Kind: CalendarHour}, {Kind: Fixed, Length: time.Minute},
		{Kind: Standing}, {Kind: Rolling, Length: time.Hour},
	}
	// The same memo for all kinds, across ends of windows, there and back, and
	// with the timeline moved in between.
	for _, minutes := range []int{0, 1, 59, 60, 61, 30, 120, 24 * 60, 0} {
		at := start.Add(time.Duration(minutes) * time.Minute)
		for _, w := range windows {
			for _, line := range []Timeline{{}, {Real: start, Policy: start.Add(-time.Hour)}} {
				w.Timeline = line
				want := w.At(at)
				for range 2 {
					got := m.At(&w, at)
					if got.Span != want || got.Label != w.Label(want.Index) {
						t.Fatalf("%s at %s: %v %q, want %v %q", w.Kind, at, got.Span, got.Label, want, w.Label(want.Index))
					}
				}
			}
		}
	}
}

func BenchmarkMemo(b *testing.B) {
	w := Window{Kind: CalendarMonth}
	now := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	b.Run("memo", func(b *testing.B) {
		var m Memo
		for b.Loop() {
			m.At(&w, now)
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			w.Label(w.At(now).Index)
		}
	})
}
