package quota

import (
	"math"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Skipf("no time zone data on this machine: %v", err)
	}
	return loc
}

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	m, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Boundaries written out by hand, with their offsets.
func TestSpanOfAMoment(t *testing.T) {
	for _, c := range []struct {
		name, zone string
		kind       Kind
		length     time.Duration
		at         string
		start, end string
		label      string
	}{
		{"month of 31", "UTC", CalendarMonth, 0, "2026-01-31T23:59:59.999999999Z", "2026-01-01T00:00:00Z",
			"2026-02-01T00:00:00Z", "2026-01"},
		{"month of 30", "UTC", CalendarMonth, 0, "2026-11-20T10:00:00Z", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z",
			"2026-11"},
		{"month of 28", "UTC", CalendarMonth, 0, "2026-02-28T12:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z",
			"2026-02"},
		{"month of 29", "UTC", CalendarMonth, 0, "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z",
			"2028-02"},
		{"no leap century", "UTC", CalendarMonth, 0, "2100-02-28T23:00:00Z", "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z",
			"2100-02"},
		{"leap century", "UTC", CalendarDay, 0, "2000-02-29T23:00:00Z", "2000-02-29T00:00:00Z", "2000-03-01T00:00:00Z",
			"2000-02-29"},
		{"year's end", "UTC", CalendarMonth, 0, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z",
			"2026-12"},
		{"first instant belongs to the new month", "UTC", CalendarMonth, 0, "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z",
			"2027-02-01T00:00:00Z", "2027-01"},
		{"before the epoch", "UTC", CalendarDay, 0, "1969-12-31T12:00:00Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z",
			"1969-12-31"},
		{"month in a zone ahead", "Asia/Tokyo", CalendarMonth, 0, "2026-10-31T15:00:00Z", "2026-11-01T00:00:00+09:00",
			"2026-12-01T00:00:00+09:00", "2026-11"},
		{"month with a change of clocks", "Europe/Berlin", CalendarMonth, 0, "2026-10-25T12:00:00Z",
			"2026-10-01T00:00:00+02:00", "2026-11-01T00:00:00+01:00", "2026-10"},
		{"day of 23 hours", "Europe/Berlin", CalendarDay, 0, "2026-03-29T12:00:00Z", "2026-03-29T00:00:00+01:00",
			"2026-03-30T00:00:00+02:00", "2026-03-29"},
		{"day of 25 hours", "Europe/Berlin", CalendarDay, 0, "2026-10-25T12:00:00Z", "2026-10-25T00:00:00+02:00",
			"2026-10-26T00:00:00+01:00", "2026-10-25"},
		// Chile's clocks go from 24:00 to 01:00: the day has no midnight.
		{"day without a midnight", "America/Santiago", CalendarDay, 0, "2026-09-06T12:00:00Z", "2026-09-06T01:00:00-03:00",
			"2026-09-07T00:00:00-03:00", "2026-09-06"},
		{"day before it", "America/Santiago", CalendarDay, 0, "2026-09-05T12:00:00Z", "2026-09-05T00:00:00-04:00",
			"2026-09-06T01:00:00-03:00", "2026-09-05"},
		// And back from 24:00 to 23:00: the day before has 25 hours, midnight comes once.
		{"day whose last hour comes twice", "America/Santiago", CalendarDay, 0, "2026-04-05T03:30:00Z",
			"2026-04-04T00:00:00-03:00", "2026-04-05T00:00:00-04:00", "2026-04-04"},
		// Cuba's go from 01:00 back to 00:00: midnight comes twice, the day starts at the first.
		{"day with two midnights", "America/Havana", CalendarDay, 0, "2025-11-02T05:30:00Z", "2025-11-02T00:00:00-04:00",
			"2025-11-03T00:00:00-05:00", "2025-11-02"},
		{"its first hour", "America/Havana", CalendarDay, 0, "2025-11-02T04:30:00Z", "2025-11-02T00:00:00-04:00",
			"2025-11-03T00:00:00-05:00", "2025-11-02"},
		{"its eve", "America/Havana", CalendarDay, 0, "2025-11-02T03:59:59Z", "2025-11-01T00:00:00-04:00",
			"2025-11-02T00:00:00-04:00", "2025-11-01"},
		// Jordan's did the same, ahead of UTC, where time.Date takes the second midnight.
		{"two midnights ahead of UTC", "Asia/Amman", CalendarDay, 0, "2021-10-28T21:30:00Z", "2021-10-29T00:00:00+03:00",
			"2021-10-30T00:00:00+02:00", "2021-10-29"},
		{"two midnights by the Azores", "Atlantic/Azores", CalendarDay, 0, "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z",
			"2026-10-26T00:00:00-01:00", "2026-10-25"},
		// In 2026 Cuba's day with two midnights is the first of November: a month's start.
		{"month with two midnights", "America/Havana", CalendarMonth, 0, "2026-11-01T04:30:00Z", "2026-11-01T00:00:00-04:00",
			"2026-12-01T00:00:00-05:00", "2026-11"},
		// Samoa skipped 30 December 2011; the label of a day that never was is not used.
		{"day after a skipped one", "Pacific/Apia", CalendarDay, 0, "2011-12-30T10:00:00Z", "2011-12-31T00:00:00+14:00",
			"2012-01-01T00:00:00+14:00", "2011-12-31"},
		{"hour", "UTC", CalendarHour, 0, "2026-11-20T13:45:00Z", "2026-11-20T13:00:00Z", "2026-11-20T14:00:00Z",
			"2026-11-20T13"},
		{"hour before the epoch", "UTC", CalendarHour, 0, "1969-12-31T23:59:59.5Z", "1969-12-31T23:00:00Z",
			"1970-01-01T00:00:00Z", "1969-12-31T23"},
		{"hour in a half-hour zone", "Asia/Kolkata", CalendarHour, 0, "2026-11-20T13:15:00Z", "2026-11-20T12:30:00Z",
			"2026-11-20T13:30:00Z", "2026-11-20T18"},
		{"hour in a three-quarter zone", "Asia/Kathmandu", CalendarHour, 0, "2026-11-20T13:20:00Z", "2026-11-20T13:15:00Z",
			"2026-11-20T14:15:00Z", "2026-11-20T19"},
		{"hour in a half-hour zone behind", "America/St_Johns", CalendarHour, 0, "2026-11-20T13:15:00Z",
			"2026-11-20T12:30:00Z", "2026-11-20T13:30:00Z", "2026-11-20T09"},
		{"half-hour summer time keeps standard hours", "Australia/Lord_Howe", CalendarHour, 0, "2026-01-15T12:00:00Z",
			"2026-01-15T11:30:00Z", "2026-01-15T12:30:00Z", "2026-01-15T22"},
		{"fixed", "UTC", Fixed, time.Minute, "2026-11-20T13:45:59.999Z", "2026-11-20T13:45:00Z", "2026-11-20T13:46:00Z",
			"29919705"},
		{"fixed before the epoch", "UTC", Fixed, time.Minute, "1969-12-31T23:59:59Z", "1969-12-31T23:59:00Z",
			"1970-01-01T00:00:00Z", "-1"},
		{"fixed knows no zones", "Asia/Kolkata", Fixed, time.Hour, "2026-11-20T13:15:00Z", "2026-11-20T13:00:00Z",
			"2026-11-20T14:00:00Z", "498661"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := Window{Kind: c.kind, Length: c.length, Location: zone(t, c.zone)}
			at := moment(t, c.at)
			s := w.At(at)
			if !s.Start.Equal(moment(t, c.start)) || !s.End.Equal(moment(t, c.end)) {
				t.Errorf("span [%s, %s), want [%s, %s)", s.Start.In(w.Location), s.End.In(w.Location), c.start, c.end)
			}
			if got := w.Label(s.Index); got != c.label {
				t.Errorf("label %q, want %q", got, c.label)
			}
			if !s.Contains(at) {
				t.Errorf("the span does not contain %s", c.at)
			}
		})
	}
}

