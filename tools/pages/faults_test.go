package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/claims"
)

// TestMatrix: the page has the verdict and the leak of each planted cell, and none where a strategy took no part.
func TestMatrix(t *testing.T) {
	leak := 1234.0
	r := &claims.Report{Claims: []claims.Judgement{
		{Record: "away", ID: "lease", Verdict: claims.Refuted, Close: true, Why: "it admits|all",
			Figures: []claims.Shown{{Key: "leak", Value: &leak}}},
		{Record: "away", ID: "gcra", Verdict: claims.Holds, Figures: []claims.Shown{{Key: "leak", Value: new(float64)}}},
		{Record: "late", ID: "lease:down=open", Verdict: claims.Undeclared},
		{Record: "late", ID: "gcra", Verdict: claims.NotHere},
		{Record: "last", ID: "lease", Verdict: claims.Undecided, Why: "no load"},
		{Record: "redis-away", ID: "gcra", Verdict: claims.Holds},
	}}
	page := string(matrix(r).Bytes)
	for _, want := range []string{
		"\n## Redis\n\n|strategy|redis-away|\n|---|---|\n|[gcra](strategies/gcra.md)|✓|\n\n## Callers",
		"\n|strategy|away|late|last|\n", "\n|[lease](strategies/lease.md)|✗+1,234~||?|\n",
		"\n|[gcra](strategies/gcra.md)|✓|||\n",
		"\n|[lease:down=open](strategies/lease.md)||–||\n",
		"✗ refuted, ? undecided, ✓ holds, – nothing declared, ~ not in each round, +N",
		"\n## Refuted or undecided\n\n- [lease](strategies/lease.md), `away`: refuted: it admits\\|all\n" +
			"- [lease](strategies/lease.md), `last`: undecided: no load\n\nAll",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %q:\n%s", want, page)
		}
	}
	if !Generated(matrix(r).Bytes) {
		t.Error("it does not say that it is generated")
	}
}

// TestFaultsAreJudged: the page follows from records, and not from the report beside them; what is kept of a matrix
// suffices.
func TestFaultsAreJudged(t *testing.T) {
	from := t.TempDir()
	to := filepath.Join(t.TempDir(), "faults")
	b, err := json.Marshal(claims.Report{Schema: claims.Schema, Claims: []claims.Judgement{
		{Record: "redis-away", ID: "lease", Verdict: claims.Holds, Directories: []string{"redis-away"},
			Commands: []string{"quotabench run lease"}},
	}})
	if err == nil {
		err = os.WriteFile(filepath.Join(from, "faults.json"), b, 0o644)
	}
	if err == nil {
		err = keep(from, to, "faults")
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := readFaults(to)
	if err != nil || len(r.Claims) != 1 || r.Claims[0].ID != "lease" || r.Claims[0].Verdict != claims.Undecided {
		t.Fatalf("%v, %+v without a record, and no other faults", err, r)
	}
	if r, err := readFaults(t.TempDir()); r != nil || err != nil {
		t.Errorf("%v, %v of a directory without a matrix", r, err)
	}
}

// TestFaultsAreMeasured: each fault is measured with the settings that it has now.
func TestFaultsAreMeasured(t *testing.T) {
	matrix, err := readFaults(filepath.Join("..", "..", "results", "baseline", "faults"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range matrix.Claims {
		cell := &matrix.Claims[i]
		if cell.Verdict == claims.Undecided && strings.Contains(cell.Why, "did not make its run") {
			t.Errorf("%s of %s: %s: measure it again by quotabench faults", cell.Record, cell.ID, cell.Why)
		}
	}
}
