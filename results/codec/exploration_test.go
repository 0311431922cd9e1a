package codec_test

import (
	"bytes"
	"encoding/json"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/schema"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quotabench/quotabench/explore"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func explored(t testing.TB, name string, cfg explore.Config) *results.Search {
	t.Helper()
	r, err := explore.Run(t.Context(), testkit.Strategy(t, name), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// record is one with all in it that there can be.
func record(t testing.TB) results.Exploration {
	t.Helper()
	rec := results.NewExploration()
	faults := []quota.Fault{quota.FaultCrash, quota.FaultRetry, quota.FaultEviction, quota.FaultClock}
	rec.Searches = append(rec.Searches,
		explored(t, "check-then-set", explore.Config{}),
		explored(t, "incr-expire", explore.Config{Faults: faults, Bounds: explore.Bounds{MaxStates: 300}}),
		explored(t, "lua-reserve", explore.Config{Bounds: explore.Bounds{MaxStates: 300}}),
	)
	c, err := explore.Enumerate(t.Context(), testkit.Strategy(t, "check-then-set"), explore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rec.Censuses = append(rec.Censuses, c)
	again, err := explore.Replay(t.Context(), c.Shortest.Token, explore.Target{})
	if err != nil {
		t.Fatal(err)
	}
	rec.Replays = append(rec.Replays, again)
	rec.Searches[0].Withheld = []results.Withheld{{Code: "context-lost", Detail: "a command came without its context"}}
	rec.Failed = append(rec.Failed, results.FailedExplore{Strategy: "planted", Error: "it panics", Stack: "goroutine 1"})
	rec.Skipped = append(rec.Skipped, results.Skipped{Strategy: "planted", Reason: "it cannot"})
	return rec
}

func TestExplorationSchemaHolds(t *testing.T) {
	text, err := schema.Files.ReadFile("exploration.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("s.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]results.Exploration{"full": record(t), "least": results.NewExploration()} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
