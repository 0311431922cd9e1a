package render

import (
	"bytes"
	"io"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results/codec"
)

// Page is how wide a table is, and whether it is coloured. The zero value is as wide as its content.
type Page = layout.Page

// ComparisonRenderer is one format of comparisons.
type ComparisonRenderer struct {
	Name string
	Doc  string // one line
	// Render returns what goes to standard output. Tables are laid out for the page.
	Render func(page Page, comparison *compare.Comparison) ([]byte, error)
}

// Comparisons returns all formats of comparisons, the default first.
func Comparisons() []ComparisonRenderer {
	return []ComparisonRenderer{
		{"text", "a table for the terminal", comparisonText(text.Comparison)},
		{document.Markdown, "the same table for a page", comparisonText(text.ComparisonMarkdown)},
		{document.JSON, "all figures that were compared", func(_ layout.Page, comparison *compare.Comparison) ([]byte, error) {
			return codec.ComparisonJSON(comparison)
		}},
		{document.GitHub, "annotations for GitHub Actions", comparisonText(text.ComparisonAnnotations)},
	}
}

func comparisonText(write func(io.Writer, layout.Page, *compare.Comparison) error) func(layout.Page,
	*compare.Comparison) ([]byte, error) {
	return func(page layout.Page, comparison *compare.Comparison) ([]byte, error) {
		var buffer bytes.Buffer
		err := write(&buffer, page, comparison)
		if page.Colour { // which making it visible would take out
			return []byte(layout.Painted(buffer.String(), format.Visible)), err
		}
		return visible(&buffer), err
	}
}
