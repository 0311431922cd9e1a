package html

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/results"
)

// Record is what one invocation left. What it did not leave is nil.
type Record struct {
	// Name tells it from others, e.g. its path; empty for the only one.
	Name string
	// File is the record of runs, measured or simulated.
	File *results.File
	// Exploration is what searches, counts and replays of schedules found.
	Exploration *results.Exploration
	// Provenance is set if File leaves it out.
	Provenance *results.Provenance
	// Drawings of all of it.
	Drawings []Drawing
}

// Drawing is a plot or a chart.
type Drawing struct {
	// Format is the name of the renderer that made it.
	Format string
	// Doc says in one line what it shows.
	Doc string
	// Series is set if it is of one of the record's series.
	Series *results.Series
	// Finding is set if it is of one of the exploration's findings.
	Finding *results.Finding
	// Title and Desc say what it is and shows, SVG is the element, and Width its width in
	// pixels.
	Title, Desc string
	SVG         template.HTML
	Width       float64
	// Steps are the places at which the steps of a sequence chart end, as parts of its height from the top.
	Steps []float64
}

// About is what a strategy says of itself.
type About struct {
	// Doc is one line.
	Doc string
	// Source is the design record that it comes from; empty for none.
	Source string
	// Use and Avoid say when to use it, and when not.
	Use, Avoid string
}

var (
	//go:embed blocks.html.tmpl
	blocksTemplate string
	//go:embed page.html.tmpl
	pageTemplate string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"groupOf": groupOf, "discards": func(code string) string { return discards[code] },
	"figure": isFigure, "number": sortedBy, "classes": classesOf, "apart": reasonsApart, "kind": kindOf,
	"claimed": claimClass, "sentence": sentence,
	"steps":  stepsTable,
	"last":   func(i int, row document.Row) bool { return i == len(row.Cells)-1 },
	"linked": func(id, text string) link { return link{Link: id, Text: text} },
}).Parse(blocksTemplate + pageTemplate))

// Write writes one page about all records, in their order. About looks up what a strategy says
// of itself by its public name; it may be nil. A page of the same records and strategies has the
// same bytes.
func Write(w io.Writer, records []Record, about func(strategy string) (About, bool)) error {
	shown, err := view(records, about)
	if err != nil {
		return err
	}
	var builder strings.Builder
	err = page.Execute(&builder, shown)
	if err == nil {
		// Names in a record may come from anywhere: what would reorder or hide a text is shown.
		_, err = io.WriteString(w, format.Visible(builder.String()))
	}
	return format.Wrapf(err, "write page")
}

// link is a text that may lead to a place on the page.
type link struct{ Link, Text string }

// isFigure reports whether the column has figures, which are set flush right and sorted by their numbers.
func isFigure(column document.Column) bool { return column.Key != "" || !column.Left }

// sortedBy is the number by which rows are sorted; empty if there is none.
func sortedBy(cell document.Cell) string {
	if cell.Number == nil {
		return ""
	}
	return strconv.FormatFloat(*cell.Number, 'g', -1, 64)
}

// policyOf is what a browser may do with the page: run the one script, and load nothing.
func policyOf(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"
}
