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

// TestVerdictsFollowTheTiers judges claims of ADR-005 with another strategy, or another option, in the place of the
// record's: a verdict that stays is none on the strategy.
func TestVerdictsFollowTheTiers(t *testing.T) {
	testenv.Sequential(t)
	for _, c := range []struct {
		id            string
		written, here string
		before, after claims.Verdict
		long          bool
	}{
		{"T18", "sim three-tier --policy agent-tokens", "sim three-tier:filter=fixed --policy agent-tokens", claims.Holds, claims.Refuted, true},
		{"T19", "explore three-tier --", "explore three-tier-hardened --", claims.Refuted, claims.Holds, false},
		{"T21", "three-tier", "three-tier-hardened", claims.Refuted, claims.Holds, true},
		{"T23", "write=literal", "write=through", claims.Refuted, claims.Holds, false},
		{"T24", "names=literal", "names=schema", claims.Refuted, claims.Holds, true},
		{"T28", "explore redis-hash --", "explore redis-hash:write=through --", claims.Refuted, claims.Holds, false},
		{"T31", "source=replica", "source=primary", claims.Refuted, claims.Holds, false},
	} {
		t.Run(c.id, func(t *testing.T) {
			if c.long {
				testenv.Long(t)
			}
			text := recordWith(t, c.id)
			if got := verdictOn(t, c.id, text); got != c.before {
				t.Errorf("%s: %s, want %s", c.id, got, c.before)
			}
			if got := verdictOn(t, c.id, strings.ReplaceAll(text, c.written, c.here)); got != c.after {
				t.Errorf("%s with %s for %s: %s, want %s", c.id, c.here, c.written, got, c.after)
			}
		})
	}
}

// recordWith is the built-in file that has a claim.
func recordWith(t *testing.T, id string) string {
	t.Helper()
	paths, err := filepath.Glob("../../internal/claims/records/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "- id: "+id+"\n") {
			return string(b)
		}
	}
	t.Fatalf("no record has %s", id)
	return ""
}

// verdictOn is that on a claim of a file with this text.
func verdictOn(t *testing.T, id, text string) claims.Verdict {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "claims.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := cli.Main([]string{"claims", path, "--id", id, "--out", filepath.Join(dir, "out"), "--json"}, &out, &errs)
	var r claims.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Claims) != 1 {
		t.Fatalf("exit %d, %d claims, %v: %s", code, len(r.Claims), err, errs.String())
	}
	return r.Claims[0].Verdict
}
