package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/claims"
	"github.com/quotabench/quotabench/internal/testenv"
)

// The strategy decides about a claim of ADR-005, and not its condition: with the repaired strategy, or with a queue that
// does not wait, the same condition holds.
func TestClaimsOfThreeTiersFollowTheStrategy(t *testing.T) {
	testenv.Sequential(t)
	built, err := os.ReadFile("../../internal/claims/records/adr-005.yaml")
	if err != nil {
		t.Fatal(err)
	}
	repaired := strings.NewReplacer(
		"explore three-tier ", "explore three-tier-hardened ",
		"three-tier --policy agent-api", "three-tier-hardened --policy agent-api",
		"three-tier --preset", "three-tier:lag=0s,batch=256 --preset",
	).Replace(string(built))
	ids := testenv.Pick("T8,T13", "T8,T9,T12,T13")
	for file, want := range map[string]claims.Verdict{string(built): claims.Refuted, repaired: claims.Holds} {
		for _, j := range judged(t, file, ids) {
			if j.Verdict != want {
				t.Errorf("%s: %s %s (%s), want %s\n%s", j.ID, j.Verdict, j.Measured, j.Why, want, strings.Join(j.Commands, "\n"))
			}
		}
	}
}

// judged are claims of a file, as the command judges them.
func judged(t *testing.T, file, ids string) []claims.Judgement {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "claims.yaml")
	if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := cli.Main([]string{"claims", path, "--id", ids, "--json", "--out", filepath.Join(dir, "out")}, &stdout, &stderr); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	var r claims.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil || len(r.Claims) != len(strings.Split(ids, ",")) {
		t.Fatalf("%v: %d claims of %s", err, len(r.Claims), ids)
	}
	return r.Claims
}
