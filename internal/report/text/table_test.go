package text

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

func render(t testing.TB, f results.File) string {
	t.Helper()
	var b bytes.Buffer
	if err := Table(&b, layout.Page{}, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableGolden(t *testing.T) {
	for name, f := range fixture.Cases() {
		path := filepath.Join("testdata", "table-"+name+".golden")
		got := render(t, f)
		if testenv.Update() {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := string(fixture.Must[[]byte](t)(os.ReadFile(path))); got != want {
			t.Errorf("%s: the table differs from %s; if it should, run with -update\n%s", name, path, got)
		}
	}
}

func TestTableSaysWhatMatters(t *testing.T) {
	cases := fixture.Cases()
	for name, wants := range map[string][]string{
		"core": {"0 of 10,000 (≤ 0.030 %)", "BROKEN", "rounds kept: 10 of 10", "95 % confidence", "process 7.0.15",
			"fsync on", "seed 42", "memory-deque: policy",
			"pg-check (1 of 10 rounds)", "-1 after jobs"},
		"few": {"interrupted", "fewer than 6 rounds are kept, so there are no brackets", "rounds kept: 3 of 3"},
		"open": {"intended start", "open loop, poisson at 5,000 requests/s", "saturated", "rounds kept: 7 of 7",
			"line 8899: unterminated user agent, used"},
		"simulated": {"SIMULATED", "MODELLED LATENCY", "(modelled)", "modelled p99", "0.40m", "not to PostgreSQL"},
		"odd": {"invalid", "INVALID history-overflow", "TIMINGS histogram-overflow",
			"12 requests failed|72 requests failed",
			"~ 12 latencies were beyond the histogram's range: latencies are upper bounds"},
		"uploads": {
			"user-links: 1 e-mail,", "popularity zipf:1.1", "cost uniform:1-5", "fill 0.3", "over-quota 0.05",
			"trouble redis:away@0.3-0.6", "trouble instances:restarted@0.7",
			"one connection per worker, at most 64 to Redis and 16 to PostgreSQL",
			"2.00 x limit", "SETTLEMENT", "commit or refund takes", "≤ 245 e-mails undecided|≤ 245 e-mails kept",
			"≤ 1 e-mail undecided",
			"[all strategies, 2 of 10 rounds]", "rounds kept: 10 of 10", "jobs-failed: e.g. ", "COST, EXACT", "COST, SAMPLED",
			"client: all of this process", "run queue: how long",
		},
		"empty": {"No strategy was run."},
	} {
		got := strings.Join(strings.Fields(render(t, cases[name])), " ")
		for _, want := range wants {
			ok := false
			for _, alt := range strings.Split(want, "|") {
				ok = ok || strings.Contains(got, alt)
			}
			if !ok {
				t.Errorf("%s: nothing about %q", name, want)
			}
		}
	}
	if got := render(t, cases["uploads"]); strings.Contains(got, "pool 0") || strings.Contains(got, " 1 e-mails") {
		t.Error("an internal value or a wrong plural is shown")
	}
	if got := render(t, cases["core"]); strings.Contains(got, "SETTLEMENT") || strings.Contains(got, "ROLLING") ||
		strings.Contains(got, "SCHEDULING DELAY") ||
		strings.Contains(got, "keys without") || strings.Contains(got, "asked for") || strings.Contains(got, "outages") {
		t.Error("a section or column has nothing to show")
	}
	if got := render(t, cases["simulated"]); strings.Contains(got, "decisions\n") || strings.Contains(got, "INCR loop") {
		t.Error("a simulation reports a throughput")
	}
}

type brokenWriter struct{}

var errBroken = errors.New("disk full")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestTableWriteError(t *testing.T) {
	if err := Table(brokenWriter{}, layout.Page{}, fixture.New(1, fixture.Strategies[0])); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}
