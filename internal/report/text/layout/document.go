package layout

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
)

// Write writes a document, with an empty line between sections.
func (p Page) Write(w io.Writer, doc document.Document) error {
	writer := bufio.NewWriter(w)
	first := true
	for _, section := range doc {
		lines := p.Section(section)
		if len(lines) == 0 {
			continue
		}
		if !first {
			_ = writer.WriteByte('\n') // an error sticks to the writer and comes out of Flush
		}
		first = false
		for _, line := range lines {
			_, _ = writer.WriteString(line + "\n")
		}
	}
	return format.Wrapf(writer.Flush(), "write table")
}

// Section renders the blocks of a section.
func (p Page) Section(section document.Section) (out []string) {
	for _, block := range section.To(document.Brief) {
		switch block := block.(type) {
		case *document.Heading:
			out = append(out, p.Title(strings.ToUpper(block.Text))...)
		case *document.Paragraph:
			out = append(out, p.prose(block)...)
		case *document.Entries:
			out = append(out, p.entries(block)...)
		case *document.Table:
			out = append(out, p.titled(block)...)
		case *document.Schedule:
			out = append(out, p.schedule(block)...)
		}
	}
	return out
}

// schedule renders a schedule below an empty line and its title, and how to repeat it: a line to copy, however long.
func (p Page) schedule(schedule *document.Schedule) (out []string) {
	finding := schedule.Finding
	if schedule.Title == nil {
		return p.Timeline(finding)
	}
	out = append([]string{""}, p.prose(schedule.Title)...)
	switch {
	case len(finding.Steps) == 0:
		return out
	case schedule.Same != "":
		out = append(out, fmt.Sprintf("by the schedule of the %s above", schedule.Same))
	default:
		out = append(out, p.Timeline(finding)...)
	}
	if schedule.Odds != "" {
		out = append(out, p.Wrap(schedule.Odds)...)
	}
	return append(out, "replay: "+finding.Replay())
}

// prose renders a paragraph, of which the lead is marked.
func (p Page) prose(paragraph *document.Paragraph) []string {
	tone := tones[paragraph.Tone]
	if paragraph.Whole {
		return []string{paragraph.Head + p.Paint(tone, paragraph.Lead) + paragraph.Text}
	}
	out := p.Paragraph(paragraph.Head, paragraph.Lead+paragraph.Text)
	length := len(paragraph.Head) + len(p.visible(paragraph.Lead))
	if first := out[0]; len(first) >= length { // the first line has room for it
		out[0] = paragraph.Head + p.Paint(tone, paragraph.Lead) + first[length:]
	}
	return out
}

// entries renders texts next to their labels.
func (p Page) entries(entries *document.Entries) (out []string) {
	for _, entry := range entries.List {
		label := entry.Label
		if len(label) >= entries.Width {
			label += " "
		}
		out = append(out, p.Paragraph(Pad(label, entries.Width), entry.Text)...)
	}
	return out
}

// titled renders a table with its title and its notes.
func (p Page) titled(table *document.Table) (out []string) {
	if table.Title != "" {
		out = p.Title(table.Title)
	}
	out = append(out, p.Table(table)...)
	for _, note := range table.Notes {
		out = append(out, p.Paragraph("  ", note)...)
	}
	return out
}
