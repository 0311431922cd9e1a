package text

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
)

func TestPlacementTexts(t *testing.T) {
	apart := &results.Placement{Mode: codes.PlacedApart, Harness: "0", Stores: "1", Procs: 1, Reason: "why"}
	again := *apart
	shared := &results.Placement{Mode: codes.PlacedShared, Procs: 3, Reason: "why not"}
	beside := &results.Placement{Mode: codes.PlacedBeside, Harness: "0-2", Procs: 3, Reason: "a reason"}
	group := func(placements ...*results.Placement) (out []results.Summary) {
		for i, p := range placements {
			out = append(out, results.Summary{Label: string(rune('a' + i)), Placement: p})
		}
		return out
	}
	paced := group(apart, shared)
	for i := range paced {
		paced[i].Paced = &results.Summary{Label: paced[i].Label, Placement: shared}
	}
	for _, tc := range []struct {
		group []results.Summary
		want  []string
	}{
		{paced[:1], []string{
			"harness on 0, stores on 1, GOMAXPROCS 1 (apart: why)",
			"at the common rate: shared by harness and stores, GOMAXPROCS 3 (shared: why not)",
		}},
		{group(nil, nil), nil},
		{group(beside), []string{"harness on 0-2, GOMAXPROCS 3 (beside: a reason)"}},
		{group(shared, apart, &again, shared, apart), []string{
			"harness on 0, stores on 1, GOMAXPROCS 1 (apart: why)",
			"a, d: shared by harness and stores, GOMAXPROCS 3 (shared: why not)",
		}},
	} {
		if got := placementTexts(tc.group); !slices.Equal(got, tc.want) {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
