package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/internal/kit/exit"
)

func TestDoctor(t *testing.T) {
	p := newPlace(t, nil)
	o := call(t.Context(), "doctor")
	if o.code != exit.OK || o.stderr != "" {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
	text, _ := strings.CutSuffix(o.stdout, "\n")
	seen := map[string]bool{}
	column := 0
	form := regexp.MustCompile(`^(\S+(?: \S+)*)\s+(ok|missing|note)\s+(\S.*\S)$`)
	for line := range strings.SplitSeq(text, "\n") {
		m := form.FindStringSubmatchIndex(line)
		if m == nil && column > 0 && strings.TrimLeft(line, " ") == line[min(column, len(line)):] {
			continue // of the line above
		}
		if m == nil {
			t.Errorf("%q has not the form of a line", line)
			continue
		}
		seen[line[m[2]:m[3]]] = true
		if column == 0 {
			column = m[6]
		}
		if m[6] != column {
			t.Errorf("%q is not aligned", line)
		}
	}
	for _, name := range []string{"Redis", "PostgreSQL", "libfaketime", "container engine", "processors", "timer",
		"steal"} {
		if !seen[name] {
			t.Errorf("nothing about %s:\n%s", name, o.stdout)
		}
	}
	p.requireUntouched()
}

// What is missing comes with advice.
func TestDoctorWithoutAnEngine(t *testing.T) {
	newPlace(t, nil)
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
	var lines []checkup
	if err := json.Unmarshal([]byte(call(t.Context(), "doctor", "--json").stdout), &lines); err != nil {
		t.Fatal(err)
	}
	for _, c := range lines {
		if c.Detail == "" || c.State == stateMissing && c.Advice == "" {
			t.Errorf("%+v says too little", c)
		}
		if c.Name == "container engine" && c.State != stateMissing {
			t.Errorf("an engine was found where there is none: %+v", c)
		}
	}
}

func TestSteal(t *testing.T) {
	for _, x := range []struct {
		time   machine.CPUTime
		state  state
		detail string
		advice bool
	}{
		{machine.CPUTime{Stolen: 100.01, Total: 1000}, stateNote, "10.00 % of the processor time since the machine started",
			true},
		{machine.CPUTime{Stolen: 5, Total: 1000}, stateOK, "0.50 % of the processor time since the machine started", false},
		{machine.CPUTime{Total: 1}, stateOK, "0.00 % of the processor time since the machine started", false},
		{machine.CPUTime{}, stateNote, "this system does not tell", false},
	} {
		if c := steal(x.time); c.State != x.state || c.Detail != x.detail || (c.Advice != "") != x.advice {
			t.Errorf("%+v gives %+v", x.time, c)
		}
	}
}
