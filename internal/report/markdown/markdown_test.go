package markdown

import (
	"bytes"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/results"
)

// TestEveryBlock: each block has a form, and names cannot be Markdown.
func TestEveryBlock(t *testing.T) {
	table := &document.Table{Title: "all", Columns: []document.Column{
		{Title: "claim", Left: true}, {Title: "leak", Only: document.Full}, {Title: "verdict", Only: document.Brief},
		{Title: "measured\nhere", Left: true},
	}, Notes: []string{"a note"}}
	table.AddHeading("group", document.Neutral)
	row := table.Add("a|b", "1", "FAIL", "<2>")
	row.Why = "it *is*"
	row.Condition = "leak<=0"
	row.Commands = []string{"quotabench run", "quotabench sim"}
	table.Add("c", "2", "PASS", "3")
	list := []document.Entry{{Label: "base", Text: "x"}, {Label: "head", Text: "y"}}
	finding := &results.Finding{Steps: []results.Step{{Number: 1, Actor: "A", Command: "GET k", Reply: "0", Limit: 1}},
		Columns: []results.Column{{Name: "A", Role: codes.RoleClient}}}
	doc := document.Document{
		{&document.Heading{Text: "ADR_1"}, table},
		{&document.Paragraph{Head: "T1 ", Text: "below the table of a terminal", Only: document.Brief}},
		{&document.Entries{Inline: true, List: list}, &document.Entries{List: list}},
		{&document.Paragraph{Lead: "FAIL", Text: ": @all"}, &document.Schedule{Finding: finding}},
	}
	const want = "## ADR\\_1\n\n" + `**all**

| claim | leak | measured here |
|---|--:|---|
| **group** |  |  |
| a\|b | 1 | &lt;2&gt;; it \*is\* |
| c | 2 | 3 |

- a\|b: ` + "`leak<=0`, from `quotabench run`, `quotabench sim`" + `

a note

base x, head y

- base: x
- head: y

**FAIL**: &#64;all

` + "```\n" + `step  A          in use
----  ---------  ------
T1    GET k = 0  0 of 1
` + "```\n"
	var out bytes.Buffer
	if err := Write(&out, doc); err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}

// TestTable: cells of generated pages are Markdown themselves.
func TestTable(t *testing.T) {
	table := &document.Table{Columns: []document.Column{{Title: "run", Left: true}, {Title: "p99"}}}
	table.Add("[first](README.md)", "1\n2")
	const want = "|run|p99|\n|---|--:|\n|[first](README.md)|1 2|\n"
	if got := Table(table); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
