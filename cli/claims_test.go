package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/html"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

const promises = `record: Ours
runs:
  both: sim honest liar --instances 1 --policy "10 requests per fixed 1m" --workload steady:subjects=2 --rate 10 --requests 2000
  gone: sim nobody
claims:
- {id: C1, says: The limit holds., promised: no leak, holds: 'both["honest"].leak == 0', needs: 'both["honest"].rejected > 0', gate: true}
- {id: C2, says: The other limit holds., holds: 'both["liar"].leak == 0', gate: true}
- {id: C3, says: It is there., holds: 'gone.leak == 0'}
- {id: C4, says: It is cheap., unmeasurable: a price is no figure}
`

func TestClaims(t *testing.T) {
	testenv.Sequential(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "claims.yaml")
	out := filepath.Join(dir, "out")
	if err := os.WriteFile(file, []byte(promises), 0o644); err != nil {
		t.Fatal(err)
	}
	summary := filepath.Join(dir, "summary")
	t.Setenv(summaryVariable, summary)
	o := call(context.Background(), "claims", file, "--out", out)
	if o.code != exit.Gate {
		t.Fatalf("exit %d\n%s", o.code, o.transcript())
	}
	for _, want := range []string{"C1     holds", "C2     refuted", "C3     undecided", "C4     not measurable here",
		"a price is no figure",
		`] quotabench sim honest liar --instances 1 --policy '10 requests per fixed 1m'`, // to be typed again
		"quotabench sim nobody: quotabench: unknown strategy", "gate: Ours C2: refuted",
		"4 claims: 1 holds, 1 refuted, 1 undecided, 1 not measurable here. 2 runs"} {
		if !strings.Contains(strings.Join(strings.Fields(o.transcript()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("it does not say %q:\n%s", want, o.transcript())
		}
	}
	for _, name := range []string{"claims.json", "claims.html", "claims.txt", "both/results.json"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	vectorsAlone(t, filepath.Join(out, "both"))
	// The same verdicts come from the records, without a run; those of one claim alone, too.
	again := call(context.Background(), "claims", file, "--from", out, "--id", "C1", "--format", "github")
	if page, err := os.ReadFile(summary); again.code != exit.OK || err != nil ||
		!strings.Contains(string(page), "| C1 | holds |") {
		t.Errorf("exit %d, %v\n%s\n%s", again.code, err, again.transcript(), page)
	}
	for args, want := range map[string]string{
		"--id C9 " + file:               "unknown claim \"C9\"",
		"--record Theirs " + file:       "unknown design record \"Theirs\"",
		"--quick --full " + file:        "exclude each other",
		"--out " + out + " " + file:     "already holds",
		filepath.Join(dir, "none.yaml"): "none.yaml",
	} {
		if o := call(context.Background(), append([]string{"claims"}, strings.Fields(args)...)...); o.code != exit.Usage ||
			!strings.Contains(o.transcript(), want) {
			t.Errorf("%s: exit %d\n%s", args, o.code, o.transcript())
		}
	}
}

// A file whose commands cannot be run is refused before anything is, and one whose runs decide nothing is no success.
func TestRunsThatCannotBe(t *testing.T) {
	const claim = "}\nclaims: [{id: C1, says: It holds., holds: 'a.leak == 0'}]\n"
	const rest = "policies: [10 requests per fixed 1h]\nfaults: [{name: none, says: Nothing., settings: %}]\n"
	newPlace(t, map[string]string{
		"flag.yaml":  "record: R\nruns: {a: run honest --nosuch" + claim,
		"value.yaml": "record: R\nruns: {a: {command: run honest, quick: --rounds -1}" + claim,
		"quote.yaml": "record: R\nruns: {a: {command: run honest, quick: \"--policy 'x\"}" + claim,
		"short.yaml": "record: R\nruns: {a: explore nosuch" + claim,
		"f1.yaml":    strings.Replace(rest, "%", "--nosuch", 1),
		"f2.yaml":    strings.Replace(rest, "%", "--rounds -1", 1),
		"f3.yaml":    strings.Replace(rest, "%", `"--policy 'x"`, 1),
	})
	for line, want := range map[string]string{
		"claims flag.yaml":             "2 unknown flag --nosuch",
		"claims value.yaml":            `2 --rounds "-1": give a whole number`,
		"claims quote.yaml":            "2 a quote is not closed",
		"claims short.yaml":            "3 nothing was decided: quotabench explore nosuch",
		"faults honest --list f1.yaml": "2 unknown flag --nosuch",
		"faults honest --list f2.yaml": `2 --rounds "-1": give a whole number`,
		"faults honest --list f3.yaml": "2 a quote is not closed",
	} {
		out := filepath.Join(t.TempDir(), "out")
		o := call(t.Context(), append(strings.Fields(line), "--out", out)...)
		code, text, _ := strings.Cut(want, " ")
		if fmt.Sprint(o.code) != code || !strings.Contains(o.stderr, text) {
			t.Errorf("%s: exit %d: %s", line, o.code, o.stderr)
		}
		if _, err := os.Stat(out); o.code == exit.Usage && err == nil {
			t.Errorf("%s: something was written", line)
		}
	}
}

// Passwords of a file of claims or of faults reach no file and no output.
func TestPasswordsOfFiles(t *testing.T) {
	const server = "redis://user:S3cr3tOk@127.0.0.1:1" // where nothing listens
	for _, c := range []struct {
		name, text string
		args       []string
	}{
		{"claims", "record: Ours\nruns: {a: run honest --quick --redis " + server +
			"}\nclaims: [{id: C1, says: It holds., holds: 'a.leak == 0'}]\n", nil},
		{"faults", "settings: --redis " + server +
			"\nquick: --rounds 1\nfull: --rounds 1\npolicies: [10 requests per fixed 1h]\nfaults: [{name: none, says: " +
			"Nothing.}]\n",
			[]string{"honest", "--list"}},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "file.yaml")
		out := filepath.Join(dir, "out")
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		o := call(t.Context(), slices.Concat([]string{c.name}, c.args, []string{file, "--out", out})...)
		texts := map[string]string{"the output": o.transcript()}
		err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			texts[d.Name()] = string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if record := texts[c.name+".json"]; !strings.Contains(record, "redis://user:***@127.0.0.1:1") {
			t.Errorf("the report of %s does not say its command: %s%s", c.name, record, o.transcript())
		}
		for name, text := range texts {
			if strings.Contains(text, "S3cr3t") {
				t.Errorf("%s of %s has the password: %s", name, c.name, text)
			}
		}
	}
}

// TestReportOfAFullDisk: a report whose files cannot be written is shown all the same.
func TestReportOfAFullDisk(t *testing.T) {
	s := &pass{Settings: group.New(group.Claims), name: "claims", text: tables.Claims, html: html.WriteClaims,
		markdown: tables.ClaimsMarkdown}
	var out, errs bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	r := &claims.Report{Claims: []claims.Judgement{{ID: "C1", Record: "Ours", Verdict: claims.Holds,
		Says: "The limit holds."}}}
	err := s.show(cmd, &claims.Pass{Dir: filepath.Join(t.TempDir(), "gone")}, r)
	if err == nil || !strings.Contains(out.String(), "The limit holds.") || errs.Len() > 0 {
		t.Errorf("%v, %q, %q", err, out.String(), errs.String())
	}
}

// TestGatesOfAnInterruptedPass: what has no run is told once, and not as a gate each.
func TestGatesOfAnInterruptedPass(t *testing.T) {
	s := &pass{gates: [...]string{"claim does not hold", "claims do not hold"}}
	r := &claims.Report{Interrupted: true, Claims: []claims.Judgement{{ID: "C1", Gate: true, Verdict: claims.Undecided},
		{ID: "C2", Gate: true, Verdict: claims.Refuted}}}
	var errs bytes.Buffer
	var e *exit.Error
	if err := s.failed(&errs, r); !errors.As(err, &e) || e.Code != exit.Interrupted ||
		strings.Contains(errs.String(), "C1") ||
		!strings.Contains(errs.String(), "C2") {
		t.Errorf("%v, %q", err, errs.String())
	}
	r.Interrupted = false
	errs.Reset()
	if err := s.failed(&errs, r); !errors.As(err, &e) || e.Code != exit.Gate || e.Error() != "2 claims do not hold" ||
		!strings.Contains(errs.String(), "C1") {
		t.Errorf("%v, %q", err, errs.String())
	}
}

// TestDeepClaims: a parser takes memory by the square of the depth, so a file that is too deep does not get there.
func TestDeepClaims(t *testing.T) {
	newPlace(t, map[string]string{"deep.yaml": "record: Ours\nclaims:\n" + strings.Repeat("- ", 65) +
		"x\n"})
	for _, args := range [][]string{{"claims", "deep.yaml"}, {"faults", "--list", "deep.yaml"}} {
		if o := call(t.Context(), args...); o.code != exit.Usage ||
			!strings.Contains(o.stderr, "deep.yaml:3: it is nested deeper than") {
			t.Errorf("%q: exit %d: %s", args, o.code, o.stderr)
		}
	}
}

// vectorsAlone requires plots in a directory, and none as PNG.
func vectorsAlone(t *testing.T, dir string) {
	t.Helper()
	vectors, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	bitmaps, wrong := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil || wrong != nil || len(vectors) == 0 || len(bitmaps) > 0 {
		t.Errorf("%v, %v: it drew %q and %q, want SVG alone", err, wrong, vectors, bitmaps)
	}
}

// TestNoBitmaps has a program told by its environment to draw no PNG.
func TestNoBitmaps(t *testing.T) {
	newPlace(t, nil)
	t.Setenv(session.NoBitmaps, "1")
	if o := call(t.Context(), "sim", "honest", "--instances", "1", "--requests", "100", "--out",
		"out"); o.code == exit.Usage {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	vectorsAlone(t, "out")
	if o := call(t.Context(), "explore", "liar", "--property", "leak", "--out", "found"); o.code != exit.Gate {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	vectorsAlone(t, "found")
}

// TestCloseGates: a gate that holds passes although it is close, and says so; one that is undecided fails.
func TestCloseGates(t *testing.T) {
	r := &claims.Report{Claims: []claims.Judgement{
		{Record: "R", ID: "C1", Verdict: claims.Holds, Close: true, Gate: true},
		{Record: "R", ID: "C2", Verdict: claims.Holds, Gate: true},
		{Record: "R", ID: "C3", Verdict: claims.Undecided, Close: true},
	}}
	var errs, github, text, markdown bytes.Buffer
	if err := new(pass).failed(&errs, r); err != nil || errs.String() != "gate: R C1: holds, close\n" {
		t.Errorf("%v, %q", err, errs.String())
	}
	if err := errors.Join(tables.ClaimsAnnotations(&github, r), tables.Claims(&text, layout.Page{}, r),
		tables.ClaimsMarkdown(&markdown, r)); err != nil {
		t.Fatal(err)
	}
	if want := "::warning title=quotabench::R C1: holds, close\n::notice title="; !strings.HasPrefix(github.String(),
		want) {
		t.Errorf("annotations %q, want %q", github.String(), want)
	}
	for _, out := range []string{text.String(), markdown.String()} {
		if strings.Count(out, "holds, close") != 1 || !strings.Contains(out, "undecided, close") ||
			!strings.Contains(out, "2 close: another pass may decide otherwise.") {
			t.Errorf("it says\n%s", out)
		}
	}
	r.Claims[2].Gate = true
	if err := new(pass).failed(&errs, r); err == nil {
		t.Error("an undecided gate passes")
	}
}

// TestLargeReport: the report of a whole matrix is read again, though it is larger than any file that somebody writes.
func TestLargeReport(t *testing.T) {
	dir := t.TempDir()
	r := claims.Report{Schema: claims.Schema,
		Claims: []claims.Judgement{{Record: "none", ID: "honest", Says: strings.Repeat("x", 1<<20)}}}
	b, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "faults.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if o := call(t.Context(), "faults", "--from", dir, "--fault", "none"); o.code != exit.Failed ||
		!strings.Contains(o.transcript(), "the earlier pass did not make its run") {
		t.Errorf("exit %d: %s", o.code, o.transcript())
	}
}
