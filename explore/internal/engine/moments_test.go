package engine

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Moments that are met depend on what ends windows, and on what is given back.
func TestMoments(t *testing.T) {
	took := Script{{Kind: Take, Units: 1}}
	gave := Script{{Kind: Take, Units: 1}, {Kind: Refund}, {Kind: Take, Units: 1}}
	for _, c := range []struct {
		kind         quota.Kind
		limit        int64
		script       Script
		halves, last bool
	}{
		{quota.FirstRequest, 1, took, true, true},
		{quota.FirstRequest, 2, took, true, false},
		{quota.FirstRequest, 1, gave, false, true},
		{quota.Fixed, 1, gave, true, false},
		{quota.Rolling, 1, took, true, false},
	} {
		setup := Setup{Scripts: []Script{took, c.script},
			Policy: quota.Policy{Limit: c.limit, Window: quota.Window{Kind: c.kind, Length: time.Minute}}}
		if setup.Halves() != c.halves || setup.KeysEndWindows() != c.last {
			t.Errorf("%+v: halves %v, last milliseconds %v", c, setup.Halves(), setup.KeysEndWindows())
		}
	}
	standing := Setup{Policy: quota.Policy{Limit: 1}}
	if rested := standing.Rested(Start); !rested.Equal(Start) {
		t.Errorf("a standing quota is the same after a rest, which ends at %v", rested)
	}
	monthly := Setup{Policy: quota.Policy{Limit: 1, Window: quota.Window{Kind: quota.CalendarMonth}}}
	if rested := monthly.Rested(Start); rested.Before(Start.AddDate(0, 1, 10)) {
		t.Errorf("a rest of months ends at %v", rested)
	}
}
