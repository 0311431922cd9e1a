package engine

import (
	"testing"

	"github.com/quotabench/quotabench/quota"
)

func TestFaultsThatBefallReplies(t *testing.T) {
	want := map[quota.Fault]bool{quota.FaultCrash: true, quota.FaultLostReply: true, quota.FaultRetry: true, FaultTimeout: true}
	for _, f := range Faults {
		if got := BefallsReplies(f); got != want[f] {
			t.Errorf("%s: %t", f, got)
		}
	}
}
