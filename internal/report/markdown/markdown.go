// Package markdown writes documents as Markdown, for the summaries of jobs and for generated pages.
package markdown

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// Write writes a document, with an empty line between blocks.
func Write(w io.Writer, doc document.Document) error {
	out := bufio.NewWriter(w)
	first := true
	for _, section := range doc.To(document.Full) {
		for _, block := range section {
			text := blockText(block)
			if text == "\n" { // which parts blocks on a terminal
				continue
			}
			if !first {
				fmt.Fprintln(out)
			}
			first = false
			_, _ = out.WriteString(text) // an error sticks to the writer and comes out of Flush
		}
	}
	return out.Flush()
}

func blockText(block document.Block) string {
	switch block := block.(type) {
	case *document.Heading:
		return "## " + Escaped(block.Text) + "\n"
	case *document.Paragraph:
		return paragraph(block)
	case *document.Entries:
		return entries(block)
	case *document.Table:
		return full(block)
	case *document.Schedule:
		return schedule(block)
	}
	return ""
}

func schedule(schedule *document.Schedule) string {
	steps := Code((layout.Page{}).Timeline(schedule.Finding))
	if schedule.Title == nil {
		return steps
	}
	return paragraph(schedule.Title) + "\n" + steps + "\nrepeat it: `" + schedule.Finding.Replay() + "`\n"
}

func paragraph(paragraph *document.Paragraph) string {
	text := Escaped(paragraph.Head)
	if paragraph.Lead != "" {
		text += "**" + Escaped(paragraph.Lead) + "**"
	}
	text += Escaped(paragraph.Text)
	return text + "\n"
}

func entries(entries *document.Entries) string {
	var items []string
	for _, entry := range entries.List {
		switch {
		case entries.Inline:
			items = append(items, entry.Label+" "+Escaped(entry.Text))
		case entry.Label == "":
			items = append(items, "- "+Escaped(entry.Text)+"\n")
		default:
			items = append(items, "- "+entry.Label+": "+Escaped(entry.Text)+"\n")
		}
	}
	if entries.Inline {
		return strings.Join(items, ", ") + "\n"
	}
	return strings.Join(items, "")
}

// full is a table with the reasons for its rows, and what shows them again.
func full(table *document.Table) string {
	var out strings.Builder
	if table.Title != "" {
		fmt.Fprintf(&out, "**%s**\n\n", Escaped(table.Title))
	}
	var shown []string
	for i := range table.Rows {
		row := &table.Rows[i]
		for j := range row.Cells {
			cell := &row.Cells[j]
			text := cell.Text
			if j == len(row.Cells)-1 {
				text = format.Join("; ", text, row.Why)
			}
			cell.Text = Escaped(text)
		}
		if row.Condition != "" {
			from := "arithmetic"
			if len(row.Commands) > 0 {
				from = "from `" + strings.Join(row.Commands, "`, `") + "`"
			}
			shown = append(shown, fmt.Sprintf("- %s: `%s`, %s\n", row.Cells[0].Text, row.Condition, from))
		}
	}
	out.WriteString(rows(table, " "))
	if shown != nil {
		out.WriteString("\n" + strings.Join(shown, ""))
	}
	for _, note := range table.Notes {
		out.WriteString("\n" + Escaped(note) + "\n")
	}
	return out.String()
}

// Table writes a table whose cells are Markdown themselves.
func Table(table *document.Table) string { return rows(table, "") }

// rows are those of a table, with a margin on both sides of each cell.
func rows(table *document.Table, margin string) string {
	var out strings.Builder
	line := func(cells []string) {
		out.WriteString("|" + margin + strings.Join(cells, margin+"|"+margin) + margin + "|\n")
	}
	var titles []string
	rule := "|"
	for i := range table.Columns {
		column := &table.Columns[i]
		titles = append(titles, oneLine(column.Title))
		if column.Left {
			rule += "---|"
		} else {
			rule += "--:|"
		}
	}
	line(titles)
	out.WriteString(rule + "\n")
	for i := range table.Rows {
		row := &table.Rows[i]
		var cells []string
		for _, cell := range row.Cells {
			cells = append(cells, oneLine(cell.Text))
		}
		switch {
		case row.Heading != "":
			line(append([]string{"**" + Escaped(row.Heading) + "**"}, make([]string, len(titles)-1)...))
		case !row.Rule:
			line(cells)
		}
	}
	return out.String()
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }

// Code is a block of lines that are shown as they are.
func Code(lines []string) string { return "```\n" + strings.Join(lines, "\n") + "\n```\n" }

var escaper = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "\\`",
	"[", `\[`, "]", `\]`, "@", "&#64;")

// Escaped takes the meaning from characters that have one in Markdown.
func Escaped(text string) string { return escaper.Replace(format.Plain(text)) }
