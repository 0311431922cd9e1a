package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/testenv"
)

// Pages quote what sim and explore left, and bad directories leave nothing behind.
func TestPages(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	for _, args := range [][]string{
		{"sim", "liar", "--limit", "5", "--requests", "500", "--out", "figures/sim"},
		{"explore", "liar", "--out", "figures/explore"},
	} {
		if o := call(t.Context(), args...); o.code != ExitGate { // the liar leaks, and had promised not to
			t.Fatalf("%q: exit %d: %s", args, o.code, o.stderr)
		}
	}
	o := call(t.Context(), "pages", "figures", "--out", "reference")
	if o.code != ExitOK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	page, err := os.ReadFile("reference/liar.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# liar\n", "## Simulated\n", "Simulated in virtual time", "breaks the limit: **leak**", "quotabench explore --replay qb2."} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	index, err := os.ReadFile("reference/README.md")
	if err != nil || !strings.Contains(string(index), "[honest](honest.md)") {
		t.Errorf("the index, %v: %s", err, index)
	}
}

func TestPagesOfNothing(t *testing.T) {
	p := newPlace(t, map[string]string{"empty/note.txt": "", "damaged/results.json": "{", "old/exploration.json": `{"schema":1,"kind":"exploration"}`})
	for dir, want := range map[string]string{
		"empty": "holds no results.json", "nowhere": "nowhere", "damaged": "damaged/results.json", "old": "this quotabench reads 2: explore again",
	} {
		o := call(t.Context(), "pages", dir, "--out", "reference")
		if o.code != ExitUsage || !strings.Contains(o.stderr, want) || strings.Count(strings.TrimSpace(o.stderr), "\n") > 0 {
			t.Errorf("%s: exit %d: %s", dir, o.code, o.stderr)
		}
	}
	p.requireUntouched()
}

// What others wrote is linked, and never replaced.
func TestPagesSpareOthers(t *testing.T) {
	newPlace(t, map[string]string{"reference/study.md": "# A study\n\n[liar](liar.md)\n", "docs/README.md": "# Ours\n"})
	for range 2 { // the second time over its own pages
		if o := call(t.Context(), "pages", "--out", "reference"); o.code != ExitOK {
			t.Fatalf("exit %d: %s", o.code, o.stderr)
		}
	}
	page, err := os.ReadFile("reference/liar.md")
	if err != nil || !strings.Contains(string(page), "More: [A study](study.md).") {
		t.Errorf("the page does not link back (%v):\n%s", err, page)
	}
	if o := call(t.Context(), "pages", "--out", "docs"); o.code != ExitUsage || !strings.Contains(o.stderr, "README.md was not written by this command") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if left, err := os.ReadDir("docs"); err != nil || len(left) != 1 {
		t.Errorf("written to a directory of others: %v, %v", left, err)
	}
}
