package render

import (
	"bytes"
	"io"

	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/compare"
	"github.com/quotabench/quotabench/results/text"
	"github.com/quotabench/quotabench/results/text/layout"
)

// ComparisonRenderer is one format of comparisons.
type ComparisonRenderer struct {
	Name string
	Doc  string // one line
	// Render returns what goes to standard output.
	Render func(c *compare.Comparison) ([]byte, error)
}

// GitHub is the format of annotations for GitHub Actions.
const GitHub = "github"

// Markdown is the format of tables for pages and job summaries.
const Markdown = "markdown"

// Comparisons returns all formats of comparisons, the default first.
func Comparisons() []ComparisonRenderer {
	return []ComparisonRenderer{
		{"text", "a table for the terminal", comparisonText(func(w io.Writer, c *compare.Comparison) error { return text.Comparison(w, layout.Page{}, c) })},
		{Markdown, "the same table for a page", comparisonText(text.ComparisonMarkdown)},
		{"json", "all figures that were compared", codec.ComparisonJSON},
		{GitHub, "annotations for GitHub Actions", comparisonText(text.ComparisonAnnotations)},
	}
}

func comparisonText(write func(io.Writer, *compare.Comparison) error) func(*compare.Comparison) ([]byte, error) {
	return func(c *compare.Comparison) ([]byte, error) {
		var b bytes.Buffer
		err := write(&b, c)
		return visible(&b), err
	}
}
