package codec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// TestSummariesFollowFromRuns: a file says what its runs say, whatever it was
// written with, and one that was changed by hand is refused.
func TestSummariesFollowFromRuns(t *testing.T) {
	f := fixture.New(3, fixture.Strategies[3], fixture.Strategies[8])
	f.Summaries = []results.Summary{{Label: "invented"}}
	good := fixture.Must[[]byte](t)(Encode(f))
	x := fixture.Must[results.File](t)(Decode(good))
	if len(x.Summaries) != 2 || x.Summaries[0].Label != "check-then-set" || x.Summaries[0].Leak.Units == 0 ||
		x.Summaries[0].Service.Curve == nil {
		t.Errorf("read %d summaries, the first %+v", len(x.Summaries), x.Summaries[0])
	}
	for want, spoil := range map[string]func(summaries []any) []any{
		"summaries[0].leak.units does not follow from the runs": func(s []any) []any {
			s[0].(map[string]any)["leak"].(map[string]any)["units"] = 0
			return s
		},
		"summaries[1].service_ns.p99.value does not follow": func(s []any) []any {
			s[1].(map[string]any)["service_ns"].(map[string]any)["p99"].(map[string]any)["value"] = 1.5
			return s
		},
		"there are 1, and 2 follow from the runs": func(s []any) []any { return s[:1] },
		"summaries[0].audit.reasons does not follow": func(s []any) []any {
			s[0].(map[string]any)["audit"].(map[string]any)["reasons"] = []any{map[string]any{"code": "x", "discards": "note",
				"detail": "y"}}
			return s
		},
		"summaries.0: missing property 'throughput_per_": func(s []any) []any {
			delete(s[0].(map[string]any), "throughput_per_s")
			return s
		},
	} {
		d := json.NewDecoder(strings.NewReader(string(good)))
		d.UseNumber()
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		m["summaries"] = spoil(m["summaries"].([]any))
		if _, err := Decode(fixture.Must[[]byte](t)(json.Marshal(m))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
	}
}

// TestSummariesOfAnotherProcessor: sums of products are rounded differently there.
func TestSummariesOfAnotherProcessor(t *testing.T) {
	f := fixture.New(3, fixture.Strategies[3])
	s := results.Summarise(f.Runs)
	s[0].Throughput.Value *= 1 + 1e-14
	f.Summaries = s
	f = complete(f)
	if err := checkSummaries(&f); err != nil {
		t.Error(err)
	}
	f.Summaries = results.Summarise(f.Runs)
	f.Summaries[0].Throughput.Value *= 1 + 1e-6
	f = complete(f)
	if err := checkSummaries(&f); err == nil {
		t.Error("a throughput that is off by a millionth was taken for the same")
	}
}

// TestEachValueIsStoredOnce: a latency in parts has no histogram next to them.
func TestEachValueIsStoredOnce(t *testing.T) {
	h := results.NewHistogram()
	for i := range 10_000 {
		h.Record(int64(1000 + 37*i))
	}
	f := fixture.New(1, fixture.Strategies[0])
	f.Runs[0].Service = fixture.Must[results.Latency](t)(h.Latency())
	bare := len(fixture.Must[[]byte](t)(Encode(f)))
	f.Runs[0].Service = fixture.Must[results.Latency](t)(results.LatencyOf([]results.Part{{Outcome: "admitted",
		Tier: "redis", Histogram: h}}))
	parts := len(fixture.Must[[]byte](t)(Encode(f)))
	if parts > bare+1000 {
		t.Errorf("%d bytes with the parts, %d without", parts, bare)
	}
}
