package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/workloads"
)

func TestSimHelp(t *testing.T) {
	p := newPlace(t, nil)
	o := call(t.Context(), "sim", "--help")
	if o.code != exit.OK || o.stderr != "" {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
	golden(t, "sim-help", o.transcript())
	p.requireUntouched()
}

// simUsageErrors are command lines that are wrong.
var simUsageErrors = [][]string{
	{"sim", "nonsense"},
	{"sim", "honest,honest"},
	{"sim", "monthly", "--policy", "agent-api"},
	{"sim", "sql-only"},
	{"sim", "--nonsense"},
	{"sim", "--rounds", "3"},
	{"sim", "--quick"},
	{"sim", "--redis", "nonsense"},
	{"sim", "honest", "--rate", "5", "--redis", "process:image=redis:8"},
	{"sim", "--postgres", "process"},
	{"sim", "--preset", "adr-000"},
	{"sim", "--start", "yesterday"},
	{"sim", "--trouble", "instance/0:clock=a while"},
	{"sim", "--trouble", "instance/2:clock=4s"},
	{"sim", "--home=2"},
	{"sim", "--shared-redis=perhaps"},
	{"sim", "--every=-1s"},
	{"sim", "--tracked=-1"},
	{"sim", "--workers=0"},
	{"sim", "--instances", "200", "--region", "a,b"},
	{"sim", "--duration", "100000h"},
	{"sim", "--rush", "200@noon"},
	{"sim", "--rush", "200@2026-01-01T00:00:00Z+1m"},
	{"sim", "--workload", "steady", "--rush", "200@2027-01-01T00:00:00Z+1m"},
	{"sim", "--trouble", "redis"},
	{"sim", "--trouble", "redis:away@0.3-0.6", "--requests", "100"},
	{"sim", "--policy", "nonsense"},
	{"sim", "--workload", "nonsense"},
	{"sim", "--workload", "trace"},
	{"sim", "--workload", "steady:popularity=famous"},
	{"sim", "--workload", "hot-key:cost=dear"},
	{"sim", "--trace", "missing.log"},
	{"sim", "--trace", "useless.csv"},
	{"sim", "--trace", "unnamed.csv"},
	{"sim", "--out", "held"},
	{"sim", "--config", "missing.yaml"},
	{"sim", "--config", "bad.yaml"},
	{"sim", "--param", "pool=1,2"},
	{"sim", "--param", "instances=1,2", "--instances", "2"},
	{"sim", "--param", "instances=0"},
}

func TestSimUsageErrors(t *testing.T) {
	files := map[string]string{"bad.yaml": "tracked: 5\nhome: 3\n"}
	for name, text := range usageFiles {
		files[name] = text
	}
	p := newPlace(t, files)
	var text strings.Builder
	for _, args := range simUsageErrors {
		o := call(t.Context(), args...)
		requireUsageError(t, o)
		text.WriteString(o.transcript() + "\n")
	}
	golden(t, "sim-usage", text.String())
	p.requireUntouched()
}

// simulateHonest is a simulation of the honest strategy.
var simulateHonest = []string{"sim", "honest", "--workload", "steady:subjects=10", "--limit", "5", "--rate", "50",
	"--duration", "10s", "--instances", "1", "--verbose"}

func TestSimReport(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	t.Setenv(session.NoBitmaps, "")
	var files [2][]byte
	for i, dir := range []string{"one", "two"} {
		o := call(t.Context(), append(append([]string{}, simulateHonest...), "--out", dir)...)
		if o.code != exit.OK {
			t.Fatalf("exit %d: %s", o.code, o.stderr)
		}
		if i == 0 {
			golden(t, "sim-report", o.stdout)
		}
		for _, name := range []string{"results.json", "report.txt", "series.json", "series.csv", "series-honest.svg",
			"series-honest.png", "latency.svg", "leakage.png"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || len(b) == 0 {
				t.Errorf("%s: %v, %d bytes", name, err, len(b))
			}
			files[i] = append(files[i], b...)
		}
		if _, err := os.Stat(filepath.Join(dir, "provenance.json")); err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two simulations of one seed have other bytes")
	}
}

// A trace whose requests are all of one subject is probably read in the wrong field.
func TestOneSubjectIsAWarning(t *testing.T) {
	testenv.Sequential(t)
	row := `shop.example.com 203.0.113.9 - - [04/Mar/2024:09:15:01 +0000] "GET / HTTP/1.1" 200 7` + "\n"
	newPlace(t, map[string]string{"access.log": strings.Repeat(row, 150) + "cut\n"})
	args := []string{"sim", "honest", "--policy", "contact-form", "--trace", "access.log"}
	const want = "warning: access.log: 150 requests of 1 subject: if \"203.0.113.9\" is not the client, say which " +
		"field is: --trace-fields subject=FIELD, one of host, client, ident, user, time, request, status, size, referrer, agent\n"
	const read = "trace: access.log: access log with virtual hosts (time=time,subject=client), 150 requests of 1 subject; " +
		"1 row damaged, 1 dropped (line 151: no client)\n"
	if o := call(t.Context(), args...); !strings.Contains(o.stderr, read+want) {
		t.Errorf("exit %d: %s\nwant %s", o.code, o.stderr, read+want)
	}
	o := call(t.Context(), append(args, "--trace-fields", "subject=host", "--out", "chosen")...)
	if strings.Contains(o.stderr, "warning") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	record, err := os.ReadFile(filepath.Join("chosen", "results.json"))
	if err != nil || !strings.Contains(string(record), "access log with virtual hosts (time=time,subject=host)") {
		t.Errorf("the record lacks the fields (%v)", err)
	}
}

// TestSimSweep: each value is simulated as it is by itself, also for longer than a measurement may last.
func TestSimSweep(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	args := []string{"sim", "honest", "--workload", "steady:subjects=10", "--instances", "1", "--rate", "0.01",
		"--duration", "48h"}
	o := call(t.Context(), append(args, "--param", "limit=5,3", "--out", "out")...)
	if o.code != exit.OK || !strings.Contains(o.stdout, "\n3      BASELINE  ") {
		t.Fatalf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	f := readResults(t)
	if len(f.Runs) != 2 || f.Sweep == nil || f.Kind != results.Simulated {
		t.Fatalf("%d runs, sweep %+v, %s", len(f.Runs), f.Sweep, f.Kind)
	}
	if files, err := filepath.Glob("out/s*"); err != nil || slices.ContainsFunc(files, func(n string) bool {
		return !strings.HasPrefix(n, "out/sweep-")
	}) {
		t.Errorf("files %q, %v", files, err)
	}
	o = call(t.Context(), append(args, "--limit", "5", "--out", "alone")...)
	alone, err := codec.Read("alone/results.json")
	if o.code != exit.OK || err != nil {
		t.Fatalf("exit %d: %s, %v", o.code, o.stderr, err)
	}
	if !maps.Equal(f.Runs[0].Params.Point, map[string]string{"limit": "5"}) {
		t.Errorf("the first run is at %v", f.Runs[0].Params.Point)
	}
	f.Runs[0].Params.Point, f.Runs[0].Trace, alone.Runs[0].Trace = nil, "", "" // a trace has the samples of a series, too
	if !reflect.DeepEqual(f.Runs[0], alone.Runs[0]) {
		t.Errorf("in the sweep %+v\nand alone %+v", f.Runs[0], alone.Runs[0])
	}
}

// What a strategy breaks fails the command, simulated or not.
func TestSimViolatedGuarantee(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	o := call(t.Context(), "sim", "liar", "--limit", "5", "--requests", "500", "--out", "out")
	if o.code != exit.Gate || !strings.Contains(o.stderr, "liar") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}

func TestSimInterrupted(t *testing.T) {
	newPlace(t, nil)
	for parallel := 1; parallel <= 2; parallel++ {
		ctx, cancel := context.WithCancel(t.Context())
		taken.Store(0)
		onTake = func(n int64) {
			if n == 300 {
				cancel()
			}
		}
		out := fmt.Sprintf("out-%d", parallel)
		o := call(ctx, "sim", "honest,liar", "--workload", "steady:subjects=10,over-quota=0", "--rate", "50", "--duration",
			"100h", "--parallel", strconv.Itoa(parallel), "--out", out)
		cancel()
		onTake = nil
		if o.code != exit.Interrupted {
			t.Errorf("exit %d: %s", o.code, o.stderr)
		}
		b, err := os.ReadFile(filepath.Join(out, "results.json"))
		if err != nil {
			t.Fatal(err)
		}
		var file results.File
		if err := json.Unmarshal(b, &file); err != nil {
			t.Fatal(err)
		}
		issued := int64(0)
		for _, r := range file.Runs {
			issued += r.Issued
			if !r.Partial {
				t.Errorf("%s is not partial", r.Strategy)
			}
		}
		if n := len(file.Runs); !file.Interrupted || n < 1 || n > parallel || issued > 320 || n == parallel && issued < 300 {
			t.Errorf("interrupted %v, %d requests, runs %+v", file.Interrupted, issued, file.Runs)
		}
	}
}

// TestRoundsOfAFile: a file may say how many rounds --against makes, which each of the rounds reads that it starts.
func TestRoundsOfAFile(t *testing.T) {
	newPlace(t, map[string]string{"quotabench.yaml": "sim:\n  rounds: 3\n"})
	if o := call(t.Context(), simulateHonest...); o.code != exit.OK {
		t.Errorf("a round ends with %d: %s", o.code, o.stderr)
	}
	if o := call(t.Context(), append(append([]string{}, simulateHonest...), "--rounds", "3")...); o.code != exit.Usage {
		t.Errorf("rounds of no --against: exit %d", o.code)
	}
}

// A printed configuration is the simulation it was printed for, presets included.
func TestSimPrintedConfig(t *testing.T) {
	testenv.Sequential(t)
	p := newPlace(t, nil)
	for _, args := range [][]string{
		{"sim", "honest", "--preset", "adr-008-month"},
		{"sim", "honest", "--preset", "adr-005-day", "--limit", "7", "--trouble", "redis:away@0.3-0.6"},
		append(append([]string{}, simulateHonest...), "--instances", "2", "--trouble", "instance/1:clock=-2s@0.5",
			"--workload", "steady:subjects=10,cost=2", "--every", "1s", "--rush", "5@2026-01-01T00:00:01Z+1s"),
		{"sim", "honest", "--workload", "steady:over-quota=0", "--requests", "100", "--region", "us,eu", "--shared-redis"},
		append(append([]string{}, simulateHonest...), "--param", "seed=1,2"),
	} {
		first := call(t.Context(), append(append([]string{}, args...), "--print-config")...)
		if first.code != exit.OK || first.stderr != "" {
			t.Fatalf("%q: exit %d: %s", args, first.code, first.stderr)
		}
		if err := os.WriteFile("sim.yaml", []byte(first.stdout), 0o644); err != nil {
			t.Fatal(err)
		}
		if again := call(t.Context(), "sim", "--config", "sim.yaml", "--print-config"); again.stdout != first.stdout {
			t.Errorf("%q: printed again, it is %s%s, was %s", args, again.stdout, again.stderr, first.stdout)
		}
		flags := configured(t, args)
		file := configured(t, []string{"sim", "--config", "sim.yaml"})
		if !reflect.DeepEqual(flags, file) {
			t.Errorf("%q: the file configures %+v, the flags %+v", args, file, flags)
		}
	}
	if err := os.Remove("sim.yaml"); err != nil {
		t.Fatal(err)
	}
	p.requireUntouched()
}

// configured is what a command line without --print-config would simulate.
func configured(t *testing.T, args []string) sim.Config {
	t.Helper()
	s := &simSettings{Settings: group.New(group.Sim)}
	cmd := &cobra.Command{}
	s.register(cmd)
	if err := cmd.ParseFlags(args[1:]); err != nil {
		t.Fatal(err)
	}
	if err := s.Read(cmd.Flags().Args()); err != nil {
		t.Fatal(err)
	}
	cfg, err := s.configure()
	if err != nil {
		t.Fatal(err)
	}
	// Functions are never equal, and pointers only if they are the same.
	for i := range cfg.Strategies {
		cfg.Strategies[i].Meta = nil
	}
	cfg.Workload = &workloads.Meta{Name: cfg.Workload.Name}
	return cfg
}

// A loop that is asked for is the simulation's, also if the workload or a preset has another.
func TestSimLoops(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	for _, x := range []struct {
		args []string
		want harness.Load
	}{
		{[]string{"--workload", "steady"}, harness.Load{}},
		{[]string{"--workload", "steady", "--loop", "closed"}, harness.Closed()},
		{[]string{"--loop", "open", "--rate", "5"}, harness.OpenAt(5)},
		{[]string{"--preset", "adr-005-day", "--loop", "closed"}, harness.Closed()},
		{[]string{"--preset", "adr-005-day", "--rate", "7"}, harness.OpenAt(7)},
	} {
		if got := configured(t, append([]string{"sim", "honest"}, x.args...)).Load; got != x.want {
			t.Errorf("%q: %+v, want %+v", x.args, got, x.want)
		}
	}
	for _, args := range [][]string{{"--loop", "both"}, {"--loop", "open"}, {"--loop", "closed", "--rate", "5"}} {
		requireUsageError(t, call(t.Context(), append([]string{"sim", "honest"}, args...)...))
	}
}

// TestClocksOfAPreset: fewer instances have fewer of its clocks, and that these differ is said next to the verdicts.
func TestClocksOfAPreset(t *testing.T) {
	testenv.Sequential(t)
	for instances, says := range map[string]string{"4": "The instances' clocks differ by up to 2s.",
		"2": "The instances' clocks differ by up to 1s.", "1": ""} {
		newPlace(t, nil)
		o := call(t.Context(), "sim", "monthly", "--preset", presetOfItsOwn, "--instances", instances, "--requests", "1000")
		if o.code == exit.Usage || !strings.Contains(o.stdout, says) ||
			strings.Contains(o.stdout, "clocks differ") != (says != "") {
			t.Errorf("%s instances: exit %d, want %q: %s%s", instances, o.code, says, o.stdout, o.stderr)
		}
	}
}
