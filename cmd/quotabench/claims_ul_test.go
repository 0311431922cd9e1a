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

// TestCounterClaimsFollowTheStrategy requires another verdict on a claim about counters with an end if another strategy
// is run for it.
func TestCounterClaimsFollowTheStrategy(t *testing.T) {
	const users, links = "adr-008.yaml", "adr-009.yaml"
	cases := []struct {
		file, id    string
		want, other claims.Verdict
		replace     []string
	}{
		{users, "U3", claims.Holds, claims.Refuted, []string{"sim incr-expire --policy user-links", "sim fixed-window --policy agent-api"}},
		{users, "U5-killed", claims.Refuted, claims.Holds, []string{"explore incr-expire", "explore incr-expire-atomic"}},
		{users, "U6", claims.Holds, claims.Refuted, []string{"sim incr-expire --policy", "sim incr-expire:down=open --policy"}},
		{users, "U12", claims.HoldsOnlyIf, claims.Holds, []string{"sim incr-expire --policy", "sim redis-durable --policy"}},
		{links, "L1", claims.Refuted, claims.Holds, []string{"decr-literal", "decr-expire:init=listing"}},
		{links, "L3-expiry", claims.Refuted, claims.Holds, []string{"explore decr-expire:init=listing", "explore incr-expire-atomic",
			"explore decr-expire --faults", "explore incr-expire-atomic --faults"}},
		{links, "L5", claims.Holds, claims.Refuted, []string{"sim decr-expire --policy", "sim decr-expire:down=open --policy"}},
		{links, "L6", claims.Refuted, claims.Holds, []string{"sim decr-expire --policy", "sim incr-expire-atomic --policy"}},
		{users, "U4", claims.HoldsOnlyIf, claims.Refuted, []string{"sim incr-expire --preset", "sim scheduled-reset:missed=1 --preset"}},
		{users, "U9", claims.Holds, claims.Refuted, []string{"scheduled-reset:missed=1", "exact"}},
	}
	for _, c := range cases[:testenv.Pick(len(cases)-2, len(cases))] { // the last take longer
		if got := judgedWith(t, c.file, c.id); got != c.want {
			t.Errorf("%s: %s, want %s", c.id, got, c.want)
		}
		if got := judgedWith(t, c.file, c.id, c.replace...); got != c.other {
			t.Errorf("%s with %q: %s, want %s", c.id, c.replace[1], got, c.other)
		}
	}
}

// judgedWith is the verdict on a claim of a built-in file in which texts are replaced: old, new, ...
func judgedWith(t *testing.T, file, id string, replace ...string) claims.Verdict {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "claims", "records", file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, file)
	if err := os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	var report claims.Report
	if code := cli.Main([]string{"claims", path, "--id", id, "--json", "--quiet", "--out", filepath.Join(dir, "out")}, &out, &errs); code != cli.ExitOK {
		t.Fatalf("%s with %q: exit %d: %s", id, replace, code, &errs)
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if c := report.Claims[0]; c.Verdict == claims.Undecided {
		t.Errorf("%s with %q: undecided: %s", id, replace, c.Why)
	}
	return report.Claims[0].Verdict
}
