package claims

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/explore"
)

// oneLine requires an error to be fit for a terminal.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > 2000 {
		t.Errorf("error of several lines, or of %d bytes: %.2000q", len(err.Error()), err)
	}
}

// FuzzParse reads files of claims, and judges what can be read without a run.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"record: R\nclaims: [{id: X, says: it, unmeasurable: no}]",
		"record: R\nruns: {a: run a, b: {command: sim b, quick: --param share=0..1}}\nclaims: [{id: X, says: it, " +
			"holds: 'a.leak == 0', each: b, curve: b.leak, tolerance: 3, gate: true}]",
		"record: R\nruns: {../x: run a}\nclaims: [{id: X, says: it, unmeasurable: no}]",
		"record: R\nclaims: [{id: X, says: it, unmeasurable: no, tolerance: .nan}]",
		"record: R\nruns: {a: run a}\nclaims: [{id: X, says: it, holds: 'a.leak == 1e999 || a.runs[9999].leak < 1'}]",
		"record: &r R\nclaims: *r", "- 1", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f.yaml", []byte(text), explore.Properties())
		if err != nil {
			oneLine(t, err)
			return
		}
		run := func(context.Context, []string) (int, string) { return 2, "quotabench: no" }
		pass := &Pass{Files: []*File{file}, Run: run, Begin: func(int, int, []string) {}, Failed: func(string) {},
			Read: func(string) *Record { return &Record{Why: "none"} }}
		if _, err := pass.Judge(t.Context()); err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				oneLine(t, &lineError{line})
			}
		}
	})
}

type lineError struct{ text string }

func (e *lineError) Error() string { return e.text }

// FuzzDecodeReport judges claims again by any report: it names no directory outside of its own, and lacks nothing.
func FuzzDecodeReport(f *testing.F) {
	whole := Report{Schema: Schema, Runs: 1, Asked: 1, Claims: []Judgement{{Record: "R", ID: "X", Verdict: Holds,
		Commands: []string{"quotabench run a"}, Directories: []string{"a"}}}}
	data, err := json.Marshal(whole)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(strings.Replace(string(data), `"directories":["a"]`, `"directories":[]`, 1))
	f.Add(strings.Replace(string(data), `"directories":["a"]`, `"directories":["../../etc"]`, 1))
	f.Add(strings.Replace(string(data), `"schema":1`, `"schema":99`, 1))
	f.Add("null")
	file, err := Parse("f", []byte("record: R\nruns: {a: run a}\nclaims: [{id: X, says: it, holds: a.leak == 0}]"), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		report, err := DecodeReport([]byte(text))
		if err != nil {
			oneLine(t, err)
			return
		}
		pass := &Pass{Files: []*File{file}, Earlier: report, Dir: "d", Read: func(dir string) *Record {
			if strings.Contains(dir, "..") || strings.Count(dir, "/") != 1 {
				t.Errorf("it reads %q", dir)
			}
			return planted(1)
		}}
		if _, err := pass.Judge(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestReportsThatCannotBe: what a pass cannot have written is refused, and says why.
func TestReportsThatCannotBe(t *testing.T) {
	const claim = `{"record":"R","id":"X","commands":["quotabench run a"],"directories":%}`
	for text, want := range map[string]string{
		`{"schema":99}`: "it has schema 99, this quotabench reads 1",
		`{"schema":1,"claims":[` + strings.Replace(claim, "%", "[]", 1) + `]}`:                "1 commands and 0 directories",
		`{"schema":1,"claims":[` + strings.Replace(claim, "%", `["../../etc"]`, 1) + `]}`:     "cannot be the name",
		`{"schema":1,"claims":[` + strings.Replace(claim, "%", `["a\u001b[31m"]`, 1) + `]}`:   "cannot be the name",
		`{"schema":1,"claims":[` + strings.Replace(claim, "%", `["a"]`, 1) + `],"runs":"many`: "unexpected end",
	} {
		if _, err := DecodeReport([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	report := `{"schema":1,"claims":[` + strings.Replace(claim, "%", `[""]`, 1) + `]}`
	if _, err := DecodeReport([]byte(report)); err != nil {
		t.Errorf("a run that has no directory: %v", err)
	}
}
