package quota

import (
	"math"
	"testing"
	"time"
)

func TestZeroTimelineIsIdentity(t *testing.T) {
	at := moment(t, "2026-11-20T10:00:00.123456789Z")
	var l Timeline
	if l.ToPolicy(at) != at || l.ToReal(at) != at || l.Scale(time.Hour) != time.Hour {
		t.Error("the zero timeline changes time")
	}
}

func TestMovedAnchor(t *testing.T) {
	real := moment(t, "2026-11-20T10:00:00Z")
	l := Timeline{Real: real, Policy: moment(t, "2026-11-30T23:59:59Z")}
	w := Window{Kind: CalendarMonth, Timeline: l}
	s := w.At(real)
	if w.Label(s.Index) != "2026-11" || !s.End.Equal(real.Add(time.Second)) {
		t.Errorf("a second before the month's end it is %s until %s", w.Label(s.Index), s.End)
	}
	next := w.At(s.End)
	if w.Label(next.Index) != "2026-12" || next.Index != s.Index+1 || !next.Start.Equal(s.End) {
		t.Errorf("then comes %s from %s", w.Label(next.Index), next.Start)
	}
	if l.ToPolicy(l.ToReal(l.Policy)) != l.Policy || l.Scale(time.Hour) != time.Hour {
		t.Error("a shift changes lengths")
	}
}

func TestSpeed(t *testing.T) {
	real := moment(t, "2026-11-20T10:00:00Z")
	l := Timeline{Real: real, Policy: moment(t, "2026-11-20T10:30:00Z"), Speed: 3600}
	if got := l.ToPolicy(real.Add(time.Second)); !got.Equal(moment(t, "2026-11-20T11:30:00Z")) {
		t.Errorf("a second later the policy's time is %s", got)
	}
	if got := l.ToReal(moment(t, "2026-11-20T11:30:00Z")); !got.Equal(real.Add(time.Second)) {
		t.Errorf("an hour of the policy's ends at %s", got)
	}
	if got := l.ToPolicy(real.Add(-time.Second)); !got.Equal(moment(t, "2026-11-20T09:30:00Z")) {
		t.Errorf("a second before the anchor the policy's time is %s", got)
	}
	hourly := Window{Kind: CalendarHour, Timeline: l}
	s := hourly.At(real)
	if s.End.Sub(s.Start) != time.Second || !s.End.Equal(real.Add(500*time.Millisecond)) {
		t.Errorf("an hour at 3600 x is [%s, %s)", s.Start, s.End)
	}
	rolling := Window{Kind: Rolling, Length: 15 * time.Minute, Timeline: l}
	if got := rolling.RealLength(); got != 250*time.Millisecond {
		t.Errorf("15 minutes at 3600 x are %v", got)
	}
	if got := (Window{Kind: Rolling, Length: time.Hour}).RealLength(); got != time.Hour {
		t.Errorf("an hour at normal speed is %v", got)
	}
	slow := Timeline{Real: real, Policy: real, Speed: 0.5}
	if got := slow.Scale(time.Second); got != 2*time.Second {
		t.Errorf("a second at half speed is %v", got)
	}
}

// Windows on a scaled timeline are subject to rounding and must still tile.
func FuzzScaledWindows(f *testing.F) {
	f.Add(uint8(0), 60.0, int64(0), int64(0))
	f.Add(uint8(2), 3600.0, int64(500_000_000), int64(1))
	f.Add(uint8(1), 1e6/7, int64(-12_345_678_901), int64(2))
	f.Add(uint8(3), 1.0/3, int64(1), int64(3))
	f.Add(uint8(3), 999_983.0, int64(86_399_999_999_999), int64(4))
	f.Fuzz(func(t *testing.T, k uint8, speed float64, offset, anchor int64) {
		if math.IsNaN(speed) || speed < 1e-2 || speed > 1e6 {
			t.Skip("no run has this speed")
		}
		real := time.Unix(1_793_491_200, floorMod(anchor, 1e9))
		w := Window{
			Kind: CalendarMonth + Kind(k%4), Length: time.Minute, Location: zone(t, fuzzZones[int(k)%len(fuzzZones)]),
			Timeline: Timeline{Real: real, Policy: time.Unix(1_790_000_000+floorMod(anchor, 1e7), 0), Speed: speed},
		}
		// 20 years of the policy's time to either side.
		reach := int64(20 * 365 * 86400 * 1e9 / max(speed, 1))
		at := real.Add(time.Duration(floorMod(offset, 2*reach) - reach))
		windowsAgree(t, w, at)
	})
}
