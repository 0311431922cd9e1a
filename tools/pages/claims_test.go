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

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/claims"
)

var ids = regexp.MustCompile(`\b[A-Z][0-9]+[a-z]?(-[a-z]+)?\b`)

// TestSummariesAgree: what is to be kept holds, and what is to be changed does not, by the committed records.
func TestSummariesAgree(t *testing.T) {
	v := evidence(t).Verdicts
	for _, f := range v.Files {
		verdicts := map[string]claims.Verdict{}
		for _, j := range v.of(f.Record) {
			verdicts[j.ID] = j.Verdict
		}
		for _, part := range []struct {
			text string
			may  claims.Verdict
		}{{f.Summary.Keep, claims.Holds}, {f.Summary.Change, claims.Refuted}} {
			named := ids.FindAllString(part.text, -1)
			if len(named) == 0 {
				t.Errorf("%s: a summary names no claim: %q", f.Record, part.text)
			}
			for _, id := range named {
				if got := verdicts[id]; got != part.may && got != claims.HoldsOnlyIf {
					t.Errorf("%s: the verdict on %s is %q, and the summary says %q: change the summary in "+
						"internal/report/claims/records", f.Record, id, got, part.text)
				}
			}
		}
		if f.Summary.Instead == "" {
			t.Errorf("%s: no strategy does it instead", f.Record)
		}
	}
}

// TestVerdictsAreJudged: no verdict of a page is that of the report that lies beside the records, and one without its
// record is undecided. Without QUOTABENCH_LONG, the records of one design record alone are there.
func TestVerdictsAreJudged(t *testing.T) {
	want := evidence(t).Verdicts
	dir := filepath.Join(t.TempDir(), "claims")
	if err := os.CopyFS(dir, os.DirFS(want.Dir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "claims.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	typed := bytes.ReplaceAll(b, []byte(`"verdict": "refuted"`), []byte(`"verdict": "holds"`))
	if bytes.Equal(typed, b) {
		t.Fatal("the report has no verdict to change")
	}
	if err := os.WriteFile(path, typed, 0o644); err != nil {
		t.Fatal(err)
	}
	isR1 := func(j claims.Judgement) bool { return j.ID == "R1" }
	one := want.Claims[slices.IndexFunc(want.Claims, isR1)]
	gone := slices.Clone(one.Directories)
	for _, j := range want.Claims {
		if j.Record != testenv.Pick(one.Record, j.Record) {
			gone = append(gone, j.Directories...)
		}
	}
	for _, d := range gone {
		if err := os.RemoveAll(filepath.Join(dir, d)); err != nil {
			t.Fatal(err)
		}
	}
	v, err := readVerdicts(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, j := range v.Claims {
		if slices.ContainsFunc(j.Directories, func(d string) bool { return slices.Contains(gone, d) }) {
			continue
		}
		if j.Verdict != want.Claims[i].Verdict {
			t.Errorf("%s: %s, want %s", j.ID, j.Verdict, want.Claims[i].Verdict)
		}
		if j.Verdict == claims.Refuted {
			n++
		}
	}
	if n == 0 {
		t.Error("nothing is refuted any more")
	}
	if got := v.Claims[slices.IndexFunc(v.Claims, isR1)].Verdict; got != claims.Undecided {
		t.Errorf("R1 without its record: %s", got)
	}
}

// TestPageOfARecord has each verdict with its figure, and strategies link the claims whose runs have them.
func TestPageOfARecord(t *testing.T) {
	v := &Verdicts{Files: []*claims.File{{Record: "ADR-1", Title: "Limits", Summary: claims.Summary{Keep: "X1 alone."}}},
		Report: claims.Report{Claims: []claims.Judgement{
			{Record: "ADR-1", ID: "X1", Says: "It takes 9 µs.", Promised: "9 µs", Measured: "p99 = 7 µs (6 µs to 8 µs)",
				Verdict: claims.Holds, Commands: []string{"quotabench run another --redis x"}},
			{Record: "ADR-1", ID: "X2", Says: "It is fast.", Promised: "50x", Verdict: claims.HoldsOnlyIf, Note: "On 2 cores.",
				Why: "workers = 1; not with workers = 2", Commands: []string{"quotabench run another --redis x"}},
			{Record: "ADR-1", ID: "X3", Says: "It is calm.", Verdict: claims.Undecided, Why: "no run"},
			{Record: "ADR-2", ID: "X1", Says: "Other.", Verdict: claims.Refuted},
		}}}
	pages, err := v.pages()
	if err != nil {
		t.Fatal(err)
	}
	requireAll(t, string(pages[0].Bytes), "- **Keep**: X1 alone.\n", "|X1|It takes 9 µs|p99 = 7 µs|**holds**|\n",
		"|X2|It is fast (50x)|-|**holds only if** workers = 1. On 2 cores.|\n",
		"|X3|It is calm|-|**undecided** (no run)|\n", "|X1, X2|`quotabench run another --redis x`|\n")
	requireAll(t, string(pages[1].Bytes), "|[ADR-1](adr-1.md)|1|1|0|1|0|\n")
	p := rendered(t, &Evidence{Verdicts: v}, meta("another"), meta("yet"))
	requireAll(t, p["another.md"], " Claims: [ADR-1](../claims/adr-1.md).\n")
	if strings.Contains(p["yet.md"], "Claims") {
		t.Errorf("a strategy links claims that are not about it:\n%s", p["yet.md"])
	}
}

// TestKeep: of series, those that claims read are kept alone.
func TestKeep(t *testing.T) {
	from := filepath.Join(baseline, "claims")
	b, err := os.ReadFile(filepath.Join(from, "claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r claims.Report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	series, err := seriesIn(&r)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for dir, read := range series {
		_, err := os.Stat(filepath.Join(from, dir, "series.json.gz"))
		if kept := err == nil; kept && !read {
			t.Errorf("the series of %s is kept, and no claim reads it", dir)
		} else if kept {
			n++
		}
	}
	if n == 0 {
		t.Error("no series is kept")
	}
}
