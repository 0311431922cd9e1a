package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// full is a bundle that every format has something to show of.
func full() *Bundle {
	f := fixture.New(2, fixture.Strategies[:2]...)
	x := explored()
	x.Censuses = append(x.Censuses,
		&results.Census{Strategy: f.Runs[0].Params.Label, Policy: "p", Clients: 2, Schedules: 6, Leaking: 1, Complete: true})
	return &Bundle{
		File: &f, Provenance: &f.Provenance, Exploration: x,
		Series: []results.Series{{Strategy: "a:b=c,d/e",
			Samples: []results.Sample{{AtNS: 1, Issued: 1, Admitted: 1, Usage: 1},
				{AtNS: 2, Issued: 3, Admitted: 2, Rejected: 1, Usage: 2}}}, {Strategy: "no samples"}},
	}
}

// explored is a search with a finding that was repeated, and a census.
func explored() *results.Exploration {
	x := results.NewExploration()
	f := results.Finding{
		Strategy: "check:a=b", Policy: "p", Property: "leak", Detail: "2 of 1 admitted", Token: "token-1",
		Columns: []results.Column{{Name: "A", Role: codes.RoleClient}, {Name: "B", Role: codes.RoleClient}},
		Steps: []results.Step{
			{Number: 1, Actor: "A", Role: codes.RoleClient, Event: codes.EventCommand, Kind: "redis", Command: "GET k",
				Reply: "0", Limit: 1},
			{Number: 2, Actor: "B", Role: codes.RoleClient, Column: 1, Event: codes.EventCommand, Kind: "redis",
				Command: "GET k", Reply: "0", Outcome: "admitted", Limit: 1},
		},
	}
	x.Searches = []*results.Search{{Strategy: "check:a=b", Policy: "p", Limit: 1, Unit: "links", Clients: 2, Instances: 1,
		Findings: []results.Finding{f}}}
	x.Replays = []*results.Replay{{Strategy: "check:a=b", Policy: "p", Property: "leak", Broken: true, Finding: &f,
		Same: true, Store: "redis 7"}}
	x.Censuses = []*results.Census{{Strategy: "other", Policy: "p", Limit: 1, Schedules: 6}}
	return &x
}

// swept is a bundle of two settings.
func swept() *Bundle {
	f := fixture.New(1, fixture.Strategies[:2]...)
	f.Sweep = &results.Sweep{Parameters: []results.Swept{{Name: "workers", Values: []string{"1", "64"}}}}
	for i := range f.Runs {
		f.Runs[i].Params.Point = map[string]string{"workers": "1"}
		more := f.Runs[i]
		more.Params.Workers = 64
		more.Params.Point = map[string]string{"workers": "64"}
		f.Runs = append(f.Runs, more)
	}
	f.Summaries = nil
	return &Bundle{File: &f}
}

