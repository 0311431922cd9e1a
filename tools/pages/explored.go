package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text"
	"github.com/quotabench/quotabench/results/text/layout"
	"github.com/quotabench/quotabench/strategies"
)

// explored quotes what searches found, the worst of it step by step, and the claim
// that there is nothing else.
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
	fmt.Fprintf(b, "The shortest schedule found that breaks %s: **%s** with %s: %s.\n\n```\n", breaks(f), f.Property, situation(of), f.Detail)
	if err := text.Timeline(b, layout.Page{}, f); err != nil {
		return err
	}
	fmt.Fprintf(b, "```\n\n`quotabench explore --replay %s` repeats it.\n\n", f.Token)
	return nil
}

// breaks names what the quoted schedule is the shortest of.
func breaks(f *results.Finding) string {
	if f.Property == leak {
		return "the limit"
	}
	return "a property"
}

// found lists the findings of one search, and what it may claim.
func found(b *bytes.Buffer, s *results.Search) {
	how := "complete"
	if s.Capped != "" {
		how = "not complete"
	}
	fmt.Fprintf(b, "With %s: %s, %s.\n\n", situation(s), format.Plural(int64(s.States), "state", "states"), how)
	for i := range s.Findings {
		f := &s.Findings[i]
		with := ""
		if len(f.Faults) > 0 {
			with = " with " + joined(f.Faults, faultName)
		}
		fmt.Fprintf(b, "- **%s** in %s%s: %s.\n", f.Property, format.Plural(int64(len(f.Steps)), "step", "steps"), with, cell(f.Detail))
	}
	if s.Claim != "" {
		fmt.Fprintf(b, "- %s\n", sentence(s.Claim))
	}
	for _, w := range s.Withheld {
		fmt.Fprintf(b, "- Nothing is claimed: %s\n", sentence(w.Detail))
	}
	fmt.Fprintln(b)
}

// situation is what a search was about.
func situation(s *results.Search) string {
	out := fmt.Sprintf("%s (`%s`), limit %d, policy %s, ", format.Plural(int64(s.Clients), "client", "clients"), strings.Join(s.Scripts, "; "), s.Limit, s.Policy)
	if len(s.Faults) == 0 {
		return out + "no fault"
	}
	return out + "faults " + joined(s.Faults, faultName)
}
