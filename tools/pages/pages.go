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
const mark = "\n<!--make-pages-->\n"

// Generated reports whether a page was made here, by any version.
func Generated(page []byte) bool { return bytes.HasSuffix(page, []byte(mark)) }

// Render writes the index and a page for each strategy, in the order of their names. Pages
// written by hand that have figures of strategies next to each other follow, with those of
// e.
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

// guide tells how to read a page.
const guide = `
## How to read a page

- **Form**: a *documented* strategy does what its [design record](../design-records.md) says, including the flaws. A *hardened* one is the same idea without the leaks. A *rejected alternative* or a *future* one is named in a record. *Frontier* ones spare round trips to Redis.
- **Guarantee**: what the strategy declares for each window of a subject; L is the limit. *Also under*: the faults that it tolerates.
- **Figures** are those of [a report](../reading-a-report.md#correctness).
- **Explored**: each broken [property](../exploration.md#properties) with the steps of its shortest schedule, and its faults. *None*: no violation in any interleaving. A search with *20,000+* states is not complete. [Assumptions](../exploration.md#reading-a-claim).

` + "`quotabench list strategies` prints the options of each strategy, and where it differs from its design record.\n"

func index(all []*strategies.Meta, e *Evidence) []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "# Strategies\n\nTo choose one, begin with the [guide](choosing.md).\n\n")
	heading(&b, []string{"strategy", "form", "what it does"})
	for _, m := range all {
		line(&b, []string{fmt.Sprintf("[%s](%s.md)", m.Name, m.Name), string(m.Form), cell(m.Doc)})
	}
	fmt.Fprint(&b, guide)
	if len(e.Others) > 0 {
		fmt.Fprint(&b, "\n## More about some of them\n\n")
		for _, p := range e.Others {
			fmt.Fprintf(&b, "- %s\n", p.link())
		}
	}
	if e.Faults != nil {
		fmt.Fprintf(&b, "- [What they make of faults](%s)\n", faultsPage)
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
		if m := machine(&e.Runs[i]); e.Runs[i].Kind == results.Measured && len(m) > len(last) {
			last = m
		}
	}
	if last != "" {
		fmt.Fprintf(b, "Measured on %s. Compare rows with each other, not with your machine. [The script](../../results/baseline/refresh) has the commands.\n\n", last)
	}
	heading(b, []string{"run", "workload", "policy", "load"})
	for i := range e.Runs {
		f := &e.Runs[i]
		cells := []string{e.name(i), f.Workload.Name, "", ""}
		if all := f.Summarised(); len(all) > 0 {
			own := max(0, slices.IndexFunc(all, func(s results.Summary) bool { return s.Form != string(strategies.Library) }))
			cells = append(cells[:1], figure{f, e.name(i), &all[own]}.setting()...)
		}
		if f.Kind == results.Simulated {
			cells[3] += fmt.Sprintf("; simulated, seed %d", f.Seed)
		}
		line(b, cells)
	}
}

func page(m *strategies.Meta, e *Evidence) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", m.Name, sentence(m.Doc))
	for _, note := range []string{m.Notes.Use, m.Notes.Avoid} {
		if note != "" {
			fmt.Fprintf(&b, "- %s\n", strings.TrimSpace(note))
		}
	}
	fmt.Fprint(&b, "\n")
	facts(&b, m)
	if more := e.others(m.Name + ".md"); len(more) > 0 {
		fmt.Fprintf(&b, " More: %s.", strings.Join(more, ", "))
	}
	if claimed := e.claimed(m.Name); claimed != "" {
		fmt.Fprintf(&b, " Claims: %s.", claimed)
	}
	fmt.Fprint(&b, "\n\n")
	algorithm(&b, m)
	guarantee(&b, m)
	if len(m.Notes.Trouble) > 0 {
		fmt.Fprintf(&b, "## Trouble\n\n%s\n\n", strings.Join(m.Notes.Trouble, "\n"))
	}
	quoted(&b, m, e)
	sweeps(&b, m, e)
	if err := explored(&b, m, e); err != nil {
		return nil, err
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), "\n"+mark...), nil
}

func facts(b *bytes.Buffer, m *strategies.Meta) {
	fmt.Fprintf(b, "[Form]("+Index+"#how-to-read-a-page): %s", m.Form)
	if m.Source != "" {
		fmt.Fprintf(b, " (%s)", m.Source)
	}
	needs := joined(m.Needs, func(n strategies.Need) string { return string(n) })
	fmt.Fprintf(b, ". Stores: %s. Windows: %s.", cmp.Or(needs, "none"), windows(m.Kinds))
	var not []string
	for _, mode := range strategies.Modes() {
		if _, excluded := m.Excludes(mode); excluded {
			not = append(not, string(mode))
		}
	}
	if len(not) > 0 {
		fmt.Fprintf(b, " [Not in](../limits.md#modes-that-a-strategy-lacks): %s.", strings.Join(not, ", "))
	}
}

func algorithm(b *bytes.Buffer, m *strategies.Meta) {
	if len(m.Notes.How) == 0 {
		return
	}
	fmt.Fprint(b, "## Algorithm\n\n")
	for i, step := range m.Notes.How {
		fmt.Fprintf(b, "%d. %s\n", i+1, step)
	}
	fmt.Fprintln(b)
}

func guarantee(b *bytes.Buffer, m *strategies.Meta) {
	fmt.Fprint(b, "## Guarantee\n\n")
	if len(m.Guarantee) == 0 {
		fmt.Fprint(b, "It declares none.\n\n")
		return
	}
	heading(b, []string{"clause", "windows", "also under"})
	for _, c := range m.Guarantee {
		line(b, []string{bound(c), cmp.Or(windows(c.Kinds), "all"), cmp.Or(joined(c.Tolerates, faultName), "-")})
	}
	fmt.Fprintln(b)
}

// windows are the kinds of windows, those of the calendar as one.
func windows(kinds []quota.Kind) string {
	return strings.Replace(joined(kinds, quota.Kind.String), "calendar-month, calendar-day, calendar-hour", "calendar", 1)
}

// bound of a clause in words. The formula of a leak is of all units that a window may admit,
// and that of another property of the units beyond it.
func bound(c quota.Clause) string {
	if c.Property == quota.PropertyLeak {
		return "admits at most " + c.Formula
	}
	return string(c.Property) + ": at most " + c.Formula
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
