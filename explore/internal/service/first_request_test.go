package service_test

import (
	"os"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
)

// TestFirstRequests: keys that never expire are looked for from the first request of a subject on, whatever limit was
// named, and in a request that is rejected.
func TestFirstRequests(t *testing.T) {
	testenv.Sequential(t)
	const race, crash = "race", "crash"
	for kind, want := range map[string]string{
		"incr-expire": crash, "incr-get-expire": race, "blocks-in-two": crash, "lua": "",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			asked := explore.Config{Process: explore.Process{Service: os.Args[0]}, Limit: 4}
			found := ""
			for _, cfg := range explore.Searches(testkit.Strategy(t, "http"), asked) {
				if !slices.Equal(cfg.Properties, []explore.Property{explore.TTL}) {
					continue
				}
				search, _, err := counted(t, kind, cfg)
				if err != nil {
					t.Fatal(err)
				}
				if search.Found(explore.TTL) == nil || found != "" {
					continue
				}
				found = race
				if len(cfg.Faults) > 0 {
					found = crash
				}
			}
			if found != want {
				t.Errorf("found by a %s, want by a %s", found, want)
			}
		})
	}
}
