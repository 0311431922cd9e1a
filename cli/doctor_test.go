package cli

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
)

func TestDoctor(t *testing.T) {
	p := newPlace(t, nil)
	begin := clock.Nano()
	o := call(t.Context(), "doctor")
	if took := time.Duration(clock.Nano() - begin); took > time.Second {
		t.Errorf("it took %v", took)
	}
	if o.code != ExitOK || o.stderr != "" {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
	text, _ := strings.CutSuffix(o.stdout, "\n")
	seen := map[string]bool{}
	column := 0
	form := regexp.MustCompile(`^(\S+(?: \S+)*)\s+(ok|missing|note)\s+(\S.*\S)$`)
	for line := range strings.SplitSeq(text, "\n") {
		m := form.FindStringSubmatchIndex(line)
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
	for _, name := range []string{"redis-server", "postgresql", "container engine", "processors", "timer", "steal"} {
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
		text   string
		state  state
		detail string
		advice bool
	}{
		{"cpu  10 0 10 60 5 3 2 10 400 7\ncpu0 1\n", stateNote, "10.00 % of the processor time since the machine started", true},
		{"cpu  500 0 400 90 5 0 0 5\n", stateOK, "0.50 % of the processor time since the machine started", false},
		{"cpu  0 0 0 0 0 0 0 0\n", stateOK, "0.00 % of the processor time since the machine started", false},
		{"cpu  1 2 3\n", stateNote, "this system does not tell", false},
		{"cpu  a 0 400 90 5 0 0 5\n", stateNote, "this system does not tell", false},
		{"", stateNote, "this system does not tell", false},
	} {
		path := t.TempDir() + "/stat"
		if err := os.WriteFile(path, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := steal(path); c.State != x.state || c.Detail != x.detail || (c.Advice != "") != x.advice {
			t.Errorf("%q gives %+v", x.text, c)
		}
	}
	if c := steal(t.TempDir() + "/none"); c.State != stateNote {
		t.Errorf("no file gives %+v", c)
	}
}
