package cli

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// tinySweep is a sweep on embedded stores that takes a moment.
func tinySweep(args ...string) []string {
	return append([]string{"run", "--redis", "embedded", "--postgres", "embedded", "--requests", "400", "--rounds", "2",
		"--instances", "1", "--out", "out"}, args...)
}

func TestSweep(t *testing.T) {
	testenv.Sequential(t)
	p := newPlace(t, nil)
	rounds := testenv.Pick(1, 2)
	o := call(t.Context(), tinySweep("honest", "--param", "workers=4,1", "--param", "limit=20,50", "--rounds",
		strconv.Itoa(rounds))...)
	if o.code != exit.OK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	f := readResults(t)
	if len(f.Runs) != 4*rounds || len(f.Summaries) != 4 || f.Sweep == nil || len(f.Sweep.Parameters) != 2 ||
		f.Sweep.Parameters[0].Values[0] != "4" {
		t.Fatalf("%d runs, %d summaries, sweep %+v", len(f.Runs), len(f.Summaries), f.Sweep)
	}
	for _, r := range f.Runs {
		if r.Params.Loop != "closed" || r.Params.Instances != 1 ||
			r.Params.Point["workers"] != map[int]string{1: "1", 4: "4"}[r.Params.Workers] ||
			r.Params.Point["limit"] != map[int64]string{20: "20", 50: "50"}[r.Params.Limit] {
			t.Errorf("point %v: %+v", r.Params.Point, r.Params)
		}
	}
	s := f.SweepSeries()
	if len(s) != 2 || len(s[0].Points) != 2 || s[0].Second != "20" || s[0].Points[0].Value != "1" {
		t.Errorf("series %+v", s)
	}
	for _, line := range []string{"\n4        BASELINE ", "honest, limit 20",
		"honest, limit 50"} {
		if !strings.Contains(o.stdout, line) {
			t.Errorf("no %q in\n%s", line, o.stdout)
		}
	}
	p.requireNothingLeft()
}

// A gate is checked against each point, and says at which it fails.
func TestSweepGates(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	o := call(t.Context(), tinySweep("honest", "--param", "workers=1,2", "--require", "admitted-nonsense>1")...)
	requireUsageError(t, o)
	o = call(t.Context(), tinySweep("liar", "--param", "workers=1,2", "--rounds", "1", "--require", "leak<=0")...)
	if o.code != exit.Gate || !strings.Contains(o.stderr, "workers 2") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}

func TestSweepSearch(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	o := call(t.Context(), tinySweep("honest", "--requests", "40", "--limit", "10", "--instances", "1", "--rounds", "1",
		"--until", "errors=0", "--param", "rate=4000..4100", "--workers", "4")...)
	f := readResults(t)
	if o.code != exit.OK || f.Sweep == nil || !f.Sweep.Search || f.Sweep.Until != "errors=0" ||
		!strings.Contains(o.stdout, "\n4000         BASELINE ") {
		t.Errorf("exit %d, %+v: %s%s", o.code, f.Sweep, o.stdout, o.stderr)
	}
	for _, r := range f.Runs {
		if r.Params.Loop != "open" || r.Params.RatePerS < 4000 || r.Params.RatePerS > 4100 {
			t.Errorf("%+v", r.Params)
		}
	}
}

func TestSweepNonsense(t *testing.T) {
	p := newPlace(t, nil)
	for _, args := range [][]string{
		{"--param", "workers"},
		{"--param", "wrkers=1,2"},
		{"--param", "workers=1", "--param", "pool=1", "--param", "limit=5"},
		{"--param", "rate=100..200"},
		{"--until", "p98<5ms"},
		{"--until", "p99<5ms", "--loop", "closed"},
	} {
		requireUsageError(t, call(t.Context(), tinySweep(append(args, "honest")...)...))
	}
	p.requireUntouched()
}

// TestSweepOfFlagsForOneSetting: flags of run that a sweep cannot have are refused before anything starts.
func TestSweepOfFlagsForOneSetting(t *testing.T) {
	p := newPlace(t, nil)
	for args, want := range map[string]string{
		"--param workers=1,2 --against x":      "--param: --against compares two programs at one setting",
		"--until p99<5ms --against x":          "--until: --against compares two programs at one setting",
		"--until p99<5ms --budget 5s":          "--budget: a search for a rate ends when it has found it",
		"--param workers=1,2 --loop both":      "give --rate, or --loop closed",
		"--until p99<5ms --rate 100":           "bound it by --param rate=LOW..HIGH",
		"--param workers=1,2 --workers 8":      "workers is given by --workers, too",
		"--param rate=100,200 --loop closed":   "rates belong to an open loop",
		"--param workers=1,2 --instances 2":    "2 instances have only 1 workers",
		"--until p99<5ms --param rate=900..10": "900..10",
	} {
		o := call(t.Context(), tinySweep(append(strings.Fields(args), "honest")...)...)
		requireUsageError(t, o)
		if !strings.Contains(o.stderr, want) {
			t.Errorf("%s: %s", args, o.stderr)
		}
	}
	p.requireUntouched()
}

// Ctrl-C during a sweep keeps what was measured, and says what it is.
func TestSweepInterrupted(t *testing.T) {
	p := newPlace(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	taken.Store(0)
	var once sync.Once
	onTake = func(n int64) {
		if n >= 500 {
			once.Do(cancel)
		}
	}
	defer func() { onTake = nil }()
	o := call(ctx, tinySweep("honest", "--param", "workers=1,2,4", "--requests", "0", "--duration", "2s")...)
	f := readResults(t)
	if o.code != exit.Interrupted || !f.Interrupted || len(f.Runs) == 0 || f.Sweep == nil ||
		f.Runs[0].Params.Point["workers"] == "" || !strings.Contains(o.stdout, "── honest ──") {
		t.Errorf("exit %d, %d runs, %+v: %s", o.code, len(f.Runs), f.Sweep, o.stderr)
	}
	p.requireNothingLeft()
}

// TestSweepConfig: a value of the file gives way to the parameter, and one of a flag does not.
func TestSweepConfig(t *testing.T) {
	newPlace(t, map[string]string{"sweep.yaml": "run:\n  param: [workers=1..4x2]\n  strategy: [honest]\nworkers: 8\n"})
	o := call(t.Context(), "run", "--config", "sweep.yaml", "--print-config")
	if o.code != exit.OK || !strings.Contains(o.stdout, "param:\n  - workers=1..4x2\n") ||
		!strings.Contains(o.stdout, "\nrounds: 10\n") {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	requireUsageError(t, call(t.Context(), "run", "--config", "sweep.yaml", "--workers", "8"))
}

// TestSweepBudget: no round begins that would end after the budget, and the record says so.
func TestSweepBudget(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	o := call(t.Context(), tinySweep("honest", "--param", "workers=1,2", "--budget", "1ms")...)
	f := readResults(t)
	if o.code != exit.OK || len(f.Runs) != 2 || !strings.Contains(f.Ended, "the budget of 0.001 s is spent") {
		t.Errorf("exit %d, %d runs, %q: %s", o.code, len(f.Runs), f.Ended, o.stderr)
	}
}
