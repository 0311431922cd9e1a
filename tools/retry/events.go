package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is a line of go test -json, as go doc test2json describes it.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a package that is built
	Test        string
	Output      string
	FailedBuild string
}

// reader collects the output of tests until it is known whether they fail.
type reader struct {
	out io.Writer
	// tests has the output of each test function that runs.
	tests map[testName]*bytes.Buffer
	// packages has the output of each package outside of its tests.
	packages map[string]*bytes.Buffer
	// failed counts the test functions of a package that failed.
	failed map[string]int
	outcome
}

type testName struct{ pkg, test string }

// read reads the events of a whole run.
func read(events io.Reader, out io.Writer) (outcome, error) {
	r := reader{
		out:      out,
		tests:    map[testName]*bytes.Buffer{},
		packages: map[string]*bytes.Buffer{},
		failed:   map[string]int{},
	}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if err == io.EOF {
			return r.outcome, nil
		}
		if err != nil {
			return r.outcome, err
		}
	}
}

func (r *reader) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		_, _ = r.out.Write(line) // what go test says before the first event
		return
	}
	if e.Action == "build-output" {
		fmt.Fprint(r.out, e.Output)
		return
	}
	if e.Test == "" {
		r.packageEvent(e)
		return
	}
	r.testEvent(e)
}

// testEvent takes an event of a test function or of one of its subtests.
func (r *reader) testEvent(e event) {
	root, _, isSubtest := strings.Cut(e.Test, "/")
	name := testName{e.Package, root}
	output := r.tests[name]
	if output == nil {
		output = &bytes.Buffer{}
		r.tests[name] = output
	}
	output.WriteString(e.Output)
	if isSubtest {
		return
	}
	switch e.Action {
	case "fail":
		r.failed[e.Package]++
		r.failures = append(r.failures, failure{pkg: e.Package, test: root, output: output})
		fmt.Fprint(r.out, output.String())
		delete(r.tests, name)
	case "pass", "skip":
		delete(r.tests, name)
	}
}

// packageEvent takes an event of a whole package.
func (r *reader) packageEvent(e event) {
	output := r.packages[e.Package]
	if output == nil {
		output = &bytes.Buffer{}
		r.packages[e.Package] = output
	}
	output.WriteString(e.Output)
	switch e.Action {
	case "pass":
		fmt.Fprint(r.out, summary(output.String()))
	case "fail":
		r.unfinished(e.Package)
		fmt.Fprint(r.out, output.String())
		if r.failed[e.Package] == 0 {
			r.broken = e.Package + " failed outside of its tests"
		}
	}
}

// unfinished has the tests fail that a package left without an end: it panicked in them.
func (r *reader) unfinished(pkg string) {
	for name, output := range r.tests {
		if name.pkg != pkg {
			continue
		}
		r.failed[pkg]++
		output.WriteString("panic: the package ended during this test\n")
		r.failures = append(r.failures, failure{pkg: pkg, test: name.test, output: output})
		fmt.Fprint(r.out, output.String())
		delete(r.tests, name)
	}
}

// summary is the line in which go test says that a package passed.
func summary(output string) string {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "ok ") {
			return line
		}
	}
	return ""
}
