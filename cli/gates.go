package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/compare"
	tables "github.com/quotabench/quotabench/results/text"
)

// failOnSetting are the gates of a command.
func (s *settings) failOnSetting(example string) setting {
	return setting{name: "fail-on", value: &list{p: &s.failOn}, complete: cobra.NoFileCompletions, computed: true,
		doc: "exit with 1 where a `condition` on a figure holds, e.g. " + example + " (docs/comparing.md lists the figures); may be repeated"}
}

// undecidedSetting says what a gate does that cannot be decided.
func (s *settings) undecidedSetting() setting {
	return setting{name: "undecided", value: &text{p: &s.undecided, choices: []string{undecidedFail, undecidedPass}}, computed: true, complete: completeWords(undecidedFail, undecidedPass),
		doc: "what a gate does that cannot be decided, e.g. on timings of a noisy machine: fail or pass (default " + undecidedFail + ")"}
}

const undecidedFail, undecidedPass = "fail", "pass"

// decisive is the gate as --undecided has it.
func (s *settings) decisive(g compare.Gate) compare.Gate {
	if s.undecided == undecidedPass {
		return g.Lenient()
	}
	return g
}

// runGates are the gates on runs.
func (s *settings) runGates() (gates []compare.Gate, err error) {
	for _, text := range s.failOn {
		g, err := compare.ParseRunGate(text)
		if err != nil {
			return nil, s.wrong("fail-on", err)
		}
		gates = append(gates, s.decisive(g))
	}
	return gates, nil
}

// searchGates are the gates on searches for some of the properties, or for any.
func (s *settings) searchGates(properties []results.Property) (gates []compare.Gate, err error) {
	if properties == nil {
		properties = explore.Properties()
	}
	for _, text := range s.failOn {
		g, err := compare.ParseSearchGate(text, properties)
		if err != nil {
			return nil, s.wrong("fail-on", err)
		}
		gates = append(gates, s.decisive(g))
	}
	return gates, nil
}

// gated is the outcome of a command after its gates were held against what it found: err,
// or which of them fail. Gates that could not be decided are said to be.
func gated(stderr io.Writer, err error, rows []compare.Row) error {
	var e *exitError
	if err != nil && (!errors.As(err, &e) || e.code != ExitGate) {
		return err // what was measured counts for nothing
	}
	for i := range rows {
		if r := &rows[i]; r.Verdict == compare.Inconclusive {
			fmt.Fprintf(stderr, "warning: gate %s of %s is not decided: %s\n", r.Figure, r.Strategy, r.Detail)
		}
	}
	return failures(stderr, err, slices.DeleteFunc(rows, func(r compare.Row) bool { return !r.Fails(false) }))
}

// failures is the error of gates and figures that fail, each of which it names, after
// what failed before. A long list is on standard error.
func failures(stderr io.Writer, before error, rows []compare.Row) error {
	if len(rows) == 0 {
		return before
	}
	const most = 3
	lines := tables.FailureLines(rows)
	if len(lines) > most {
		for _, l := range lines {
			fmt.Fprintln(stderr, "fails: "+l)
		}
		lines = []string{fmt.Sprintf("%d figures or gates fail, the first of them %s", len(lines), lines[0])}
	}
	if before != nil {
		lines = append([]string{before.Error()}, lines...)
	}
	return fail(ExitGate, errors.New(strings.Join(lines, "; ")))
}
