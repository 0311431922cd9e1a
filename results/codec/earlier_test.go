package codec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// TestEarlierSchema: a record of the schema before this one, which discarded the timings of
// disturbed rounds, has them marked, and its summaries are computed anew.
func TestEarlierSchema(t *testing.T) {
	f := fixture.New(6, fixture.Strategies[0])
	for i := range f.Runs {
		f.Runs[i].Audit.Discard("machine-busy", results.Disturbs, "planted")
	}
	var whole map[string]any
	d := json.NewDecoder(strings.NewReader(string(fixture.Must[[]byte](t)(Encode(f)))))
	d.UseNumber()
	if err := d.Decode(&whole); err != nil {
		t.Fatal(err)
	}
	whole["schema"] = 3
	whole["summaries"] = []any{map[string]any{"timings_count": false}}
	for _, run := range whole["runs"].([]any) {
		audit := run.(map[string]any)["audit"].(map[string]any)
		audit["timings_valid"] = false
		audit["reasons"].([]any)[0].(map[string]any)["strikes"] = "round"
	}
	got := fixture.Must[results.File](t)(Decode(fixture.Must[[]byte](t)(json.Marshal(whole))))
	s := got.Summaries
	if got.Schema != results.SchemaVersion || len(s) != 1 || s[0].Timed != 6 || !s[0].Throughput.Disturbed ||
		!s[0].Service.P99.Shown() {
		t.Errorf("schema %d, summaries %+v", got.Schema, s)
	}
	if again := fixture.Must[results.File](t)(Decode(fixture.Must[[]byte](t)(Encode(got)))); len(again.Summaries) != 1 {
		t.Errorf("written again it has %d summaries", len(again.Summaries))
	}
}
