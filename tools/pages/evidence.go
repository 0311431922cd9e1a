package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/results"
)

// Evidence is what pages quote: records of runs, and explored schedules. What it
// lacks is left out of the pages.
type Evidence struct {
	// Runs are records, measured or simulated.
	Runs []results.File
	// Names are those of the records' folders, in the order of Runs.
	Names []string
	// Sweeps are records over values of parameters, in the order of their names. Their figures are in no table.
	Sweeps []Sweep
	// Explorations are records of searches.
	Explorations []results.Exploration
	// Verdicts are those on claims of design records; nil if none were judged.
	Verdicts *Verdicts
	// Faults are what strategies make of faults; nil if that was not measured.
	Faults *claims.Report
	// Others are pages in the same directory that were written by hand. Strategies'
	// pages link back to those that link to them.
	Others []Page
}

// choosing is the page that the index begins with; it links most strategies.
const choosing = "choosing.md"

// others are the links to the pages of e that link to the page with the name.
func (e *Evidence) others(name string) []string {
	var out []string
	for _, page := range e.Others {
		if page.Name != choosing && bytes.Contains(page.Bytes, []byte("]("+name+")")) {
			out = append(out, page.link())
		}
	}
	return out
}

// link to a page, by its heading.
func (p *Page) link() string {
	title, _, _ := strings.Cut(strings.TrimSpace(string(p.Bytes)), "\n")
	title = strings.TrimSpace(strings.TrimLeft(title, "#"))
	if title == "" {
		title = p.Name
	}
	return "[" + title + "](" + p.Name + ")"
}

// name of a record, for readers.
func (e *Evidence) name(i int) string {
	if i < len(e.Names) {
		return e.Names[i]
	}
	return fmt.Sprintf("record %d", i+1)
}

// figure is one strategy in one record.
type figure struct {
	file    *results.File
	name    string
	summary *results.Summary
}

// figures of a strategy in every setting, those of its defaults first.
func (e *Evidence) figures(name string) []figure {
	var out []figure
	for i := range e.Runs {
		file := &e.Runs[i]
		all := file.Summarised()
		for j := range all {
			if all[j].Strategy == name {
				out = append(out, figure{file, e.name(i), &all[j]})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b figure) int { return cmp.Compare(len(a.summary.Label), len(b.summary.Label)) })
	return out
}

// searches of a strategy with its default options, in their order.
func (e *Evidence) searches(name string) []*results.Search {
	var out []*results.Search
	for i := range e.Explorations {
		for _, search := range e.Explorations[i].Searches {
			if search.Strategy == name {
				out = append(out, search)
			}
		}
	}
	return out
}

// leak is the property that a reader asks for first.
const leak results.Property = "leak"

// shortest is the shortest schedule that leaks, or, if none does, that breaks another
// property, with its search. One without faults goes before all others; nil if nothing
// was found.
func shortest(searches []*results.Search) (search *results.Search, finding *results.Finding) {
	leaks := func(f *results.Finding) int {
		if f.Property == leak {
			return 0
		}
		return 1
	}
	for _, s := range searches {
		for i := range s.Findings {
			x := &s.Findings[i]
			if finding == nil || cmp.Or(cmp.Compare(len(x.Faults), len(finding.Faults)), cmp.Compare(leaks(x), leaks(finding)),
				cmp.Compare(len(x.Steps), len(finding.Steps))) < 0 {
				search = s
				finding = x
			}
		}
	}
	return search, finding
}

// skipped is why a strategy took no part in the runs; "" if it did, or if
// nothing is said.
func (e *Evidence) skipped(name string) string {
	for i := range e.Runs {
		for _, skipped := range e.Runs[i].Skipped {
			if skipped.Strategy == name {
				return skipped.Reason
			}
		}
	}
	return ""
}
