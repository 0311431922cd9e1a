package codec_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/strategies"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quotabench/quotabench/harness/explore"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func chosen(t testing.TB, name string) strategies.Selection {
	t.Helper()
	list, err := strategies.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func explored(t testing.TB, name string, cfg explore.Config) *results.Search {
	t.Helper()
	r, err := explore.Run(t.Context(), chosen(t, name), cfg)
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
		explored(t, "incr-expire", explore.Config{Faults: faults, MaxStates: 300}),
		explored(t, "lua-reserve", explore.Config{MaxStates: 300}),
	)
	c, err := explore.Enumerate(t.Context(), chosen(t, "check-then-set"), explore.Config{})
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
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(codec.ExplorationSchema))
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

// The schema and the Go types say the same: each field is in both, described, and
// required where Go always writes it.
func TestExplorationSchemaDescribesTypes(t *testing.T) {
	var root struct {
		node
		Defs map[string]node `json:"$defs"`
	}
	if err := json.Unmarshal(codec.ExplorationSchema, &root); err != nil {
		t.Fatal(err)
	}
	for name, typ := range map[string]reflect.Type{
		"": reflect.TypeFor[results.Exploration](), "search": reflect.TypeFor[results.Search](), "census": reflect.TypeFor[results.Census](),
		"abort": reflect.TypeFor[results.Abort](), "replay": reflect.TypeFor[results.Replay](), "finding": reflect.TypeFor[results.Finding](), "step": reflect.TypeFor[results.Step](),
		"column": reflect.TypeFor[results.Column](), "withheld": reflect.TypeFor[results.Withheld](),
	} {
		n := root.node
		if name != "" {
			n = root.Defs[name]
		}
		known := map[string]bool{}
		for _, member := range reflect.VisibleFields(typ) { // those of embedded structs as well
			tag := member.Tag.Get("json")
			if tag == "" {
				continue
			}
			field, opts, _ := strings.Cut(tag, ",")
			known[field] = true
			p, ok := n.Properties[field]
			if !ok || len(p.Description) < 5 && field != "schema" {
				t.Errorf("%s.%s is not in the schema, or not described", typ, field)
			}
			if strings.Contains(opts, "omitempty") == slices.Contains(n.Required, field) {
				t.Errorf("%s.%s: Go and the schema differ on whether it is always there", typ, field)
			}
		}
		for field := range n.Properties {
			if !known[field] {
				t.Errorf("%s.%s is in the schema only", typ, field)
			}
		}
	}
}

// node is what is read of a schema.
type node struct {
	Description string          `json:"description"`
	Properties  map[string]node `json:"properties"`
	Required    []string        `json:"required"`
}
