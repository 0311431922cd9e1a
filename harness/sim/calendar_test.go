package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// TestCalendar plants boundaries of windows, and requires them back.
func TestCalendar(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones: ", err)
	}
	start := time.Date(2026, 2, 28, 22, 50, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		window      quota.Window
		last        time.Duration
		start, zone string
		ends        []time.Duration
	}{
		"month in Berlin": {quota.Window{Kind: quota.CalendarMonth, Location: berlin}, time.Hour, "2026-02-28T23:50:00+01:00",
			"Europe/Berlin", []time.Duration{10 * time.Minute}},
		"month in UTC": {quota.Window{Kind: quota.CalendarMonth}, time.Hour, "2026-02-28T22:50:00Z", "UTC", nil},
		"hours": {quota.Window{Kind: quota.CalendarHour}, 130 * time.Minute, "2026-02-28T22:50:00Z", "UTC",
			[]time.Duration{10 * time.Minute, 70 * time.Minute, 130 * time.Minute}},
		"fixed": {quota.Window{Kind: quota.Fixed, Length: time.Minute}, 90 * time.Second, "", "",
			[]time.Duration{time.Minute}},
		"too many": {quota.Window{Kind: quota.Fixed, Length: time.Second}, time.Hour, "", "", nil},
		"rolling":  {quota.Window{Kind: quota.Rolling, Length: time.Minute}, time.Hour, "", "", nil},
	} {
		s := sampler{drive: &drive{policy: &quota.Policy{Window: c.window}, epoch: start.UnixNano()},
			out: &results.Series{Samples: []results.Sample{{AtNS: int64(c.last)}}}}
		s.calendar()
		var want []int64
		for _, at := range c.ends {
			want = append(want, int64(at))
		}
		if s.out.Start != c.start || s.out.Zone != c.zone || !slices.Equal(s.out.WindowEndsNS, want) {
			t.Errorf("%s: %q, %q, %v", name, s.out.Start, s.out.Zone, s.out.WindowEndsNS)
		}
	}
}
