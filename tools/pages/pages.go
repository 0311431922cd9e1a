package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Page is one file of the reference, in Markdown.
type Page struct {
	// Name of the file, without a directory.
	Name  string
	Bytes []byte
}

// Index is the name of the page that lists the others.
const Index = "README.md"

// mark ends every page that is made here.
const mark = "\n<!-- Written by make pages: change what it quotes, not this file. -->\n"

// Generated reports whether a page was made here, by any version.
func Generated(page []byte) bool { return bytes.HasSuffix(page, []byte(mark)) }

// Render writes the index and a page for each strategy, in the order of their names. Pages
// written by hand that have figures of strategies beside each other follow, with those
// of e.
func Render(all []*strategies.Meta, e *Evidence) ([]Page, error) {
	all = slices.SortedFunc(slices.Values(all), func(a, b *strategies.Meta) int { return strings.Compare(a.Name, b.Name) })
	out := []Page{{Index, index(all, e)}}
	for _, m := range all {
		p, err := page(m, e)
		if err != nil {
			return nil, fmt.Errorf("page of %s: %w", m.Name, err)
		}
		out = append(out, Page{m.Name + ".md", p})
	}
	for i := range e.Others {
		other := &e.Others[i]
		filled, err := e.fill(other)
		if err != nil {
			return nil, err
		}
		if filled != nil {
			out = append(out, Page{other.Name, filled})
		}
	}
	return out, nil
}

// guide says how to read a page.
const guide = `
## How to read a page

- **Form**: a *documented* strategy does what its source says, flaws included. A *hardened* one is what remains once the leaks of a documented one are mended. A
  *rejected alternative* is what a source considered and turned down, and a *future* one what it names as a later improvement. *Reference* and *baseline* have no source.
- **Declared guarantee**: what the strategy promises, and the faults under which it promises it. A run evaluates each clause.
- **Promise of the record**: what the design record says that the strategy comes from, whatever the strategy declares,
  and what each recorded run made of it. It decides nothing.
- **Leak**: units admitted over the limit. A trial is a window of one subject of which more than the limit was asked.
- **False rejects**: requests rejected although there was room, in percent of those that had to be admitted; *certain..possible* where the order of events leaves
  both open.
- **Drift at rest**: what a counter says when nothing is in flight, less what callers were told.
- **Decisions per second** are those of callers that never pause. **p50** and **p99** are response times at one rate that all strategies share.
- **Rounds kept** are the rounds behind decisions per second and, if they differ, those behind p50 and p99. Rounds in which the machine was disturbed are left out for all strategies.
- *Not measurable* stands for timings if too few rounds remain. **(w)** marks a percentile that waiting for a core could explain in most rounds.
- **Explored**: the strategy's own code is run with a few clients in every order that their store commands can happen in. A step is a command, or a statement of SQL.
  Each property stands with the shortest schedule that breaks it: *leak*; *guarantee*, a declared clause; *false-reject*; *drift*; *ttl*, a key that never expires;
  *stranded*, units that are counted and that no caller holds; *negative*, a stored number below zero; *forgotten*, a tier that no longer rejects a subject whose quota is
  used up; *stuck*, clients that wait for something that cannot come.
`

func index(all []*strategies.Meta, e *Evidence) []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "# Strategies\n\nThis reference is generated from what strategies declare and from records of runs and searches.\n\n")
	fmt.Fprint(&b, "| strategy | form | source | what it does |\n|---|---|---|---|\n")
	for _, m := range all {
		fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s | %s |\n", m.Name, m.Name, m.Form, cmp.Or(cell(m.Source), "-"), cell(m.Doc))
	}
	fmt.Fprint(&b, guide)
	if len(e.Others) > 0 {
		fmt.Fprint(&b, "\n## More about some of them\n\n")
		for _, p := range e.Others {
			fmt.Fprintf(&b, "- %s\n", p.link())
		}
	}
	if len(e.Runs) > 0 {
		fmt.Fprint(&b, "\n## Where the figures come from\n\n")
		for i := range e.Runs {
			fmt.Fprintf(&b, "- %s\n", origin(&e.Runs[i], nil))
		}
	}
	b.WriteString(mark)
	return b.Bytes()
}

func page(m *strategies.Meta, e *Evidence) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", m.Name, sentence(m.Doc))
	if more := e.others(m.Name + ".md"); len(more) > 0 {
		fmt.Fprintf(&b, "More: %s.\n\n", strings.Join(more, ", "))
	}
	facts(&b, m)
	list(&b, "How it works", true, m.Notes.How)
	if m.Notes.Use != "" || m.Notes.Avoid != "" {
		fmt.Fprintf(&b, "## When to use it\n\n%s\n\n", strings.TrimSpace(m.Notes.Use))
		if m.Notes.Avoid != "" {
			fmt.Fprintf(&b, "**When not.** %s\n\n", m.Notes.Avoid)
		}
	}
	guarantee(&b, m)
	ofRecord(&b, m, e)
	differs := "Where it differs from its source"
	if m.Source == "" {
		differs = "Where it differs from what is usual"
	}
	list(&b, differs, false, m.Notes.Deviations)
	figures(&b, m, e)
	if err := explored(&b, m, e); err != nil {
		return nil, err
	}
	options(&b, m)
	return append(bytes.TrimRight(b.Bytes(), "\n"), "\n"+mark...), nil
}