// TestExploration: one report of all parts in order, and one chart per finding.
func TestExploration(t *testing.T) {
	written := map[string]string{}
	if _, err := Each(&Bundle{Exploration: explored()}, func(o Output) error {
		written[o.Name] = string(o.Bytes)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(written) != 5 || !strings.HasPrefix(written["report.html"], "<!DOCTYPE html>") || !strings.HasPrefix(written["check_a-b-leak.png"], "\x89PNG") || !strings.HasPrefix(written["check_a-b-leak.svg"], "<svg") || !strings.Contains(written[files.ExplorationName], `"kind": "exploration"`) {
		t.Errorf("files %q", slices.Collect(maps.Keys(written)))
	}
	at := 0
	for _, want := range []string{"LEAK in 2 steps", "token-1", "repeated on redis 7",
		"every step and every reply as above", "other, p with a limit of 1"} {
		i := strings.Index(written["report.txt"][at:], want)
		if i < 0 {
			t.Fatalf("no %q after the first %d characters of\n%s", want, at, written["report.txt"])
		}
		at += i
	}
}

func TestEachFormat(t *testing.T) {
	var names, formats []string
	put := func(o Output) error {
		names = append(names, o.Name)
		formats = append(formats, o.Format)
		if len(o.Bytes) == 0 {
			t.Errorf("%s is empty", o.Name)
		}
		return nil
	}
	undrawn, err := Each(full(), put)
	if err != nil || len(undrawn) > 0 {
		t.Fatalf("%v, %v", err, undrawn)
	}
	if names[0] != files.ResultsName {
		t.Errorf("the record comes after %s: it would be lost with it", names[0])
	}
	if !slices.Contains(names, "series-a_b-c_d-e.svg") {
		t.Errorf("files %q", names)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(names))); len(distinct) < len(names) {
		t.Errorf("two files of one name: %q", names)
	}
	if _, err := Each(swept(), put); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range Renderers() {
		if r.Name == "" || r.Ext == "" || r.Doc == "" || seen[r.Name] {
			t.Errorf("format %q (%q, %q) is incomplete or listed twice", r.Name, r.Ext, r.Doc)
		}
		seen[r.Name] = true
		i := slices.Index(formats, r.Name)
		if i < 0 {
			t.Errorf("no file of format %s", r.Name)
		} else if path.Ext(names[i]) != "."+r.Ext {
			t.Errorf("format %s has extension %s, its file is %s", r.Name, r.Ext, names[i])
		}
	}
}

func TestEachEnds(t *testing.T) {
	full := full()
	errFull := errors.New("disk full")
	n := 0
	if _, err := Each(full, func(Output) error { n++; return errFull }); !errors.Is(err, errFull) || n != 1 {
		t.Errorf("%v after %d files, want the first error at once", err, n)
	}
	if _, err := Each(&Bundle{}, func(o Output) error { t.Errorf("%s of nothing", o.Name); return nil }); err != nil {
		t.Error(err)
	}
}

// TestRefusedRecord: a record that does not fit its schema is kept next to its error, and so is the report.
func TestRefusedRecord(t *testing.T) {
	b := full()
	b.File.Runs[0].Leak.Trials = -1
	written := map[string]string{}
	_, err := Each(b, func(o Output) error {
		written[o.Name] = string(o.Bytes)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "minimum: got -1") || !strings.Contains(err.Error(), refusedName) {
		t.Errorf("%v", err)
	}
	if written[files.ResultsName] != "" || !strings.Contains(written[refusedName], `"trials": -1`) ||
		!strings.Contains(written[refusalName], "minimum: got -1") || written[files.TextName] == "" || written[files.HTMLName] == "" {
		t.Errorf("files %q: %s", slices.Collect(maps.Keys(written)), written[refusalName])
	}
}

// TestNotDrawn: runs without latencies have no plot of latencies, and everything else.
func TestNotDrawn(t *testing.T) {
	b := full()
	for i := range b.File.Runs {
		b.File.Runs[i].Service = results.Latency{}
	}
	var names []string
	undrawn, err := Each(b, func(o Output) error { names = append(names, o.Name); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "report.txt") || slices.Contains(names, "latency.svg") {
		t.Errorf("files %q", names)
	}
	if len(undrawn) != 1 || undrawn[0].Name != "latency.svg" ||
		!strings.Contains(undrawn[0].String(), "not drawn: latency.svg: nothing to plot") {
		t.Errorf("%v", undrawn)
	}
}

// A name in a record may come from anywhere: a report has nothing that a terminal
// would obey.
func TestReportsHoldNoEscapes(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[:1]...)
	f.Runs[0].Params.Label = "a\x1b[31mb"
	f.Workload.Notes = []string{"note\a\u202e"}
	x := explored()
	x.Searches[0].Strategy = "a\x1b[31mb"
	x.Searches[0].Findings[0].Detail = "detail\x9b31m"
	for _, b := range []*Bundle{{File: &f}, {Exploration: x}} {
		out, err := report(b)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(out); strings.ContainsAny(text, "\x1b\a\u202e") || !utf8.ValidString(text) {
			t.Errorf("%q", text)
		}
	}
}

// FuzzProvenance shows whatever a provenance.json says, and nothing of it as markup.
func FuzzProvenance(f *testing.F) {
	f.Add([]byte(`{"host":{"name":"h","cpus":2},"time":"2026-01-01T00:00:00Z","versions":{"go":"1"},"command":"quotabench run"}`))
	f.Add([]byte(`{"host":{"name":"<script>alert(1)</script>","cpus":-9223372036854775808},"versions":null,"command":"\u001b[31m\n"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var provenance results.Provenance
		if json.Unmarshal(data, &provenance) != nil {
			return
		}
		file := fixture.New(1, fixture.Strategies[0])
		page, err := HTML([]*Bundle{{File: &file, Provenance: &provenance}})
		if err != nil || bytes.Contains(page, []byte("<script>alert")) {
			t.Errorf("%v, %s", err, data)
		}
	})
}
