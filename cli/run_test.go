package cli

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// loops has most runs leave the open loop out, unless QUOTABENCH_LONG is set.
var loops = testenv.Pick([]string{"--loop", "closed"}, nil)

// tiny is a run on embedded stores that takes a moment.
func tiny(args ...string) []string {
	return slices.Concat([]string{"run", "--redis", "embedded", "--postgres", "embedded", "--requests", "400", "--rounds",
		"1", "--workers", "4", "--instances", "1", "--out", "out"}, loops, args)
}

func readResults(t *testing.T) results.File {
	t.Helper()
	f, err := codec.Read(filepath.Join("out", files.ResultsName))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// requireNothingLeft fails the test if anything but the run's directory is there
// that was not before.
func (p *place) requireNothingLeft() {
	p.t.Helper()
	for _, f := range p.files() {
		if f != "/out" && !strings.HasPrefix(f, "/out/") && !slices.Contains(p.before, f) {
			p.t.Errorf("%s is left behind", f)
		}
		if strings.HasPrefix(filepath.Base(f), ".") {
			p.t.Errorf("%s looks like a temporary file", f)
		}
	}
}

func TestRun(t *testing.T) {
	p := newPlace(t, nil)
	t.Setenv(session.NoBitmaps, "")
	o := call(t.Context(), tiny("honest", "--rounds", "2", "--requests", "1000", "--loop", "both")...)
	if o.code != exit.OK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	f := readResults(t)
	if len(f.Runs) != 2 || f.Interrupted || f.Seed != 1 || f.Stores["redis"].Kind != "embedded" {
		t.Errorf("%d runs, %+v", len(f.Runs), f)
	}
	for _, r := range f.Runs {
		if r.Issued != 1000 || r.Leak.Units != 0 || !r.Audit.Valid {
			t.Errorf("%s: issued %d, leak %+v, audit %+v", r.Params.Label, r.Issued, r.Leak, r.Audit)
		}
	}
	if want := "quotabench " + strings.Join(o.args, " "); f.Provenance.Command != want {
		t.Errorf("the command is recorded as %q, want %q", f.Provenance.Command, want)
	}
	report, err := os.ReadFile(filepath.Join("out", "report.txt"))
	const guarantees = "DECLARED GUARANTEES"
	if err != nil || !strings.Contains(string(report), guarantees) || strings.Contains(o.stdout, guarantees) ||
		!strings.Contains(o.stdout, "decisions/s") {
		t.Errorf("report.txt (%v) has no guarantees, or stdout has them, or no verdict:\n%s\n%s", err, report, o.stdout)
	}
	for _, line := range []string{"Redis:      embedded", "PostgreSQL: model", "Report: out/report.html",
		"Next to it: results.json, report.txt"} {
		if !strings.Contains(o.stderr, line) {
			t.Errorf("stderr lacks %q:\n%s", line, o.stderr)
		}
	}
	for _, name := range []string{"latency", "leakage"} {
		// So short a run may have no p99 to plot; then it says so.
		_, missing, _ := strings.Cut(o.stderr, codes.NotDrawn)
		missing, _, _ = strings.Cut(missing, "(--verbose says why)")
		why := strings.Contains(missing, name+".svg")
		for _, ext := range []string{".svg", ".png"} {
			if fi, err := os.Stat(filepath.Join("out", name+ext)); (err != nil || fi.Size() == 0) && !why {
				t.Errorf("%s%s: %v: %s", name, ext, err, o.stderr)
			}
		}
	}
	p.requireNothingLeft()

	// Another run takes the rate of the first one, and both say where it comes from.
	unwrap := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	rate := f.Runs[0].Paced.Params.RatePerS
	from := f.Runs[0].Paced.Params.RateFrom
	if rate == 0 || !strings.Contains(from, "honest") || !strings.Contains(unwrap(o.stdout), "("+from+")") {
		t.Errorf("a rate of %g from %q:\n%s", rate, from, o.stdout)
	}
	again := call(t.Context(), tiny("honest", "--loop", "both", "--rate", "out/results.json", "--out", "again",
		"--verbose")...)
	g, err := codec.Read("again/results.json")
	if err != nil {
		t.Fatal(err, again.stderr)
	}
	if p := g.Runs[0].Paced.Params; p.RatePerS != rate || p.RateFrom != "the rate of out/results.json" ||
		!strings.Contains(unwrap(again.stdout), "(the rate of out/results.json)") {
		t.Errorf("repeated at %g from %q, first at %g", p.RatePerS, p.RateFrom, rate)
	}
	if !regexp.MustCompile(`\[2/2\] round 1 of 1: honest at \d+/s`).MatchString(again.stderr) { // the rate follows from the machine
		t.Errorf("stderr does not say the last step:\n%s", again.stderr)
	}
	if err := os.RemoveAll("again"); err != nil {
		t.Fatal(err)
	}
	requireUsageError(t, call(t.Context(), "run", "--rate", "none.json"))

	// The same once more would overwrite it.
	before := p.files()
	requireUsageError(t, call(t.Context(), tiny("honest")...))
	if now := p.files(); !slices.Equal(now, before) {
		t.Errorf("files are %q, were %q", now, before)
	}
}

func TestExitCodes(t *testing.T) {
	testenv.Sequential(t)
	for _, x := range []struct {
		strategy string
		code     int
		says     string
	}{
		{"liar", exit.Gate, "liar broke its declared guarantee in round 1: leak of at most L allows 0 units, and "},
		{"broken", exit.Failed, "broken, round 1: the correctness figures are invalid: run-failed: open broken: out of " +
			"order, for good"},
		// What failed weighs more than what leaked.
		{"liar,broken", exit.Failed, "broken, round 1: "},
		{"honest", exit.OK, ""},
	} {
		t.Run(x.strategy, func(t *testing.T) {
			p := newPlace(t, nil)
			o := call(t.Context(), tiny(x.strategy)...)
			lines := strings.Split(strings.TrimSuffix(o.stderr, "\n"), "\n")
			last := lines[len(lines)-1]
			if o.code != x.code || x.says != "" && !strings.HasPrefix(last, "quotabench: "+x.says) {
				t.Errorf("exit %d, want %d: %s", o.code, x.code, last)
			}
			if f := readResults(t); f.Interrupted || len(f.Runs) != strings.Count(x.strategy, ",")+1 {
				t.Errorf("%d runs, interrupted: %v", len(f.Runs), f.Interrupted)
			}
			p.requireNothingLeft()
		})
	}
}

// Ctrl-C during the second round.
func TestInterrupt(t *testing.T) {
	for _, kind := range []string{"embedded", "process"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "process" {
				storetest.Redis(t) // or there is none to be had
			}
			p := newPlace(t, nil)
			signals := make(chan os.Signal, 1) // starts the goroutine of package os/signal, which never ends
			signal.Notify(signals, os.Interrupt)
			signal.Stop(signals)
			goroutines := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			taken.Store(0)
			const after = 500
			var once sync.Once
			onTake = func(n int64) {
				if n >= after {
					once.Do(cancel)
				}
			}
			defer func() { onTake = nil }()
			o := call(ctx, tiny("honest", "--rounds", "50", "--requests", "0", "--duration", "2s", "--redis", kind)...)
			if o.code != exit.Interrupted ||
				!strings.HasSuffix(o.stderr, "quotabench: interrupted: the results so far are written, the last run is marked "+
					"partial\n") {
				t.Fatalf("exit %d: %s", o.code, o.stderr)
			}
			f := readResults(t)
			if !f.Interrupted || len(f.Runs) == 0 || !f.Runs[len(f.Runs)-1].Partial {
				t.Errorf("interrupted: %v, runs: %d, the last one partial: %v", f.Interrupted, len(f.Runs), len(f.Runs) > 0 &&
					f.Runs[len(f.Runs)-1].Partial)
			}
			if o.stdout == "" {
				t.Error("no table of what was measured")
			}
			p.requireNothingLeft()
			if more := settled(runtime.NumGoroutine, goroutines); more > 0 {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines are left behind:\n%s", more, stacks[:runtime.Stack(stacks, true)])
			}
		})
	}
}

