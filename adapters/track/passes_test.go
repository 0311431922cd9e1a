package track

import (
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// TestPasses: a search without a claim passes only if no claim needs it and it had no time.
func TestPasses(t *testing.T) {
	two := []quota.Fault{quota.FaultLostReply, quota.FaultRetry}
	for name, c := range map[string]struct {
		search results.Search
		want   bool
	}{
		"claims":                {results.Search{Clients: 2, Runs: 1, Claim: "none found"}, true},
		"found":                 {results.Search{Clients: 2, Runs: 1, Claim: "none found", Findings: []results.Finding{{}}}, false},
		"withheld":              {results.Search{Clients: 3, Runs: 1}, false},
		"least, had no time":    {results.Search{Clients: 2}, false},
		"larger, had no time":   {results.Search{Clients: 2, Faults: two}, true},
		"larger, found at once": {results.Search{Clients: 2, Faults: two, Findings: []results.Finding{{}}}, false},
	} {
		if got := passes(&c.search); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