func TestSpanIsHalfOpen(t *testing.T) {
	s := Window{Kind: CalendarMonth}.At(moment(t, "2026-11-20T10:00:00Z"))
	if !s.Contains(s.Start) || s.Contains(s.End) || s.Contains(s.Start.Add(-1)) || !s.Contains(s.End.Add(-1)) {
		t.Errorf("span %v contains its end, or not its start", s)
	}
}

func TestWithoutWindows(t *testing.T) {
	for _, w := range []Window{{}, {Kind: Rolling, Length: time.Hour}} {
		s := w.At(moment(t, "2026-11-20T10:00:00Z"))
		if s != (Span{}) || w.Span(12) != (Span{}) || w.Label(3) != "" {
			t.Errorf("%v has the span %v", w.Kind, s)
		}
		if !s.Contains(moment(t, "0001-01-01T00:00:00Z")) || !s.Contains(moment(t, "9999-01-01T00:00:00Z")) {
			t.Errorf("%v: a span without end does not contain every moment", w.Kind)
		}
	}
}

func TestNilLocationIsUTC(t *testing.T) {
	at := moment(t, "2026-11-30T23:30:00-05:00") // December in UTC
	for k := CalendarMonth; k <= CalendarHour; k++ {
		if a, b := (Window{Kind: k}).At(at), (Window{Kind: k, Location: time.UTC}).At(at); a != b {
			t.Errorf("%v: %v without a location, %v in UTC", k, a, b)
		}
	}
}

