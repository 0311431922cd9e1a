package html

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/results"
)

// pageView is what the template is filled with.
type pageView struct {
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
	{"answer", "The answer", func(view *recordView) bool {
		return len(view.Settings)+len(view.LeftOut) > 0 || view.Sweep != nil
	}},
	{"run", "What was run", func(view *recordView) bool {
		return len(view.Facts)+len(view.Settings)+len(view.Skipped)+len(view.Findings) > 0
	}},
	{"decide", "Decision table", func(view *recordView) bool { return len(view.Settings) > 0 }},
	{"plots", "Plots", func(view *recordView) bool { return len(view.Drawings) > 0 }},
	{"explored", "Explored", func(view *recordView) bool { return view.Searches != nil }},
	{"strategies", "Strategies", nil},
}

// Columns are those of the decision tables that have a definition.
func (d *pageView) Columns() (out []document.Column) {
	for _, record := range d.Records {
		for _, setting := range record.Settings {
			for _, column := range setting.Full().Columns {
				same := func(other document.Column) bool { return other.Title == column.Title }
				if column.Doc != "" && !slices.ContainsFunc(out, same) {
					out = append(out, column)
				}
			}
		}
	}
	return out
}

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
	Searches  *document.Table
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
	Tables []*document.Table
}

// newTable has columns of texts, and of figures, which begin with "#" and are set flush right.
func newTable(caption string, columns ...string) *document.Table {
	table := &document.Table{Title: caption}
	for _, c := range columns {
		title, figure := strings.CutPrefix(c, "#")
		table.Columns = append(table.Columns, document.Column{Title: title, Left: !figure})
	}
	return table
}

// filled is nil for a table without rows.
func filled(table *document.Table) *document.Table {
	if len(table.Rows) == 0 {
		return nil
	}
	return table
}

// view is what a page shows of records.
func view(records []Record, about func(strategy string) (About, bool)) (*pageView, error) {
	d := &pageView{Policy: policyOf(script), Legend: legend(), Has: map[string]bool{}}
	d.Style = template.CSS(style)
	d.Script = template.JS(script) //nolint:gosec // embedded files
	p := panels{about: about, by: map[string]*panelView{}, ids: map[string]bool{},
		charts: map[*results.Finding]*scheduleView{}}
	for i := range records {
		record := &records[i]
		view := &recordView{ID: fmt.Sprintf("r%d", i+1), Name: record.Name}
		d.Records = append(d.Records, view)
		if record.File != nil {
			if err := view.runs(record, &p); err != nil {
				return nil, err
			}
		}
		if record.Exploration != nil {
			view.Kind = cmp.Or(view.Kind, "explored")
			view.explored(record.Exploration, &p)
		}
		view.drawings(record, &p)
	}
	d.Panels = p.sorted()
	for _, part := range parts {
		d.Has[part.ID] = part.in == nil && len(d.Panels) > 0 || part.in != nil && slices.ContainsFunc(d.Records, part.in)
		if d.Has[part.ID] {
			d.Parts = append(d.Parts, part)
		}
	}
	d.Title = title(d)
	return d, nil
}

// title of the page: what was tested.
func title(d *pageView) string {
	var policies []string
	for _, view := range d.Records {
		for _, settingView := range view.Settings {
			policies = collect.Union(policies, settingView.Policy)
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
func (v *recordView) drawings(record *Record, p *panels) {
	for i := range record.Drawings {
		drawing := &record.Drawings[i]
		view := drawingView{Drawing: drawing, ID: fmt.Sprintf("%s-d%d", v.ID, i+1)}
		view.Style = template.CSS(fmt.Sprintf("--natural:%.0fpx", drawing.Width)) //nolint:gosec // a number
		switch {
		case drawing.Finding != nil:
			p.chart(drawing.Finding, view)
		case drawing.Series != nil:
			view.Tables = append(view.Tables, seriesTable(drawing.Series))
			panel := p.of(drawing.Series.Strategy, "")
			panel.Series = append(panel.Series, view)
		default:
			if drawing.Format == "latency" { // the figures of others stand in the answer
				for _, settingView := range v.Settings {
					view.Tables = append(view.Tables, settingView.latencies())
				}
			}
			v.Drawings = append(v.Drawings, view)
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

func groupOf(group ranking.Group) groupView {
	return groupView{Name: string(group), Class: shapes[group][0], Shape: shapes[group][1],
		Order: slices.Index(ranking.Groups(), group)}
}

// legend are all groups in their order.
func legend() (out []groupView) {
	for _, group := range ranking.Groups() {
		out = append(out, groupOf(group))
	}
	return out
}
