package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/claims"
	"github.com/quotabench/quotabench/internal/testenv"
)

// forms are figures beside a verdict, some of them of measured runs.
var forms = regexp.MustCompile(`(?m)^ +form: .*\n`)

// verdict judges a claim of a built-in file in which strategies are replaced: old, new, ...
func verdict(t *testing.T, file, id string, replace ...string) claims.Verdict {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "claims", "records", file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, file)
	changed := strings.NewReplacer(replace...).Replace(forms.ReplaceAllString(string(text), ""))
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	var report claims.Report
	args := []string{"claims", path, "--id", id, "--json", "--quiet", "--out", filepath.Join(dir, "out")}
	if code := cli.Main(args, &out, &errs); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report.Claims[0].Verdict
}

// swap is a claim with its verdict as it is written, and if other strategies are run for it: old, new, ...
type swap struct {
	file, id    string
	want, other claims.Verdict
	replace     []string
}

// TestVerdictsFollowTheStrategy requires another verdict on a claim if another strategy is run for it, or nothing goes wrong.
func TestVerdictsFollowTheStrategy(t *testing.T) {
	const tenants, web = "adr-rm-3.yaml", "projectepu.yaml"
	searched := []swap{
		{tenants, "R1", claims.Holds, claims.Refuted, []string{"explore check-then-set", "explore lua-reserve --jobs 0"}},
		{tenants, "R16", claims.Holds, claims.Refuted, []string{"lua-reserve --jobs 0 --faults evic", "lua-reserve-hardened --jobs 0 --faults evic"}},
		{tenants, "R17", claims.Holds, claims.Refuted, []string{"explore app-lock", "explore lua-reserve-hardened"}},
	}
	simulated := []swap{
		{tenants, "R7", claims.HoldsOnlyIf, claims.Holds, []string{"sim lua-reserve:", "sim lua-reserve-hardened:"}},
		{tenants, "R13", claims.Refuted, claims.Holds, []string{"sim lua-reserve:", "sim lua-reserve-hardened:"}},
		{tenants, "R14", claims.Refuted, claims.Holds, []string{":failover=100ms", ""}},
		{tenants, "R19", claims.Refuted, claims.Holds, []string{"sim lua-reserve:", "sim lua-reserve-hardened:"}},
		{tenants, "R20", claims.Refuted, claims.Holds, []string{"sim lua-reserve ", "sim lua-reserve-hardened "}},
		{web, "E4", claims.Holds, claims.Refuted, []string{"explore fixed-window --faults", "explore incr-expire --faults"}},
		{web, "E6", claims.Holds, claims.Refuted, []string{"sim memory-deque", "sim sliding-log"}},
	}
	for _, c := range testenv.Pick(searched, slices.Concat(searched, simulated)) {
		if got := verdict(t, c.file, c.id); got != c.want {
			t.Errorf("%s: %s, want %s", c.id, got, c.want)
		}
		if got := verdict(t, c.file, c.id, c.replace...); got != c.other {
			t.Errorf("%s with %q: %s, want %s", c.id, c.replace[1], got, c.other)
		}
	}
}