func facts(b *bytes.Buffer, m *strategies.Meta) {
	rows := [][2]string{{"form", string(m.Form)}, {"source", cmp.Or(m.Source, "none")}}
	needs := make([]string, len(m.Needs))
	for i, n := range m.Needs {
		needs[i] = string(n)
	}
	rows = append(rows, [2]string{"stores", cmp.Or(strings.Join(needs, ", "), "none")})
	kinds := make([]string, len(m.Kinds))
	for i, k := range m.Kinds {
		kinds[i] = k.String()
	}
	rows = append(rows, [2]string{"windows", strings.Join(kinds, ", ")}, [2]string{"counts", string(m.Counts)})
	var modes []string
	for _, mode := range strategies.Modes() {
		text := string(mode)
		if why, not := m.Excludes(mode); not {
			text = "not " + text + ": " + why
		}
		modes = append(modes, text)
	}
	rows = append(rows, [2]string{"modes", strings.Join(modes, "; ")})
	fmt.Fprint(b, "[How to read this page]("+Index+"#how-to-read-a-page)\n\n| | |\n|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %s |\n", r[0], cell(r[1]))
	}
	fmt.Fprintln(b)
}

func list(b *bytes.Buffer, title string, numbered bool, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	for i, l := range lines {
		if numbered {
			fmt.Fprintf(b, "%d. %s\n", i+1, l)
		} else {
			fmt.Fprintf(b, "- %s\n", l)
		}
	}
	fmt.Fprintln(b)
}

func guarantee(b *bytes.Buffer, m *strategies.Meta) {
	fmt.Fprint(b, "## Declared guarantee\n\n")
	if len(m.Guarantee) == 0 {
		fmt.Fprint(b, "It declares none.\n\n")
		return
	}
	line(b, []string{"property", "at most, per subject and window", "windows", "also under"})
	fmt.Fprintln(b, "|---|---|---|---|")
	for _, c := range m.Guarantee {
		line(b, promise(c))
	}
	fmt.Fprintln(b)
}

// promise is a clause in cells.
func promise(c quota.Clause) []string {
	windows, faults := joined(c.Kinds, quota.Kind.String), joined(c.Tolerates, faultName)
	return []string{string(c.Property), cell(c.Formula), cmp.Or(windows, "all it serves"), cmp.Or(faults, "no fault")}
}

// ofRecord lists what the design record promises, and what each run said of it.
func ofRecord(b *bytes.Buffer, m *strategies.Meta, e *Evidence) {
	if len(m.Record) == 0 {
		return
	}
	fmt.Fprint(b, "## Promise of the record\n\n")
	line(b, []string{"property", "at most, per subject and window", "windows", "also under", "record", "in runs and simulations"})
	fmt.Fprintln(b, "|---|---|---|---|---|---|")
	for _, c := range m.Record {
		var said []string
		for _, f := range e.figures(m.Name) {
			for _, r := range f.summary.Record {
				if s := f.summary; r.Property == string(c.Property) && r.Formula == c.Formula && s.Counts() {
					said = append(said, fmt.Sprintf("%s (%s, %s)", r.Said(s.Params.Unit), s.Label, s.Workload))
				}
			}
		}
		line(b, append(promise(c), cell(c.Source), cell(cmp.Or(strings.Join(slices.Compact(said), "; "), "not judged yet"))))
	}
	fmt.Fprintln(b)
}

func options(b *bytes.Buffer, m *strategies.Meta) {
	if len(m.Options) == 0 {
		return
	}
	fmt.Fprint(b, "## Options\n\n| option | values | default | meaning |\n|---|---|---|---|\n")
	for _, o := range m.Options {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", o.Name, cell(cmp.Or(strings.Join(o.Values, ", "), o.Type, "text")), cell(o.Default), cell(strings.ReplaceAll(o.Doc, "`", "")))
	}
	fmt.Fprintln(b)
}

// sentence begins with a capital letter and ends in a full stop.
func sentence(s string) string {
	s = strings.TrimSuffix(strings.TrimSpace(s), ".")
	if s == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:] + "."
}

func joined[T any](all []T, name func(T) string) string {
	parts := make([]string, len(all))
	for i, x := range all {
		parts[i] = name(x)
	}
	return strings.Join(parts, ", ")
}

func faultName(f quota.Fault) string { return string(f) }

// cell is a text that does not end a table's cell.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}
