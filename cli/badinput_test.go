//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// Bounds of what one bad input may take.
const (
	mostCPU       = 5 * time.Second // of the processor
	mostMegabytes = 200             // MB
)

// badInput is a command line that cannot be carried out, with the file that it reads.
type badInput struct {
	args []string
	path string
	text []byte
}

// badFlags are values beyond the bounds of each flag, flags without a value, and flags that are not there.
func badFlags() (all []badInput) {
	for _, k := range knobs() {
		if !k.flag || k.name == "help" || k.name == "version" {
			continue
		}
		try := func(words ...string) { all = append(all, badInput{args: append(slices.Clone(k.command), words...)}) }
		try("--" + k.name + "x=1")
		m := told.FindStringSubmatch(k.wants)
		if m == nil {
			continue
		}
		for _, value := range []string{"", "x", "NaN", "-Inf", "1e999", "--", "\x00", strings.Repeat("9", 40)} {
			try("--" + k.name + "=" + value)
		}
	}
	return all
}

// badKeys are keys of configuration files whose value is no value, and keys that are not there.
func badKeys() (all []badInput) {
	for _, k := range knobs() {
		if k.flag {
			continue
		}
		for _, text := range []string{k.name + ": {a: 1}", k.name + ": *a", k.name + "x: 1", k.name + ": [[1]]",
			k.name + ": 1\n" + k.name + ": 1", k.name + ": [1", "? [" + k.name + "]\n: 1"} {
			all = append(all, badInput{append(slices.Clone(k.command), "honest", "--print-config", "--config"), "bad.yaml",
				[]byte(text)})
		}
	}
	return all
}

// spoilt are a valid value with one part of it replaced by something of another kind, once for each part.
func spoilt(value any, whole func() any, put func(any), encode func(any) []byte) (all [][]byte) {
	replace := func(bad any) {
		put(bad)
		all = append(all, encode(whole()))
		put(value)
	}
	switch v := value.(type) {
	case map[string]any:
		replace("x")
		for key, part := range v {
			all = append(all, spoilt(part, whole, func(bad any) { v[key] = bad }, encode)...)
		}
	case []any:
		replace(7)
		for i, part := range v {
			all = append(all, spoilt(part, whole, func(bad any) { v[i] = bad }, encode)...)
		}
	default:
		replace(map[string]any{"a": []any{}})
	}
	return all
}

// badFiles are a good file with one part of it spoilt, for a command that reads it: so many of them at most, from
// all over the file.
func badFiles(t *testing.T, good, bad string, most int, args ...string) (all []badInput) {
	t.Helper()
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	encode := func(value any) []byte {
		text, err := json.Marshal(value) // which is YAML, too
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if filepath.Ext(good) == ".yaml" {
		err = yaml.Unmarshal(data, &whole)
	} else {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		err = decoder.Decode(&whole)
	}
	if err != nil {
		t.Fatal(err)
	}
	texts := spoilt(whole, func() any { return whole }, func(bad any) { whole = bad }, encode)
	slices.SortFunc(texts, bytes.Compare) // maps have no order
	for i := range min(most, len(texts)) {
		all = append(all, badInput{args, bad, texts[i*len(texts)/min(most, len(texts))]})
	}
	return all
}

// badInputs are what is generated from the declarations of flags and settings, and from files that are in order.
func badInputs(t *testing.T) []badInput {
	t.Helper()
	for _, args := range [][]string{
		{"sim", "honest", "liar", "--instances", "1", "--limit", "5", "--requests", "200", "--out", "good"},
		{"explore", "liar", "--max-states", "200", "--exit-zero", "--out", "found"},
	} {
		if o := call(t.Context(), args...); o.code != exit.OK && o.code != exit.Gate {
			t.Fatalf("%q: exit %d: %s", args, o.code, o.stderr)
		}
	}
	write(t, "claims.yaml", `record: R
title: it
runs: {a: {command: sim honest, quick: --param seed=1..3, full: --requests 5}, b: explore honest}
claims:
- {id: X, source: s, says: it, promised: p, holds: 'a.leak == 0', each: a, needs: 'a.leak == 0', shows: a.leak}
- {id: Y, says: it, unmeasurable: no}
`)
	write(t, "faults.yaml", "settings: s\nquick: q\nfull: f\nlonger: 5s\npolicies: [10/h]\nfaults:\n"+
		"- {name: a, says: A., needs: redis, settings: --x, policies: [9/h], crosses: true}\n")
	write(t, "policy.yaml", "name: n\ndoc: d\nlimit: 5\nunit: a\nwindow: fixed\nlength: 1m\ncosts: [1, 2]\n")
	return slices.Concat(badFlags(), badKeys(),
		badFiles(t, "good/results.json", "bad/results.json", testenv.Pick(200, 700), "report"),
		badFiles(t, "good/results.json", "bad/results.json", testenv.Pick(100, 300), "compare", "good/results.json"),
		badFiles(t, "good/series.json", "bad/series.json", 100, "report"),
		badFiles(t, "found/exploration.json", "bad/exploration.json", testenv.Pick(100, 300), "report"),
		badFiles(t, "claims.yaml", "bad.yaml", 100, "claims", "--out", "new"),
		badFiles(t, "faults.yaml", "bad.yaml", 100, "faults", "honest", "--out", "new", "--list"),
		badFiles(t, "policy.yaml", "bad.yaml", 100, "sim", "honest", "--print-config", "--policy", "@"),
	)
}

// line is the whole command line.
func (b *badInput) line() []string {
	switch last := b.args[len(b.args)-1]; {
	case b.path == "":
		return b.args
	case last == "@":
		return append(slices.Clone(b.args[:len(b.args)-1]), "@"+b.path)
	}
	return append(slices.Clone(b.args), b.path)
}

// used is the processor time of this process.
func used(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestBadInputs: whatever is wrong with a flag, a setting or a file is one line, takes little, and leaves nothing.
func TestBadInputs(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	all := badInputs(t)
	if len(all) < testenv.Pick(1_000, 2_000) {
		t.Errorf("%d inputs", len(all))
	}
	var before, after runtime.MemStats
	for i := range all {
		b := &all[i]
		if b.path != "" {
			write(t, b.path, string(b.text))
		}
		runtime.ReadMemStats(&before)
		began := used(t)
		o := call(t.Context(), b.line()...)
		took := used(t) - began
		runtime.ReadMemStats(&after)
		about := fmt.Sprintf("%.200q with %.300s", b.line(), b.text)
		if o.code != exit.Usage && o.code != exit.Failed {
			t.Errorf("%s: exit %d: %s", about, o.code, o.transcript())
		}
		if strings.Count(o.stderr, "\n") != 1 || len(o.stderr) > terminal.MaxMessage+20 {
			t.Errorf("%s: no line: %.500q", about, o.stderr)
		}
		if took > mostCPU || (after.TotalAlloc-before.TotalAlloc)>>20 > mostMegabytes {
			t.Errorf("%s: it took %v and %d MB", about, took, (after.TotalAlloc-before.TotalAlloc)>>20)
		}
		if _, err := os.Lstat("new"); err == nil {
			t.Errorf("%s: something was written", about)
			_ = os.RemoveAll("new")
		}
	}
	t.Logf("%d bad inputs", len(all))
}
