package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// longest is the number of steps that a page shows: nobody reads more of them.
const longest = 8

// explored quotes what searches found, the shortest finding step by step, and what they
// did not find.
func explored(b *bytes.Buffer, m *strategies.Meta, e *Evidence) error {
	searches := e.searches(m.Name)
	if len(searches) == 0 {
		return nil
	}
	fmt.Fprint(b, "## Explored\n\n")
	for _, s := range searches {
		found(b, s)
	}
	of, f := shortest(searches)
	if f == nil {
		return nil
	}
	if len(f.Steps) > longest || f.Property != leak {
		fmt.Fprintf(b, "Repeat %s: `quotabench explore --replay %s`\n\n", f.Property, f.Token)
		return nil
	}
	fmt.Fprintf(b, "**%s** with %s:\n\n```\n", f.Property, faults(of))
	if err := text.Timeline(b, layout.Page{}, f); err != nil {
		return err
	}
	fmt.Fprintf(b, "```\n\nRepeat it: `quotabench explore --replay %s`\n\n", f.Token)
	return nil
}

// found lists the findings of one search, and what it did not find.
func found(b *bytes.Buffer, s *results.Search) {
	how := "complete"
	if s.Capped != "" {
		how = "not complete"
	}
	fmt.Fprintf(b, "`%s`, limit %d, %s: %s, %s.\n\n", strings.Join(s.Scripts, "; "), s.Limit, faults(s), format.Plural(int64(s.States), "state", "states"), how)
	for i := range s.Findings {
		f := &s.Findings[i]
		with := ""
		if len(f.Faults) > 0 {
			with = " with " + joined(f.Faults, faultName)
		}
		fmt.Fprintf(b, "- **%s** in %s%s\n", f.Property, format.Plural(int64(len(f.Steps)), "step", "steps"), with)
	}
	switch {
	case s.Claim == "" || s.Capped != "":
	case len(s.Findings) > 0:
		fmt.Fprintln(b, "- no other violation")
	default:
		fmt.Fprintln(b, "- no violation")
	}
	for _, w := range s.Withheld {
		fmt.Fprintf(b, "- no claim: %s\n", cell(w.Detail))
	}
	fmt.Fprintln(b)
}

// faults of a search, in words.
func faults(s *results.Search) string {
	switch {
	case s.Passes:
		return "time passes between calls"
	case len(s.Faults) == 0:
		return "no fault"
	case len(s.Faults) > 4:
		return "all faults"
	}
	return "faults " + joined(s.Faults, faultName)
}
