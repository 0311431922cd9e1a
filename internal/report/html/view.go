package html

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// document is what the template is filled with.
type document struct {
	Title   string
	Policy  string
	Style   template.CSS
	Script  template.JS
	Legend  []groupView
	Records []*recordView
	Panels  []*panelView
	// Parts are the sections of the page that there are, in their order, and Has their IDs.
	Parts []part
	Has   map[string]bool
}

// part is a section of the page, which is there if a record has something for it.
type part struct {
	ID, Title string
	in        func(*recordView) bool
}

var parts = []part{
	{"answer", "The answer", func(r *recordView) bool { return len(r.Settings)+len(r.LeftOut) > 0 || r.Sweep != nil }},
	{"run", "What was run", func(r *recordView) bool { return len(r.Facts)+len(r.Settings)+len(r.Skipped)+len(r.Findings) > 0 }},
	{"decide", "Decision table", func(r *recordView) bool { return len(r.Settings) > 0 }},
	{"plots", "Plots", func(r *recordView) bool { return len(r.Drawings) > 0 }},
	{"explored", "Explored", func(r *recordView) bool { return r.Searches != nil }},
	{"strategies", "Strategies", nil},
}

// Columns are those of the decision tables.
func (d *document) Columns() []decisionColumn { return decisionColumns }

// recordView is a record on the page.
type recordView struct {
	ID, Name string
	// Kind is measured, simulated or explored.
	Kind      string
	Simulated bool
	Facts     []fact
	Settings  []*settingView
	Sweep     *settingView
	LeftOut   []text.LeftOut
	Skipped   []fact
	Findings  []text.Finding
	Drawings  []drawingView
	Searches  *table
}

// fact is an entry of a list of names and what they stand for.
type fact struct {
	Name   string
	Values []string
}

// drawingView is a drawing with the figures that it shows.
type drawingView struct {
	*Drawing
	ID    string
	Style template.CSS
	// Tables hold the figures.
	Tables []*table
}

// table is a table of texts. The first cell of a row is its head.
type table struct {
	Caption string
	layout.Grid
	// Links are the panels of the rows, or nil.
	Links []string

	notes figures.Notes
}

// Notes explain marks.
func (t *table) Notes() []string { return t.notes.Lines() }

// newTable has columns of texts, and of figures, which begin with "#" and are set flush right.
func newTable(caption string, columns ...string) *table {
	t := &table{Caption: caption}
	for _, c := range columns {
		title, figure := strings.CutPrefix(c, "#")
		t.Columns = append(t.Columns, layout.Column{Title: title, Left: !figure})
	}
	return t
}

// orNil is nil for a table without rows.
func (t *table) orNil() *table {
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// view is what a page shows of records.
func view(records []Record, about func(strategy string) (About, bool)) (*document, error) {
	d := &document{Policy: policyOf(script), Legend: legend(), Has: map[string]bool{}}
	d.Style = template.CSS(style)
	d.Script = template.JS(script) //nolint:gosec // embedded files
	p := panels{about: about, by: map[string]*panelView{}, ids: map[string]bool{}, charts: map[*results.Finding]*scheduleView{}}
	for i := range records {
		r := &records[i]
		v := &recordView{ID: fmt.Sprintf("r%d", i+1), Name: r.Name}
		d.Records = append(d.Records, v)
		if r.File != nil {
			if err := v.runs(r, &p); err != nil {
				return nil, err
			}
		}
		if r.Exploration != nil {
			v.Kind = cmp.Or(v.Kind, "explored")
			v.explored(r.Exploration, &p)
		}
		v.drawings(r, &p)
	}
	d.Panels = p.sorted()
	for _, x := range parts {
		d.Has[x.ID] = x.in == nil && len(d.Panels) > 0 || x.in != nil && slices.ContainsFunc(d.Records, x.in)
		if d.Has[x.ID] {
			d.Parts = append(d.Parts, x)
		}
	}
	d.Title = title(d)
	return d, nil
}

// title of the page: what was tested.
func title(d *document) string {
	var policies []string
	for _, r := range d.Records {
		for _, s := range r.Settings {
			policies = collect.Union(policies, s.Policy)
		}
	}
	const most = 3
	if n := len(policies); n > most {
		policies = append(policies[:most], fmt.Sprintf("%d more", n-most))
	}
	if len(policies) == 0 {
		return "quotabench report"
	}
	return "quotabench report: " + strings.Join(policies, ", ")
}

// drawings puts what is about one strategy into its panel, and the rest after the table.
func (v *recordView) drawings(r *Record, p *panels) {
	for i := range r.Drawings {
		x := &r.Drawings[i]
		d := drawingView{Drawing: x, ID: fmt.Sprintf("%s-d%d", v.ID, i+1)}
		d.Style = template.CSS(fmt.Sprintf("--natural:%.0fpx", x.Width)) //nolint:gosec // a number
		switch {
		case x.Finding != nil:
			p.chart(x.Finding, d)
		case x.Series != nil:
			d.Tables = append(d.Tables, seriesTable(x.Series))
			panel := p.of(x.Series.Strategy, "")
			panel.Series = append(panel.Series, d)
		default:
			if x.Format == "latency" { // the figures of others stand in the answer
				for _, s := range v.Settings {
					d.Tables = append(d.Tables, s.latencies())
				}
			}
			v.Drawings = append(v.Drawings, d)
		}
	}
}

// groupView is how a group is shown: by a word, a shape and a colour.
type groupView struct {
	Name  string
	Class string
	Shape string
	// Order among groups, the best first.
	Order int
}

// shapes and classes of the groups, for readers who do not tell colours apart.
var shapes = map[ranking.Group][2]string{
	ranking.Enforces: {"enforces", "●"}, ranking.Bounded: {"bounded", "◆"}, ranking.Undecided: {"bounded", "◇"},
	ranking.Loose: {"bounded", "▽"}, ranking.Fails: {"fails", "▲"}, ranking.Unusable: {"unusable", "✕"},
	ranking.Baseline: {"baseline", "○"},
}

func groupOf(g ranking.Group) groupView {
	return groupView{Name: string(g), Class: shapes[g][0], Shape: shapes[g][1], Order: slices.Index(ranking.Groups(), g)}
}

// legend are all groups in their order.
func legend() (out []groupView) {
	for _, g := range ranking.Groups() {
		out = append(out, groupOf(g))
	}
	return out
}
