package text

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// Comparison writes what changed between two records as a table for a terminal.
func Comparison(w io.Writer, page layout.Page, c *compare.Comparison) error {
	read := c.Read()
	tone := layout.Good
	if !c.Passes() {
		tone = layout.Bad
	}
	lines := []string{page.Paint(tone, read.Headline)}
	lines = append(lines, page.Paragraph("base ", format.Plain(c.Base))...)
	lines = append(lines, page.Paragraph("head ", format.Plain(c.Head))...)
	var table []string
	if len(read.Changed) > 0 {
		g := layout.Grid{Columns: []layout.Column{
			{Title: "verdict", Left: true, Tone: ToneOf}, {Title: "strategy", Left: true, Flexible: true, Minimum: 16},
			{Title: "figure", Left: true, Flexible: true, Minimum: 16},
			{Title: "base", Optional: true}, {Title: "head", Optional: true}, {Title: "change", Optional: true},
			{Title: "why", Left: true, Flexible: true, Minimum: 24, Optional: true},
		}}
		for i := range read.Changed {
			g.Add(compared(&read.Changed[i])...)
		}
		table = page.Table(&g)
	}
	var notes []string
	for _, x := range footnotes(c, &read) {
		notes = append(notes, page.Paragraph(layout.Pad(x.Label, headLabel)+" ", x.Text)...)
	}
	return write(w, func(section func([]string)) {
		section(lines)
		section(table)
		section(notes)
	})
}

// footnotes stand below the table.
func footnotes(c *compare.Comparison, read *compare.Reading) (out []Entry) {
	if read.Same != "" {
		out = append(out, Entry{"same", read.Same})
	}
	// Strategies that share a reason share a line.
	var names collect.By[string, string]
	for _, u := range c.Unmatched {
		names.Add(u.Reason, u.Strategy)
	}
	for _, reason := range names.Keys {
		out = append(out, Entry{"not compared", format.Plain(strings.Join(names.Of[reason], ", ") + ": " + reason)})
	}
	if c.TimingsRefused != "" {
		out = append(out, Entry{"no timings", format.Plain(c.TimingsRefused)})
	}
	for _, n := range c.Notes {
		out = append(out, Entry{"note", format.Plain(n)})
	}
	return out
}

// compared are the cells of a row.
func compared(r *compare.Row) []string {
	name := r.Name()
	switch {
	case r.Unit == compare.OfReference:
		name += "/" + compare.Reference
	case r.Unit != "" && (r.Kind == compare.Sample || r.Figure == compare.Staleness):
		name += ", " + r.Unit
	}
	if r.Kind == compare.Condition {
		name = "required " + name
	}
	strategy := r.Strategy
	if r.Setting != "" {
		strategy += " (" + r.Setting + ")"
	}
	return []string{verdictText(r), format.Plain(strategy), format.Plain(name), valueText(r.Base), valueText(r.Head), changeText(r),
		format.Plain(whyText(r))}
}

func verdictText(r *compare.Row) string {
	if r.Advisory {
		return string(r.Verdict) + ", advisory"
	}
	if r.Verdict == compare.Worse && r.Kind == compare.Condition {
		return "fails"
	}
	return string(r.Verdict)
}

// valueText renders a figure with all digits that can differ between two sides.
func valueText(v *float64) string {
	switch {
	case v == nil:
		return ""
	case *v == math.Trunc(*v) && math.Abs(*v) < 1e15:
		return format.Count(int64(*v))
	case math.Abs(*v) >= 1000:
		return format.TrimZeros(strconv.FormatFloat(*v, 'f', 2, 64))
	}
	return format.TrimZeros(strconv.FormatFloat(*v, 'g', 5, 64))
}

func changeText(r *compare.Row) string {
	if r.Base == nil || r.Head == nil || *r.Head == *r.Base {
		return ""
	}
	d := *r.Head - *r.Base
	pct := ""
	if *r.Base != 0 {
		pct = signed(100*d/math.Abs(*r.Base), format.Pct)
	}
	if r.Kind == compare.Sample && pct != "" {
		return pct
	}
	return format.Join(" ", signed(d, func(x float64) string { return valueText(&x) }), strings.TrimSuffix("("+pct+")", "()"))
}

func signed(x float64, text func(float64) string) string {
	if x > 0 {
		return "+" + text(x)
	}
	return text(x)
}

func whyText(r *compare.Row) string {
	if r.Test == nil || r.Verdict != compare.Worse {
		return r.Detail
	}
	return format.Join("; ", fmt.Sprintf("%d and %d rounds, p %.2g (at most %.2g)", r.Test.BaseRounds, r.Test.HeadRounds, r.Test.P,
		r.Test.Alpha), r.Detail)
}

// ComparisonMarkdown writes the same as a page in Markdown, e.g. for the summary of a job.
func ComparisonMarkdown(w io.Writer, _ layout.Page, c *compare.Comparison) error {
	read := c.Read()
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "**%s**\n\nbase %s, head %s\n", markdown(read.Headline), markdown(c.Base), markdown(c.Head))
	if len(read.Changed) > 0 {
		fmt.Fprint(out, "\n| verdict | strategy | figure | base | head | change | why |\n|---|---|---|--:|--:|--:|---|\n")
		for i := range read.Changed {
			cells := compared(&read.Changed[i])
			for j := range cells {
				cells[j] = markdown(cells[j])
			}
			fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	if all := footnotes(c, &read); len(all) > 0 {
		fmt.Fprintln(out)
		for _, x := range all {
			fmt.Fprintf(out, "- %s: %s\n", x.Label, markdown(x.Text))
		}
	}
	return out.Flush()
}

// markdown takes the meaning from characters that have one in a table's cell.
func markdown(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, "@",
		"&#64;").Replace(format.Plain(s))
}

// ComparisonAnnotations writes the workflow commands of GitHub Actions: an error for each
// row that fails, a warning for what the rounds cannot tell, and a notice of the outcome.
func ComparisonAnnotations(w io.Writer, _ layout.Page, c *compare.Comparison) error {
	read := c.Read()
	out := bufio.NewWriter(w)
	for i := range read.Changed {
		r := &read.Changed[i]
		level := "warning"
		switch {
		case r.Fails(c.Strict):
			level = "error"
		case r.Verdict == compare.Better:
			continue
		}
		fmt.Fprintf(out, "::%s title=quotabench::%s\n", level, annotation(rowText(r)))
	}
	for _, u := range c.Unmatched {
		fmt.Fprintf(out, "::warning title=quotabench::%s\n", annotation(u.Strategy+" was not compared: "+u.Reason))
	}
	if c.TimingsRefused != "" {
		fmt.Fprintf(out, "::warning title=quotabench::%s\n", annotation("no timings: "+c.TimingsRefused))
	}
	fmt.Fprintf(out, "::notice title=quotabench::%s\n", annotation(read.Headline))
	return out.Flush()
}

// annotation is a text as the value of a workflow command.
func annotation(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(format.Plain(s))
}

// FailureLines are the rows that fail, one line each, for messages.
func FailureLines(rows []compare.Row) (out []string) {
	for i := range rows {
		out = collect.Union(out, rowText(&rows[i]))
	}
	return out
}

// rowText is a row in one line.
func rowText(r *compare.Row) string {
	cells := compared(r)
	text := fmt.Sprintf("%s: %s: %s", cells[1], cells[2], cells[0])
	if r.Base != nil && r.Head != nil {
		text += strings.TrimSuffix(fmt.Sprintf(": %s, was %s (%s)", cells[4], cells[3], cells[5]), " ()")
	}
	return format.Join(": ", text, cells[6])
}
