package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// longest is the number of steps that a page shows: nobody reads more of them.
const longest = 4

// explored quotes what searches found, the shortest finding step by step, and what they
// did not find.
func explored(b *bytes.Buffer, m *strategies.Meta, e *Evidence) error {
	searches := e.searches(m.Name)
	if len(searches) == 0 {
		return nil
	}
	fmt.Fprint(b, "## Explored\n\n")
	heading(b, []string{"scripts", "limit", "faults", "states", "violations (steps)"})
	for _, s := range searches {
		line(b, []string{callers(s), format.Count(s.Limit), faults(s), states(s), found(s)})
	}
	fmt.Fprintln(b)
	of, f := shortest(searches)
	if f == nil {
		return nil
	}
	if len(f.Steps) > longest || f.Property != leak {
		fmt.Fprintf(b, "Repeat %s: `quotabench explore --replay %s`\n\n", f.Property, f.Token)
		return nil
	}
	fmt.Fprintf(b, "The %s, faults: %s:\n\n```\n", f.Property, faults(of))
	if err := text.Timeline(b, layout.Page{}, f); err != nil {
		return err
	}
	fmt.Fprintf(b, "```\n\nRepeat it: `quotabench explore --replay %s`\n\n", f.Token)
	return nil
}

// callers are what they do, and on how many instances if they share one.
func callers(s *results.Search) string {
	scripts := cell("`" + strings.Join(s.Scripts, "; ") + "`")
	if s.Instances < s.Clients {
		return fmt.Sprintf("%s: %d clients, %s", scripts, s.Clients, format.Number(int64(s.Instances), "instance"))
	}
	return scripts
}

// states that a search saw.
func states(s *results.Search) string {
	if s.Capped != "" {
		return format.Count(int64(s.States)) + "+"
	}
	return format.Count(int64(s.States))
}

// found lists the findings of one search, or says why it claims nothing.
func found(s *results.Search) string {
	var parts []string
	for i := range s.Findings {
		f := &s.Findings[i]
		part := fmt.Sprintf("%s %d", f.Property, len(f.Steps))
		if len(f.Faults) > 0 {
			part += " (" + joined(f.Faults, faultName) + ")"
		}
		parts = append(parts, part)
	}
	for _, w := range s.Withheld {
		parts = append(parts, "no claim: "+cell(w.Detail))
	}
	return cmp.Or(strings.Join(parts, "; "), "none")
}

// faults of a search, in words.
func faults(s *results.Search) string {
	switch {
	case s.Passes:
		return "time between calls"
	case len(s.Faults) == 0:
		return "none"
	case len(s.Faults) > 4:
		return "all"
	}
	return joined(s.Faults, faultName)
}