func TestInterruptBeforeAnythingIsMeasured(t *testing.T) {
	p := newPlace(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := call(ctx, tiny("--redis", "redis://127.0.0.1:1")...)
	if o.code != exit.Interrupted || o.stdout != "" ||
		o.stderr != "quotabench: interrupted before anything was measured; nothing was written\n" {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	p.requireUntouched()
}

// The default directory is named after the time, so that runs do not collide.
func TestDefaultDirectory(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	o := call(t.Context(), append([]string{"run", "--redis", "embedded", "--postgres", "embedded", "--requests", "400",
		"--rounds", "1", "--instances", "1", "honest"}, loops...)...)
	found, err := filepath.Glob(filepath.Join("quotabench-results", "20*Z", files.ResultsName))
	if o.code != exit.OK || err != nil || len(found) != 1 {
		t.Errorf("exit %d, files %q, %v: %s", o.code, found, err, o.stderr)
	}
}

// Further stores are opened, announced and closed like the usual ones.
func TestFurtherStores(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, map[string]string{"run.yaml": "redis: embedded\npostgres: embedded\nstore: [redis.2=embedded]\n"})
	for _, from := range [][]string{
		{"--redis", "embedded", "--postgres", "embedded", "--store", "redis.2=embedded"},
		{"--config", "run.yaml"},
		{"--store", "redis=embedded", "--postgres", "embedded", "--store", "redis.2=embedded"},
	} {
		o := call(t.Context(), slices.Concat([]string{"run", "--requests", "400", "--rounds", "1", "--instances", "1",
			"honest", "--out", "out", "--verbose"}, loops, from)...)
		if o.code != exit.OK || !strings.Contains(o.stderr, "\nRedis:      embedded; ") ||
			!strings.Contains(o.stderr, "\nredis.2:    embedded; ") {
			t.Errorf("%q: exit %d: %s", from, o.code, o.stderr)
		}
		if err := os.RemoveAll("out"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMain(m *testing.M) {
	harness.ServeIsolated()
	storetest.Main(m)
}

// Main itself, which listens to signals.
func TestMainFunction(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main([]string{"--version"}, &out, &errs); code != exit.OK ||
		!strings.HasPrefix(out.String(), "quotabench ") {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}
