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
	"github.com/quotabench/quotabench/results"
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

- **Form**: a *documented* strategy does what its design record says, including the flaws. A *hardened* one is the same idea without the leaks. A record considered a *rejected alternative*, and names a
  *future* one for later. *Reference* and *baseline* strategies have no record.
- **Guarantee**: what the strategy declares for each window of a subject, in units; L is the limit. A run judges each clause.
- **Leak**: units admitted over the limit. A *trial* is a window of one subject in which demand exceeded the limit.
- **False rejects**: valid requests that were rejected although there was room; *certain..possible* if the order is not known.
- **Drift**: a counter minus the truth, with nothing in flight.
- **Decisions/s**: of workers that never pause. **p50, p99**: response times at one rate for all strategies. **n/m**: not measurable, because too few rounds were undisturbed. **(w)**: waiting for a core could explain it.
- **Commands, SQL, trips**: means per decision, including jobs and waits for others.
- **Explored**: all orders of the store commands of two clients, under the script that each runs. Steps are those of the shortest schedule of a broken property. "No other violation" holds for these clients on two instances, followed by one more client that asks until it is
  rejected; it is not a proof for more clients. [Properties](../exploration.md#properties).
`

func index(all []*strategies.Meta, e *Evidence) []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "# Strategies\n\nGenerated from what strategies declare and from recorded runs and searches. To choose one, begin with the [guide](choosing.md).\n\n")
	heading(&b, []string{"strategy", "form", "source", "what it does"})
	for _, m := range all {
		line(&b, []string{fmt.Sprintf("[%s](%s.md)", m.Name, m.Name), string(m.Form), cmp.Or(cell(m.Source), "-"), cell(m.Doc)})
	}
	fmt.Fprint(&b, guide)
	if len(e.Others) > 0 {
		fmt.Fprint(&b, "\n## More about some of them\n\n")
		for _, p := range e.Others {
			fmt.Fprintf(&b, "- %s\n", p.link())
		}
	}
	runs(&b, e)
	b.WriteString(mark)
	return b.Bytes()
}

// runs lists the records that pages quote, with the machine once.
func runs(b *bytes.Buffer, e *Evidence) {
	if len(e.Runs) == 0 {
		return
	}
	fmt.Fprint(b, "\n## Runs\n\n")
	last := ""
	for i := range e.Runs {
		if machine, _ := origin(&e.Runs[i]); e.Runs[i].Kind == results.Measured && len(machine) > len(last) {
			last = machine
		}
	}
	if last != "" {
		fmt.Fprintf(b, "Measured on %s. Compare rows with each other, not with your machine.\n\n", last)
	}
	heading(b, []string{"run", "workload", "policy", "load", "command"})
	for i := range e.Runs {
		f := &e.Runs[i]
		cells := []string{e.name(i), f.Workload.Name, "", ""}
		if all := f.Summarised(); len(all) > 0 {
			cells = append(cells[:1], figure{f, e.name(i), &all[0]}.setting()...)
		}
		_, command := origin(f)
		if f.Kind == results.Simulated {
			command = fmt.Sprintf("simulated, seed %d", f.Seed)
		} else {
			command = "`" + command + "`"
		}
		line(b, append(cells, command))
	}
}

func page(m *strategies.Meta, e *Evidence) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s", m.Name, sentence(m.Doc))
	for _, note := range []string{m.Notes.Use, m.Notes.Avoid} {
		if note != "" {
			fmt.Fprintf(&b, " %s", strings.TrimSpace(note))
		}
	}
	fmt.Fprint(&b, "\n\n")
	facts(&b, m)
	if more := e.others(m.Name + ".md"); len(more) > 0 {
		fmt.Fprintf(&b, "- More: %s\n", strings.Join(more, ", "))
	}
	fmt.Fprintln(&b)
	list(&b, "How it works", true, m.Notes.How)
	guarantee(&b, m)
	ofRecord(&b, m, e)
	differs := "Differences from its source"
	if m.Source == "" {
		differs = "Differences from the usual form"
	}
	list(&b, differs, false, m.Notes.Deviations)
	quoted(&b, m, e)
	if err := explored(&b, m, e); err != nil {
		return nil, err
	}
	options(&b, m)
	return append(bytes.TrimRight(b.Bytes(), "\n"), "\n"+mark...), nil
}

func facts(b *bytes.Buffer, m *strategies.Meta) {
	fmt.Fprintf(b, "- [Form]("+Index+"#how-to-read-a-page): %s\n", strings.Join(slices.DeleteFunc([]string{string(m.Form), m.Source}, func(s string) bool { return s == "" }), ", from "))
	fmt.Fprintf(b, "- Stores: %s\n", cmp.Or(joined(m.Needs, func(n strategies.Need) string { return string(n) }), "none"))
	fmt.Fprintf(b, "- Windows: %s; counts: %s\n", joined(m.Kinds, quota.Kind.String), m.Counts)
	var not []string
	for _, mode := range strategies.Modes() {
		if _, excluded := m.Excludes(mode); excluded {
			not = append(not, string(mode))
		}
	}
	if len(not) > 0 {
		fmt.Fprintf(b, "- [Not in](../limits.md#modes-that-a-strategy-lacks) %s\n", strings.Join(not, ", "))
	}
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
	fmt.Fprint(b, "## Guarantee\n\n")
	if len(m.Guarantee) == 0 {
		fmt.Fprint(b, "It declares none.\n\n")
		return
	}
	for _, c := range m.Guarantee {
		fmt.Fprintf(b, "- %s\n", promise(c))
	}
	fmt.Fprintln(b)
}

// promise is a clause in words. The formula of a leak is of all units that a window may
// admit, and that of another property of the units beyond it.
func promise(c quota.Clause) string {
	out := string(c.Property) + ": at most " + c.Formula
	if c.Property == quota.PropertyLeak {
		out = "admits at most " + c.Formula
	}
	if len(c.Kinds) > 0 {
		out += " in " + joined(c.Kinds, quota.Kind.String) + " windows"
	}
	if len(c.Tolerates) > 0 {
		out += ", also under " + joined(c.Tolerates, faultName)
	}
	return out
}

// ofRecord lists what the design record claims, and what came out in each run.
func ofRecord(b *bytes.Buffer, m *strategies.Meta, e *Evidence) {
	if len(m.Record) == 0 {
		return
	}
	fmt.Fprintf(b, "## What its design record claims, and what came out\n\n")
	for _, c := range m.Record {
		var said, in []string
		for _, f := range e.figures(m.Name) {
			for _, r := range f.summary.Record {
				if s := f.summary; r.Property == string(c.Property) && r.Formula == c.Formula && s.Counts() {
					verdict := r.Said(s.Params.Unit)
					i := slices.Index(said, verdict)
					if i < 0 {
						i, said, in = len(said), append(said, verdict), append(in, "")
					}
					in[i] = strings.TrimPrefix(in[i]+", "+f.name, ", ")
				}
			}
		}
		for i := range said {
			said[i] += " in " + in[i]
		}
		fmt.Fprintf(b, "- %s (%s): **%s**\n", promise(c), c.Source, cmp.Or(strings.Join(said, "; "), "not judged yet"))
	}
	fmt.Fprintln(b)
}

func options(b *bytes.Buffer, m *strategies.Meta) {
	if len(m.Options) == 0 {
		return
	}
	fmt.Fprint(b, "## Options\n\n")
	heading(b, []string{"option", "values", "default", "meaning"})
	for _, o := range m.Options {
		line(b, []string{o.Name, cell(cmp.Or(strings.Join(o.Values, ", "), o.Type, "text")), cell(o.Default), cell(strings.ReplaceAll(o.Doc, "`", ""))})
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
