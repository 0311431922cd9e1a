package ranking_test

import (
	"path/filepath"
	"testing"

	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// TestReferenceResults: strategies do what their records say.
func TestReferenceResults(t *testing.T) {
	for dir, want := range map[string]map[string]ranking.Group{
		"run-slow": {
			"pg-conditional": ranking.Enforces, "pg-row-lock": ranking.Enforces, "three-tier-hardened": ranking.Enforces,
			"pg-check": ranking.Fails, "sql-window-log": ranking.Fails, "three-tier": ranking.Fails, "redis-hash": ranking.Fails,
		},
		"sim-month-end": { // with clocks that differ by two seconds
			"scheduled-reset": ranking.Fails, "edge-kv": ranking.Fails, "incr-expire": ranking.Fails,
			"decr-literal": ranking.Unusable,
			"unlimited":    ranking.Baseline, "exact": ranking.Baseline,
		},
	} {
		f, err := codec.Read(filepath.Join("../../../results/baseline", dir, "results.json"))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]ranking.Strategy{}
		for _, x := range ranking.Of(f)[0].Strategies {
			got[x.Label] = x
		}
		for label, group := range want {
			if got[label].Group != group {
				t.Errorf("%s: %s: %q, want %q: %s", dir, label, got[label].Group, group, got[label].Reason)
			}
		}
	}
}

// TestNothingRan: a record without runs has no answer.
func TestNothingRan(t *testing.T) {
	if a := ranking.Of(results.File{}); len(a) != 0 {
		t.Errorf("%+v", a)
	}
}
