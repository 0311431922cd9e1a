package html

import (
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/results"
)

// TestDocument: a page has every block of a document, and all that is not for a terminal alone.
func TestDocument(t *testing.T) {
	table := &document.Table{Title: "three-tier", ID: "t", Columns: []document.Column{
		{Title: "fault", Left: true, Tip: "what happens"}, {Title: "verdict", Only: document.Brief}, {Title: "leak"},
	}, Notes: []string{"brief"}, FullNotes: []string{"full"}}
	table.AddHeading("of Redis", document.Neutral)
	row := table.Add("<away>", "FAIL", "4")
	row.ID = "away"
	row.Link = "t"
	row.Why = "it leaks"
	row.Condition = "leak<=0"
	row.Commands = []string{"quotabench run"}
	row.Cells[2] = document.Cell{Text: "4", Narrow: "short", Aside: "of 50", Tip: "a tip", Tone: document.Bad}
	table.AddRule()
	finding := &results.Finding{Steps: []results.Step{{Number: 1, Actor: "A", Command: "GET k", Reply: "0", Limit: 1}}}
	doc := document.Document{{
		&document.Heading{Text: "ADR-005"}, table, &document.Schedule{Finding: finding},
		&document.Paragraph{Text: "below a table", Only: document.Brief}, &document.Paragraph{Lead: "FAIL", Text: ": 1"},
		&document.Entries{List: []document.Entry{{Label: "host", Text: "h"}}},
	}}
	var out strings.Builder
	if err := writeDocument(&out, "A title", doc); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{
		"<title>A title</title>", "<h2>ADR-005</h2>", `<h2 id="t">three-tier</h2>`, `title="what happens">fault</th>`,
		`<th scope="col">why</th>`, `colspan="2">of Redis</th>`, `<tr id="away">`, `<a href="#t">&lt;away&gt;</a>`,
		`<td class="n bad" title="a tip">4 <small>of 50</small></td>`, "<td>it leaks<details>", "<code>leak&lt;=0</code>",
		"<code>quotabench run</code>", `<p class="note">full</p>`, "<td>GET k → 0</td>", "<strong>FAIL</strong>: 1",
		"<dt>host</dt><dd>h</dd>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page[strings.Index(page, "<body"):])
		}
	}
	for _, other := range []string{"verdict", "short", "brief", "below a table"} {
		if strings.Contains(page[strings.Index(page, "<body"):], other) {
			t.Errorf("the page has %q, which is for a terminal", other)
		}
	}
}
