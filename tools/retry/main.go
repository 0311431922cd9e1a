// Command retry runs go test and repeats each test that failed, alone, twice.
//
//	retry -report FILE -- go test [FLAGS] ./PACKAGES...
//
// If both repetitions pass, the failure came by chance: its name and its first output are
// added to the report, and it does not count. Some failures count at once: data races,
// panics, differences from golden files, packages that do not build, and more failures
// than five. The exit code is 1 if a failure counts, and 2 if the command line is wrong.
//
// Packages are the arguments that begin with "./"; all others are flags of go test.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

const (
	// repetitions of a failed test must all pass.
	repetitions = 2
	// mostFailures that are repeated. More of them have one cause, which is not chance.
	mostFailures = 5
)

func main() {
	report := flag.String("report", "", "file to which tests that failed by chance are added")
	flag.Parse()
	command := flag.Args()
	if *report == "" || len(command) < 2 {
		fmt.Fprintln(os.Stderr, "usage: retry -report FILE -- go test [FLAGS] ./PACKAGES...")
		os.Exit(2)
	}
	err := retry(command, *report, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "retry:", err)
		os.Exit(1)
	}
}

// retry runs the command and repeats what failed. It returns an error if a failure counts.
func retry(command []string, report string, out io.Writer) error {
	var flags, packages []string
	for _, argument := range command {
		if strings.HasPrefix(argument, "./") {
			packages = append(packages, argument)
		} else {
			flags = append(flags, argument)
		}
	}
	outcome, err := run(append(flags, packages...), out)
	if err != nil {
		return err
	}
	if outcome.passed {
		return nil
	}
	if outcome.broken != "" {
		return errors.New(outcome.broken)
	}
	if len(outcome.failures) == 0 {
		return errors.New("go test failed, and no test did")
	}
	if len(outcome.failures) > mostFailures {
		return fmt.Errorf("%d tests failed", len(outcome.failures))
	}
	for _, failure := range outcome.failures {
		if cause := failure.cause(); cause != "" {
			return fmt.Errorf("%s in %s is never repeated: %s", failure.test, failure.pkg, cause)
		}
	}
	for _, failure := range outcome.failures {
		if err := failure.repeat(flags, out); err != nil {
			return err
		}
		if err := failure.write(report); err != nil {
			return err
		}
	}
	return nil
}

// repeat runs the test alone and returns an error if one of the repetitions fails.
func (f failure) repeat(flags []string, out io.Writer) error {
	for i := range repetitions {
		fmt.Fprintf(out, "retry: %s %s, repetition %d of %d\n", f.pkg, f.test, i+1, repetitions)
		alone := append([]string{}, flags...)
		alone = append(alone, "-count=1", "-run", "^"+regexp.QuoteMeta(f.test)+"$", f.pkg)
		outcome, err := run(alone, out)
		if err != nil {
			return err
		}
		if !outcome.passed {
			return fmt.Errorf("%s %s failed again", f.pkg, f.test)
		}
	}
	return nil
}

// write adds the failure to the report.
func (f failure) write(report string) error {
	file, err := os.OpenFile(report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	text := strings.TrimRight(f.output.String(), "\n")
	text = strings.ReplaceAll(text, "\n", "\n    ")
	_, err = fmt.Fprintf(file, "%s %s\n    %s\n", f.pkg, f.test, text)
	return errors.Join(err, file.Close())
}

// fixed are failures that chance does not explain away, by what their output has.
var fixed = []struct {
	cause  string
	output *regexp.Regexp
}{
	{"a data race", regexp.MustCompile(`WARNING: DATA RACE|race detected during execution of test`)},
	{"a panic", regexp.MustCompile(`(?m)^\s*(panic:|fatal error:|SIG[A-Z]+: )`)},
	{"a difference from a golden file", regexp.MustCompile(`\bgolden\b|-update\b`)},
}

// cause says why the failure is never repeated, or is empty.
func (f failure) cause() string {
	for _, c := range fixed {
		if c.output.Match(f.output.Bytes()) {
			return c.cause
		}
	}
	return ""
}

// run runs go test, prints what it prints without -json, and tells how it ended.
func run(command []string, out io.Writer) (outcome, error) {
	// -json is a flag of go test, so it follows the first two words.
	args := append([]string{command[1], "-json"}, command[2:]...)
	cmd := exec.Command(command[0], args...) //nolint:gosec // the command is the caller's
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return outcome{}, err
	}
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	events, readErr := read(pipe, out)
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return outcome{}, err
	}
	events.passed = err == nil
	return events, readErr
}

// outcome of one run of go test.
type outcome struct {
	passed   bool
	failures []failure
	// broken says which package failed although none of its tests did, or is empty.
	broken string
}

// failure is a test function that failed, with the output of its subtests.
type failure struct {
	pkg, test string
	output    *bytes.Buffer
}
