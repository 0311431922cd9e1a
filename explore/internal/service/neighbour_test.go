package service_test

import (
	"os"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/testkit"
)

// TestNeighbours: subjects whose counters meet are found by default, with one caller, and told from a race.
func TestNeighbours(t *testing.T) {
	for kind, want := range map[string]explore.Property{"clears": explore.Leak, "shares": explore.FalseReject, "lua": ""} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			asked := explore.Config{Process: explore.Process{Service: os.Args[0]}}
			searches := 0
			for _, cfg := range explore.Searches(testkit.Strategy(t, "http"), asked) {
				if cfg.Clients != 1 || len(cfg.Scripts) == 0 || !cfg.Scripts[0].Others() {
					continue
				}
				searches++
				search, _, err := counted(t, kind, cfg)
				if err != nil {
					t.Fatal(err)
				}
				found := explore.Property("")
				if len(search.Findings) > 0 {
					found = search.Findings[0].Property
				}
				if found != want {
					t.Errorf("found %q, want %q", found, want)
				}
			}
			if searches != 1 {
				t.Errorf("%d searches have another subject, want 1", searches)
			}
		})
	}
}
