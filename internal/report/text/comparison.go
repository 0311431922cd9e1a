package text

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/markdown"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Comparison writes what changed between two records as a table for a terminal.
func Comparison(w io.Writer, page layout.Page, comparison *compare.Comparison) error {
	return page.Write(w, comparisonDocument(comparison))
}

// ComparisonMarkdown writes the same as a page in Markdown, e.g. for the summary of a job.
func ComparisonMarkdown(w io.Writer, _ layout.Page, comparison *compare.Comparison) error {
	return markdown.Write(w, comparisonDocument(comparison))
}

func comparisonDocument(comparison *compare.Comparison) (doc document.Document) {
	read := comparison.Read()
	headline := &document.Paragraph{Lead: read.Headline, Tone: document.Good, Whole: true}
	if !comparison.Passes() {
		headline.Tone = document.Bad
	}
	sides := &document.Entries{Width: 5, Inline: true, List: []document.Entry{
		{Label: "base", Text: format.Plain(comparison.Base)}, {Label: "head", Text: format.Plain(comparison.Head)},
	}}
	doc.Section(headline, sides)
	broken := newlyBroken(comparison)
	for i := range broken {
		doc.Section(broken[i].section()...)
	}
	changed := slices.DeleteFunc(read.Changed, func(row compare.Row) bool {
		return slices.ContainsFunc(broken, func(b breaks) bool { return b.says(&row) })
	})
	if len(changed) > 0 {
		table := &document.Table{Columns: []document.Column{
			{Title: "verdict", Left: true, Tone: ToneOf}, {Title: "strategy", Left: true, Flexible: true, Minimum: 16},
			{Title: "figure", Left: true, Flexible: true, Minimum: 16},
			{Title: "base", Optional: true}, {Title: "head", Optional: true}, {Title: "change", Optional: true},
			{Title: "why", Left: true, Flexible: true, Minimum: 24, Optional: true},
		}}
		for i := range changed {
			table.Add(compared(&changed[i])...)
		}
		doc.Section(table)
	}
	if notes := footnotes(comparison, &read); len(notes) > 0 {
		doc.Section(&document.Entries{Width: headLabel + 1, List: notes})
	}
	return doc
}

// breaks is what schedules of a strategy break that none of the base broke.
type breaks struct {
	shortest *results.Finding
	more     int
}

// newlyBroken are the strategies of which that is so.
func newlyBroken(comparison *compare.Comparison) (out []breaks) {
	for i := range comparison.New {
		finding := &comparison.New[i]
		k := slices.IndexFunc(out, func(b breaks) bool { return b.shortest.Strategy == finding.Strategy })
		if k < 0 {
			out = append(out, breaks{shortest: finding})
			continue
		}
		out[k].more++
		if len(finding.Steps) < len(out[k].shortest.Steps) {
			out[k].shortest = finding
		}
	}
	return out
}

// says reports whether a row says no more than that a schedule of the strategy breaks something.
func (b *breaks) says(row *compare.Row) bool {
	return row.Figure == compare.Counterexamples && row.Verdict == compare.Worse && row.Strategy == b.shortest.Strategy
}

// section shows the shortest schedule, how to repeat it, and how many findings there are beside it.
func (b *breaks) section() document.Section {
	schedule := scheduleOf(b.shortest)
	property := strings.ToUpper(string(b.shortest.Property))
	steps := format.Number(len(b.shortest.Steps), "step")
	schedule.Title = headed(property, fmt.Sprintf(" of %s in %s: %s", b.shortest.Strategy, steps, b.shortest.Detail))
	out := document.Section{schedule}
	if b.more > 0 {
		more := "and " + format.Plural(int64(b.more), "more finding", "more findings") + " of this strategy"
		out = append(out, line(more))
	}
	return out
}

// footnotes stand below the table.
func footnotes(comparison *compare.Comparison, read *compare.Reading) (out []document.Entry) {
	if read.Same != "" {
		out = append(out, document.Entry{Label: "same", Text: read.Same})
	}
	// Strategies that share a reason share a line.
	var names collect.By[string, string]
	for _, unmatched := range comparison.Unmatched {
		names.Add(unmatched.Reason, unmatched.Strategy)
	}
	for _, reason := range names.Keys {
		text := format.Plain(strings.Join(names.Of[reason], ", ") + ": " + reason)
		out = append(out, document.Entry{Label: "not compared", Text: text})
	}
	if comparison.TimingsRefused != "" {
		out = append(out, document.Entry{Label: "no timings", Text: format.Plain(comparison.TimingsRefused)})
	}
	for _, n := range comparison.Notes {
		out = append(out, document.Entry{Label: "note", Text: format.Plain(n)})
	}
	return out
}

