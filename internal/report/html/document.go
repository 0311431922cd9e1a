package html

import (
	"html/template"
	"io"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text"
)

// WriteClaims writes the verdicts on claims as one page.
func WriteClaims(w io.Writer, report *claims.Report) error {
	return writeDocument(w, "Claims of design records", text.ClaimsDocument(report))
}

// WriteFaults writes a matrix of strategies and faults as one page.
func WriteFaults(w io.Writer, report *claims.Report) error {
	return writeDocument(w, "What strategies make of faults", text.FaultsDocument(report))
}

// writeDocument writes a document as a page without a script.
func writeDocument(w io.Writer, title string, doc document.Document) error {
	var builder strings.Builder
	err := page.ExecuteTemplate(&builder, "document", struct {
		Title    string
		Style    template.CSS
		Document document.Document
	}{title, template.CSS(style), doc.To(document.Full)}) //nolint:gosec // an embedded file
	if err == nil {
		_, err = io.WriteString(w, format.Visible(builder.String()))
	}
	return format.Wrapf(err, "write page")
}

// kindOf is how the template tells blocks apart.
func kindOf(block document.Block) string {
	switch block.(type) {
	case *document.Heading:
		return "heading"
	case *document.Paragraph:
		return "paragraph"
	case *document.Entries:
		return "entries"
	case *document.Table:
		return "table"
	}
	return "schedule"
}

// toneClasses are those of cells.
var toneClasses = map[document.Tone]string{
	document.Good: "good", document.Caution: "caution", document.Bad: "bad", document.Minor: "of",
}

// classesOf are those of a cell.
func classesOf(column document.Column, cell document.Cell) string {
	class := ""
	if !column.Left {
		class = "n"
	}
	return format.Join(" ", class, toneClasses[column.ToneOf(cell)])
}

// reasonsApart reports whether the reasons for rows need a column of their own, since the last one has figures.
func reasonsApart(table *document.Table) bool {
	if len(table.Columns) == 0 || table.Columns[len(table.Columns)-1].Left {
		return false
	}
	for i := range table.Rows {
		if row := &table.Rows[i]; row.Why != "" || row.Commands != nil {
			return true
		}
	}
	return false
}
