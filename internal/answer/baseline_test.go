package answer_test

import (
	"path/filepath"
	"testing"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// TestReferenceResults: strategies do what their records say.
func TestReferenceResults(t *testing.T) {
	for dir, want := range map[string]map[string]answer.Group{
		"run-slow": {
			"pg-conditional": answer.Enforces, "pg-row-lock": answer.Enforces, "three-tier-hardened": answer.Enforces,
			"pg-check": answer.Fails, "sql-window-log": answer.Fails, "three-tier": answer.Fails, "redis-hash": answer.Fails,
		},
		"sim-month-end": { // with clocks that differ by two seconds
			"scheduled-reset": answer.Fails, "edge-kv": answer.Fails, "incr-expire": answer.Fails, "decr-literal": answer.Unusable,
			"unlimited": answer.Baseline, "exact": answer.Baseline,
		},
	} {
		f, err := codec.Read(filepath.Join("../../results/baseline", dir, "results.json"))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]answer.Strategy{}
		for _, x := range answer.Of(f)[0].Strategies {
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
	if a := answer.Of(results.File{}); len(a) != 0 {
		t.Errorf("%+v", a)
	}
}
