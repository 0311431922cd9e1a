//go:build unix

package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/testenv"
)

var root = filepath.Join("..", "..")

func committed(t *testing.T) *record {
	t.Helper()
	r, err := readRecord(filepath.Join(root, recordPath))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPageIsOfTheRecord: no figure of the page is typed, and no plot is of another record.
func TestPageIsOfTheRecord(t *testing.T) {
	text, images, err := committed(t).page()
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile(filepath.Join(root, pagePath))
	if err != nil || string(is) != text {
		t.Errorf("%s is not what the record gives (%v): go run ./internal/growth -page", pagePath, err)
	}
	for _, i := range images {
		png, err := i.plot.PNG()
		if err != nil {
			t.Fatal(err)
		}
		if is, err := os.ReadFile(filepath.Join(root, imagesPath, i.name+".png")); err != nil || !bytes.Equal(is, png) {
			t.Errorf("%s.png is not what the record gives (%v): go run ./internal/growth -page", i.name, err)
		}
	}
}

// TestPageFollowsTheRecord changes one figure of the record after the other, and requires
// another page.
func TestPageFollowsTheRecord(t *testing.T) {
	r := committed(t)
	before, _, err := r.page()
	if err != nil {
		t.Fatal(err)
	}
	last := len(r.Points) - 1
	for name, change := range map[string]func(){
		"decisions": func() { r.Points[1].Decisions += 7 }, "memory": func() { r.Points[1].PeakBytes *= 2 },
		"states": func() { r.Points[last].States *= 2 }, "time": func() { r.Points[last].CPUSeconds *= 2 }, "others": func() { r.Others += 0.1 },
	} {
		kept := *r
		kept.Points = append([]point(nil), r.Points...)
		change()
		if after, _, err := r.page(); err != nil || after == before {
			t.Errorf("%s: the page is as before (%v)", name, err)
		}
		*r = kept
	}
}

// TestSpeed plants simulations of a known speed: the start and the set-up do not count.
func TestSpeed(t *testing.T) {
	var r record
	for _, subjects := range []float64{100, 1000} {
		setUp := 1 + subjects/1000
		r.Points = append(r.Points,
			point{Sweep: bySubjects, Line: "one", X: subjects, Decisions: 1000, CPUSeconds: setUp},
			point{Sweep: bySubjects, Line: "one", X: subjects, Decisions: 301_000, CPUSeconds: setUp + 2})
	}
	all, err := r.crowds("one")
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, c := range all {
		if math.Abs(c.perSecond()-150_000) > 1 {
			t.Errorf("%g subjects: %g decisions per second, want 150,000", c.busy.X, c.perSecond())
		}
	}
	r.Points[1].CPUSeconds = r.Points[0].CPUSeconds
	if _, err := r.crowds("one"); err == nil {
		t.Error("300,000 decisions in no time are no error")
	}
}

func TestSlope(t *testing.T) {
	if s := slope(10, 5, 100, 500); math.Abs(s-2) > 1e-9 {
		t.Errorf("a square has the slope %g", s)
	}
	if p := perUnit(10, 100, 20, 150); p != 5 {
		t.Errorf("%g per unit, want 5", p)
	}
}

// TestBoundedSearchIsRefused: states that a bound counted are no growth.
func TestBoundedSearchIsRefused(t *testing.T) {
	r := committed(t)
	for i := range r.Points {
		if r.Points[i].Sweep == byClients {
			r.Points[i].Capped = true
			break
		}
	}
	if _, _, err := r.page(); err == nil || !strings.Contains(err.Error(), "ended by a bound") {
		t.Errorf("%v", err)
	}
}

// TestSweepsAreRecorded: the record is of the sweeps that there are.
func TestSweepsAreRecorded(t *testing.T) {
	r := committed(t)
	var want, got []string
	for _, s := range sweeps() {
		for _, c := range s.children {
			want = append(want, s.name+" "+c.line+" "+strconv.FormatFloat(c.x, 'g', -1, 64)+": "+strings.Join(c.args, " "))
		}
	}
	for _, p := range r.Points {
		got = append(got, p.Sweep+" "+p.Line+" "+strconv.FormatFloat(p.X, 'g', -1, 64)+": "+p.Command)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Error("the record is of other sweeps: make growth")
	}
}

// TestChild runs a program that uses memory of its own, twice: the second is not charged
// with the first's.
func TestChild(t *testing.T) {
	testenv.Long(t)
	program := filepath.Join(t.TempDir(), "quotabench")
	const script = `#!/bin/sh
set -e
test "$2" = small || head -c 500000000 /dev/zero | tail -c 500000000 | wc -c >/dev/null
printf '{"searches":[{"states":3,"runs":4,"capped":""}]}'
exit 3
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var got [2]*point
	for i, size := range []string{"large", "small"} {
		p, err := child{line: "one", x: 2, args: []string{"explore", size}}.run(t.Context(), program, filepath.Join(t.TempDir(), "run"))
		if err != nil {
			t.Fatal(err)
		}
		if p.States != 3 || p.Schedules != 4 || p.Capped || p.Line != "one" || p.X != 2 {
			t.Errorf("%+v", p)
		}
		got[i] = p
	}
	// A child begins as a copy of this process, which the race detector makes large.
	if got[0].PeakBytes < 400_000_000 || got[1].PeakBytes > 300_000_000 {
		t.Errorf("memory: %d and %d bytes", got[0].PeakBytes, got[1].PeakBytes)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no >&2\nexit 2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := (child{args: []string{"explore", "x"}}).run(t.Context(), program, filepath.Join(t.TempDir(), "run")); err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("a child that fails: %v", err)
	}
}