// compared are the cells of a row.
func compared(row *compare.Row) []string {
	name := row.Name()
	switch {
	case row.Unit == compare.OfReference:
		name += "/reference"
	case row.Unit != "" && (row.Kind == compare.Sample || row.Figure == compare.Staleness):
		name += ", " + row.Unit
	}
	if row.Kind == compare.Condition {
		name = "required " + name
	}
	strategy := row.Strategy
	if row.Setting != "" {
		strategy += " (" + row.Setting + ")"
	}
	return []string{verdictText(row), format.Plain(strategy), format.Plain(name), valueText(row.Base), valueText(row.Head),
		changeText(row),
		format.Plain(whyText(row))}
}

func verdictText(row *compare.Row) string {
	if row.Advisory {
		return string(row.Verdict) + ", advisory"
	}
	if row.Verdict == compare.Worse && row.Kind == compare.Condition {
		return "fails"
	}
	return string(row.Verdict)
}

// valueText renders a figure with all digits that can differ between two sides.
func valueText(value *float64) string {
	switch {
	case value == nil:
		return ""
	case *value == math.Trunc(*value) && math.Abs(*value) < 1e15:
		return format.Count(int64(*value))
	case math.Abs(*value) >= 1000:
		return format.TrimZeros(strconv.FormatFloat(*value, 'f', 2, 64))
	}
	return format.TrimZeros(strconv.FormatFloat(*value, 'g', 5, 64))
}

func changeText(row *compare.Row) string {
	if row.Base == nil || row.Head == nil || *row.Head == *row.Base {
		return ""
	}
	d := *row.Head - *row.Base
	pct := ""
	if *row.Base != 0 {
		pct = signed(100*d/math.Abs(*row.Base), format.Pct)
	}
	if row.Kind == compare.Sample && pct != "" {
		return pct
	}
	return format.Join(" ", signed(d, func(value float64) string {
		return valueText(&value)
	}), surrounded("(", pct, ")"))
}

func signed(value float64, text func(float64) string) string {
	if value > 0 {
		return "+" + text(value)
	}
	return text(value)
}

func whyText(row *compare.Row) string {
	if row.Test == nil || row.Verdict != compare.Worse {
		return row.Detail
	}
	return format.Join("; ", fmt.Sprintf("%d and %d rounds, p %.2g (at most %.2g)", row.Test.BaseRounds,
		row.Test.HeadRounds, row.Test.P,
		row.Test.Alpha), row.Detail)
}

// ComparisonAnnotations writes the workflow commands of GitHub Actions: an error for each
// row that fails, a warning for what the rounds cannot tell, and a notice of the outcome.
func ComparisonAnnotations(w io.Writer, _ layout.Page, comparison *compare.Comparison) error {
	read := comparison.Read()
	out := bufio.NewWriter(w)
	for i := range read.Changed {
		row := &read.Changed[i]
		level := "warning"
		switch {
		case row.Fails(comparison.Strict):
			level = "error"
		case row.Verdict == compare.Better:
			continue
		}
		fmt.Fprintf(out, "::%s title=quotabench::%s\n", level, annotation(rowText(row)))
	}
	for _, unmatched := range comparison.Unmatched {
		fmt.Fprintf(out, "::warning title=quotabench::%s\n",
			annotation(unmatched.Strategy+" was not compared: "+unmatched.Reason))
	}
	if comparison.TimingsRefused != "" {
		fmt.Fprintf(out, "::warning title=quotabench::%s\n", annotation("no timings: "+comparison.TimingsRefused))
	}
	fmt.Fprintf(out, "::notice title=quotabench::%s\n", annotation(read.Headline))
	return out.Flush()
}

// annotation is a text as the value of a workflow command.
func annotation(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(format.Plain(text))
}

// FailureLines are the rows that fail, one line each, for messages.
func FailureLines(rows []compare.Row) (out []string) {
	for i := range rows {
		out = collect.Union(out, rowText(&rows[i]))
	}
	return out
}

// rowText is a row in one line.
func rowText(row *compare.Row) string {
	cells := compared(row)
	text := fmt.Sprintf("%s: %s: %s", cells[1], cells[2], cells[0])
	if row.Base != nil && row.Head != nil {
		text += fmt.Sprintf(": %s, was %s", cells[4], cells[3]) + surrounded(" (", cells[5], ")")
	}
	return format.Join(": ", text, cells[6])
}
