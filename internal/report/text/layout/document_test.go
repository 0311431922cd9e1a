package layout

import (
	"bytes"
	"testing"

	"github.com/quotabench/quotabench/internal/report/document"
)

// TestDocument: a terminal has what is brief, with an empty line between sections.
func TestDocument(t *testing.T) {
	table := &document.Table{Title: "TABLE  of all", Columns: []document.Column{
		{Title: "a", Left: true}, {Title: "b", Narrow: "b, ms"}, {Title: "page", Only: document.Full},
	}, Notes: []string{"a note"}}
	table.Add("x", "1", "2").Why = "a reason"
	doc := document.Document{
		{&document.Paragraph{Text: "of a page", Only: document.Full},
			&document.Table{Title: "of a page", Only: document.Full}},
		{&document.Heading{Text: "ADR-1"}, table, &document.Paragraph{Head: "  x: ", Text: "a reason of words",
			Only: document.Brief}},
		{&document.Entries{Width: 6, List: []document.Entry{{Label: "host", Text: "h"}, {Text: "again"}, {Label: "longer",
			Text: "l"}}}},
		{&document.Paragraph{Lead: "FAIL", Text: " of a command that is long", Whole: true}},
	}
	const want = `ADR-1
TABLE  of all
a  b, ms
────────
x      1
  a note
  x: a reason of
     words

host  h
      again
longer l

FAIL of a command that is long
`
	var out bytes.Buffer
	if err := (Page{Width: 16}).Write(&out, doc); err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}
