package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/markdown"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// longest is the number of steps that a page shows: nobody reads more of them.
const longest = 4

// explored quotes what searches found, the shortest finding step by step, and what they
// did not find.
func explored(buffer *bytes.Buffer, meta *strategies.Meta, evidence *Evidence) {
	searches := evidence.searches(meta.Name)
	if len(searches) == 0 {
		return
	}
	fmt.Fprint(buffer, "## Explored\n\n")
	table := newTable("scripts", "limit", "faults", "states", "violations (steps)")
	for _, search := range searches {
		table.Add(callers(search), format.Count(search.Limit), faults(search), states(search), found(search))
	}
	fmt.Fprintln(buffer, markdown.Table(table))
	of, finding := shortest(searches)
	if finding == nil {
		return
	}
	if len(finding.Steps) > longest || finding.Property != leak {
		fmt.Fprintf(buffer, "Repeat %s: `quotabench explore --replay %s`\n\n", finding.Property, finding.Token)
		return
	}
	fmt.Fprintf(buffer, "The %s, faults: %s:\n\n%s\n", finding.Property, faults(of), timeline(finding))
	fmt.Fprintf(buffer, "Repeat it: `quotabench explore --replay %s`\n\n", finding.Token)
}

// timeline is a schedule step by step.
func timeline(finding *results.Finding) string {
	return markdown.Code((layout.Page{}).Timeline(finding))
}

// callers are what they do, and on how many instances if they share one.
func callers(search *results.Search) string {
	scripts := cell("`" + strings.Join(search.Scripts, "; ") + "`")
	if search.Instances < search.Clients {
		return fmt.Sprintf("%s: %d clients, %s", scripts, search.Clients, format.Number(int64(search.Instances), "instance"))
	}
	return scripts
}

// states that a search saw.
func states(search *results.Search) string {
	if search.Capped != "" {
		return format.Count(int64(search.States)) + "+"
	}
	return format.Count(int64(search.States))
}

// found lists the findings of one search, or says why it claims nothing.
func found(search *results.Search) string {
	var parts []string
	for i := range search.Findings {
		finding := &search.Findings[i]
		part := fmt.Sprintf("%s %d", finding.Property, len(finding.Steps))
		if len(finding.Faults) > 0 {
			part += " (" + joined(finding.Faults, faultName) + ")"
		}
		parts = append(parts, part)
	}
	for _, withheld := range search.Withheld {
		parts = append(parts, "no claim: "+cell(withheld.Detail))
	}
	return cmp.Or(strings.Join(parts, "; "), "none")
}

// faults of a search, in words.
func faults(search *results.Search) string {
	switch {
	case search.Passes:
		return "time between calls"
	case len(search.Faults) == 0:
		return "none"
	case len(search.Faults) > 4:
		return "all"
	}
	return joined(search.Faults, faultName)
}
