package explore_test

import (
	"bytes"
	"encoding/json"
	"github.com/quotabench/quotabench/quota"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quotabench/quotabench/harness/explore"
)

// record is one with all in it that there can be.
func record(t testing.TB) explore.Record {
	t.Helper()
	rec := explore.NewRecord()
	faults := []quota.Fault{quota.FaultCrash, quota.FaultRetry, quota.FaultEviction, quota.FaultClock}
	rec.Searches = append(rec.Searches,
		run(t, "check-then-set", explore.Config{}),
		run(t, "incr-expire", explore.Config{Faults: faults, MaxStates: 300}),
		run(t, "lua-reserve", explore.Config{MaxStates: 300}),
	)
	c, err := explore.Enumerate(t.Context(), choose(t, "check-then-set"), explore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rec.Censuses = append(rec.Censuses, c)
	again, err := explore.Replay(t.Context(), c.Shortest.Token, nil)
	if err != nil {
		t.Fatal(err)
	}
	rec.Replays = append(rec.Replays, again)
	return rec
}

func TestSchemaHolds(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(explore.Schema))
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
	for name, r := range map[string]explore.Record{"full": record(t), "least": explore.NewRecord()} {
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
func TestSchemaDescribesTypes(t *testing.T) {
	var root struct {
		node
		Defs map[string]node `json:"$defs"`
	}
	if err := json.Unmarshal(explore.Schema, &root); err != nil {
		t.Fatal(err)
	}
	for name, typ := range map[string]reflect.Type{
		"": reflect.TypeFor[explore.Record](), "search": reflect.TypeFor[explore.Result](), "census": reflect.TypeFor[explore.Census](),
		"happening": reflect.TypeFor[explore.Happening](), "replay": reflect.TypeFor[explore.Replayed](), "finding": reflect.TypeFor[explore.Finding](), "step": reflect.TypeFor[explore.Step](),
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