// windowsAgree checks what holds for every window around a moment: it contains
// the moment, follows the one before without a gap, has a length that is
// possible, and is found again from its index and from both of its ends.
func windowsAgree(t *testing.T, w Window, at time.Time) {
	t.Helper()
	s := w.At(at)
	if !s.Contains(at) {
		t.Fatalf("%v: span %d [%s, %s) does not contain %s", w.Kind, s.Index, s.Start, s.End, at)
	}
	if got := w.Span(s.Index); got != s {
		t.Fatalf("%v: At gives %v, Span %v", w.Kind, s, got)
	}
	prev := w.Span(s.Index - 1)
	next := w.Span(s.Index + 1)
	if !prev.End.Equal(s.Start) || !next.Start.Equal(s.End) {
		t.Fatalf("%v: windows %d to %d do not touch: %v %v %v", w.Kind, prev.Index, next.Index, prev, s, next)
	}
	if got := w.At(s.Start).Index; got != s.Index {
		t.Fatalf("%v: the start of %d lies in %d", w.Kind, s.Index, got)
	}
	if got := w.At(s.End.Add(-1)).Index; got != s.Index {
		t.Fatalf("%v: the last moment of %d lies in %d", w.Kind, s.Index, got)
	}
	if w.Label(s.Index) == w.Label(s.Index+1) || w.Label(s.Index) == "" {
		t.Fatalf("%v: windows %d and %d share the label %q", w.Kind, s.Index, s.Index+1, w.Label(s.Index))
	}
}

var fuzzZones = []string{
	"UTC", "Europe/Berlin", "America/Havana", "America/Santiago", "America/Sao_Paulo", "America/St_Johns",
	"Asia/Kolkata", "Asia/Kathmandu", "Asia/Beirut", "Asia/Gaza", "Asia/Amman", "Africa/Cairo", "Africa/Casablanca",
	"Atlantic/Azores", "Australia/Lord_Howe", "Pacific/Chatham", "Asia/Tehran", "America/Asuncion", "Antarctica/Troll",
}

// lengthOf are the bounds of a window's length in zones whose clocks move by at
// most two hours.
func lengthOf(k Kind) (shortest, longest time.Duration) {
	const day = 24 * time.Hour
	switch k {
	case CalendarMonth:
		return 28*day - 2*time.Hour, 31*day + 2*time.Hour
	case CalendarDay:
		return day - 2*time.Hour, day + 2*time.Hour
	default:
		return time.Hour, time.Hour
	}
}

