package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quotabench/quotabench/internal/report/markdown"
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
// evidence.
func Render(all []*strategies.Meta, evidence *Evidence) ([]Page, error) {
	all = slices.SortedFunc(slices.Values(all), func(a, b *strategies.Meta) int { return strings.Compare(a.Name, b.Name) })
	out := []Page{{Index, index(all, evidence)}}
	for _, meta := range all {
		out = append(out, Page{meta.Name + ".md", page(meta, evidence)})
	}
	for i := range evidence.Others {
		other := &evidence.Others[i]
		filled, err := evidence.fill(other)
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

` + "`quotabench list strategies` prints the options of each strategy.\n"

func index(all []*strategies.Meta, evidence *Evidence) []byte {
	var buffer bytes.Buffer
	fmt.Fprint(&buffer, "# Strategies\n\nTo choose one, begin with the [guide](choosing.md).\n\n")
	table := newTable("strategy", "form", "what it does")
	for _, meta := range all {
		table.Add(fmt.Sprintf("[%s](%s.md)", meta.Name, meta.Name), string(meta.Form), cell(meta.Doc))
	}
	buffer.WriteString(markdown.Table(table))
	fmt.Fprint(&buffer, guide)
	if len(evidence.Others) > 0 {
		fmt.Fprint(&buffer, "\n## More about some of them\n\n")
		for _, page := range evidence.Others {
			fmt.Fprintf(&buffer, "- %s\n", page.link())
		}
	}
	if evidence.Faults != nil {
		fmt.Fprintf(&buffer, "- [What they make of faults](%s)\n", faultsPage)
	}
	runs(&buffer, evidence)
	buffer.WriteString(mark)
	return buffer.Bytes()
}

// runs lists the records that pages quote, with the machine once.
func runs(buffer *bytes.Buffer, evidence *Evidence) {
	if len(evidence.Runs) == 0 {
		return
	}
	fmt.Fprint(buffer, "\n## Runs\n\n")
	last := ""
	for i := range evidence.Runs {
		if text := machine(&evidence.Runs[i]); evidence.Runs[i].Kind == results.Measured && len(text) > len(last) {
			last = text
		}
	}
	if last != "" {
		fmt.Fprintf(buffer, "Measured on %s. Compare rows with each other, not with your machine. [The "+
			"script](../../results/baseline/refresh) has the commands.\n\n", last)
	}
	table := newTable("run", "workload", "policy", "load")
	for i := range evidence.Runs {
		file := &evidence.Runs[i]
		cells := []string{evidence.name(i), file.Workload.Name, "", ""}
		if all := file.Summarised(); len(all) > 0 {
			own := max(0, slices.IndexFunc(all, func(summary results.Summary) bool {
				return summary.Form != string(strategies.Library)
			}))
			cells = append(cells[:1], figure{file, evidence.name(i), &all[own]}.setting()...)
		}
		if file.Kind == results.Simulated {
			cells[3] += fmt.Sprintf("; simulated, seed %d", file.Seed)
		}
		table.Add(cells...)
	}
	buffer.WriteString(markdown.Table(table))
}

func page(meta *strategies.Meta, evidence *Evidence) []byte {
	var buffer bytes.Buffer
	fmt.Fprintf(&buffer, "# %s\n\n%s\n\n", meta.Name, sentence(meta.Doc))
	for _, note := range []string{meta.Notes.Use, meta.Notes.Avoid} {
		if note != "" {
			fmt.Fprintf(&buffer, "- %s\n", strings.TrimSpace(note))
		}
	}
	fmt.Fprint(&buffer, "\n")
	facts(&buffer, meta)
	if more := evidence.others(meta.Name + ".md"); len(more) > 0 {
		fmt.Fprintf(&buffer, " More: %s.", strings.Join(more, ", "))
	}
	if claimed := evidence.claimed(meta.Name); claimed != "" {
		fmt.Fprintf(&buffer, " Claims: %s.", claimed)
	}
	fmt.Fprint(&buffer, "\n\n")
	algorithm(&buffer, meta)
	deviations(&buffer, meta)
	guarantee(&buffer, meta)
	if len(meta.Notes.Trouble) > 0 {
		fmt.Fprintf(&buffer, "## Trouble\n\n%s\n\n", strings.Join(meta.Notes.Trouble, "\n"))
	}
	quoted(&buffer, meta, evidence)
	sweeps(&buffer, meta, evidence)
	explored(&buffer, meta, evidence)
	return append(bytes.TrimRight(buffer.Bytes(), "\n"), "\n"+mark...)
}

func facts(buffer *bytes.Buffer, meta *strategies.Meta) {
	fmt.Fprintf(buffer, "[Form]("+Index+"#how-to-read-a-page): %s", meta.Form)
	if meta.Source != "" {
		fmt.Fprintf(buffer, " (%s)", meta.Source)
	}
	needs := joined(meta.Needs, func(n strategies.Need) string { return string(n) })
	fmt.Fprintf(buffer, ". Stores: %s. Windows: %s.", cmp.Or(needs, "none"), windows(meta.Kinds))
	var not []string
	for _, mode := range strategies.Modes() {
		if _, excluded := meta.Excludes(mode); excluded {
			not = append(not, string(mode))
		}
	}
	if len(not) > 0 {
		fmt.Fprintf(buffer, " [Not in](../limits.md#modes-that-a-strategy-lacks): %s.", strings.Join(not, ", "))
	}
}

func algorithm(buffer *bytes.Buffer, meta *strategies.Meta) {
	if len(meta.Notes.How) == 0 {
		return
	}
	fmt.Fprint(buffer, "## Algorithm\n\n")
	for i, step := range meta.Notes.How {
		fmt.Fprintf(buffer, "%d. %s\n", i+1, step)
	}
	fmt.Fprintln(buffer)
}

// deviations are where the strategy differs from its design record.
func deviations(buffer *bytes.Buffer, meta *strategies.Meta) {
	if meta.Source == "" || len(meta.Notes.Deviations) == 0 {
		return
	}
	fmt.Fprintf(buffer, "## Different from %s\n\n", meta.Source)
	for _, text := range meta.Notes.Deviations {
		fmt.Fprintf(buffer, "- %s\n", text)
	}
	fmt.Fprintln(buffer)
}

func guarantee(buffer *bytes.Buffer, meta *strategies.Meta) {
	fmt.Fprint(buffer, "## Guarantee\n\n")
	if len(meta.Guarantee) == 0 {
		fmt.Fprint(buffer, "It declares none.\n\n")
		return
	}
	table := newTable("clause", "windows", "also under")
	for _, clause := range meta.Guarantee {
		table.Add(bound(clause), cmp.Or(windows(clause.Kinds), "all"), cmp.Or(joined(clause.Tolerates, faultName), "-"))
	}
	fmt.Fprintln(buffer, markdown.Table(table))
}

// windows are the kinds of windows, those of the calendar as one.
func windows(kinds []quota.Kind) string {
	return strings.Replace(joined(kinds, quota.Kind.String), "calendar-month, calendar-day, calendar-hour", "calendar", 1)
}

// bound of a clause in words. The formula of a leak is of all units that a window may admit,
// and that of another property of the units beyond it.
func bound(clause quota.Clause) string {
	if clause.Property == quota.PropertyLeak {
		return "admits at most " + clause.AtMost()
	}
	return string(clause.Property) + ": at most " + clause.AtMost()
}

// sentence begins with a capital letter and ends in a full stop.
func sentence(text string) string {
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:] + "."
}

func joined[T any](all []T, name func(T) string) string {
	parts := make([]string, len(all))
	for i, x := range all {
		parts[i] = name(x)
	}
	return strings.Join(parts, ", ")
}

func faultName(fault quota.Fault) string { return string(fault) }

// cell is a text that does not end a table's cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
