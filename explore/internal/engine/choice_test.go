package engine

import (
	"slices"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// A command is a step of its own, apart from what comes before it and from its reply, if a fault may come between.
func TestFaultsThatBefallCalls(t *testing.T) {
	want := map[Place][]quota.Fault{
		Asking:    {quota.FaultOutage},
		Answering: {quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, FaultTimeout},
	}
	for _, f := range Faults {
		s := Setup{Faults: []quota.Fault{f}}
		for at, faults := range want {
			if got := s.HasFaultAt(at); got != slices.Contains(faults, f) {
				t.Errorf("%s at %d: %t", f, at, got)
			}
		}
	}
	if (&Setup{}).HasFaultAt(Asking) {
		t.Error("no fault befalls a call")
	}
}

// TestFaultsHaveTexts: without one, a timeline would show a fault of a call as its command.
func TestFaultsHaveTexts(t *testing.T) {
	for _, injection := range injections {
		if injection.at != Done && !injection.event.Injected() {
			t.Errorf("%s: the event %s has no text in internal/codes", injection.fault, injection.event)
		}
	}
}