func FuzzCalendarWindows(f *testing.F) {
	for i := range fuzzZones {
		f.Add(uint8(i), int64(1793491200+i*86400*15), int64(i)) // around November 2026
		f.Add(uint8(i), int64(1743000000+i*3600), int64(1))
	}
	f.Fuzz(func(t *testing.T, z uint8, seconds, nanos int64) {
		loc := zone(t, fuzzZones[int(z)%len(fuzzZones)])
		seconds = floorMod(seconds, 60*366*86400) + 20*366*86400 // 1990 to 2050
		at := time.Unix(seconds, floorMod(nanos, 1e9))
		for k := CalendarMonth; k <= CalendarHour; k++ {
			w := Window{Kind: k, Location: loc}
			windowsAgree(t, w, at)
			s := w.At(at)
			shortest, longest := lengthOf(k)
			if n := s.End.Sub(s.Start); n < shortest || n > longest {
				t.Fatalf("%v in %s: window %s is %v long", k, loc, w.Label(s.Index), n)
			}
			if k == CalendarHour {
				continue
			}
			local := at.In(loc)
			layout := map[Kind]string{CalendarMonth: "2006-01", CalendarDay: "2006-01-02"}[k]
			if got := w.Label(s.Index); got != local.Format(layout) {
				t.Fatalf("%v in %s: %s is in window %s", k, loc, local, got)
			}
			// Nothing of the date before it is left over: the start is the first
			// moment of its date.
			if before := s.Start.Add(-1).In(loc); before.Format(layout) == s.Start.In(loc).Format(layout) {
				t.Fatalf("%v in %s: window %s starts late, at %s", k, loc, w.Label(s.Index), s.Start.In(loc))
			}
		}
	})
}

func FuzzFixedWindows(f *testing.F) {
	f.Add(int64(60_000_000_000), int64(1793491200), int64(0))
	f.Add(int64(1), int64(-1), int64(999_999_999))
	f.Fuzz(func(t *testing.T, length, seconds, nanos int64) {
		w := Window{Kind: Fixed, Length: time.Duration(floorMod(length, int64(1000*time.Hour)) + 1)}
		at := time.Unix(floorMod(seconds, 1<<33)-1<<32, floorMod(nanos, 1e9)) // 1833 to 2106
		windowsAgree(t, w, at)
		if s := w.At(at); s.End.Sub(s.Start) != w.Length {
			t.Fatalf("window of %v is %v long", w.Length, s.End.Sub(s.Start))
		}
	})
}

func TestWindowsOfEveryDayOfADecade(t *testing.T) {
	testenv.Sequential(t)
	for _, name := range fuzzZones {
		loc := zone(t, name)
		for _, k := range []Kind{CalendarDay, CalendarMonth} {
			w := Window{Kind: k, Location: loc}
			at := time.Date(2020, 1, 1, 12, 0, 0, 0, loc)
			for at.Year() < 2030 {
				windowsAgree(t, w, at)
				if n := w.At(at); k == CalendarDay && w.Label(n.Index) != at.Format(time.DateOnly) {
					t.Fatalf("%s: noon of %s is in %s", name, at, w.Label(n.Index))
				}
				at = at.AddDate(0, 0, 1)
			}
		}
	}
}

func TestKinds(t *testing.T) {
	tumbling := map[Kind]bool{CalendarMonth: true, CalendarDay: true, CalendarHour: true, Fixed: true}
	for k := Standing; k <= Rolling; k++ {
		text, err := k.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Kind
		if err := back.UnmarshalText(text); err != nil || back != k {
			t.Errorf("%v came back as %v, %v", k, back, err)
		}
		if k.Tumbling() != tumbling[k] {
			t.Errorf("%v tumbles: %v", k, k.Tumbling())
		}
	}
	var k Kind
	if err := k.UnmarshalText([]byte("fortnight")); err == nil {
		t.Error("an unknown kind was accepted")
	}
	if got := Kind(77).String(); got != "kind(77)" {
		t.Errorf("unknown kind prints as %q", got)
	}
}

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
