package html

import (
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// decisionColumn is a column of the table to decide from.
type decisionColumn struct {
	Title string
	// Doc is a line about it.
	Doc string
	// Figure columns are set flush right.
	Figure bool
	// Wrap lets what belongs to a figure take several lines.
	Wrap bool
	of   func(s *results.Summary, v *settingView) decisionCell
	// only says where it is shown; nil is everywhere.
	only func(v *settingView) bool
}

// decisionCell is a figure with what belongs to it.
type decisionCell struct {
	Main, Sub string
	// Sort is the number by which rows are sorted; empty if there is none.
	Sort string
	// Bad marks what speaks against the strategy.
	Bad bool
}

// decisionRow is a strategy.
type decisionRow struct {
	*ranking.Strategy
	Panel string
	Cells []decisionCell
}

// decisionColumns after the strategy and its group.
var decisionColumns = []decisionColumn{
	of("leak", "leak-pct", true, leakOf), of("leak-worst", "leak-worst", false, boundOf),
	of("false-rejects", "false-rejects-pct", true, nil), latencyOf("p50"), latencyOf("p99"), throughputColumn(),
	commandsColumn(), errorsColumn(),
	{Title: "guarantee", Doc: "what the strategy declares, and whether it was kept", of: guaranteeOf},
}

// of is the column of a figure, by which rows are sorted, or by that of another key. What is
// above 0 speaks against the strategy if bad is set.
func of(key, by string, bad bool, sub func(*results.Summary) string) decisionColumn {
	f := figures.Of(key)
	order := figures.Of(by)
	return decisionColumn{Title: f.Title(), Doc: f.Doc, Figure: true, of: func(s *results.Summary, v *settingView) decisionCell {
		c := decisionCell{Main: f.Text(s, &v.notes)}
		x, err := order.Value(s)
		if err != nil {
			c.Bad = bad
			return c
		}
		c.Sort = number(x)
		c.Bad = bad && x > 0
		if sub != nil {
			c.Sub = sub(s)
		}
		return c
	}}
}

func latencyOf(key string) decisionColumn {
	f := figures.Of(key)
	return decisionColumn{Title: f.Title(), Doc: f.Doc, Figure: true, of: func(s *results.Summary, v *settingView) decisionCell {
		c := decisionCell{Main: f.Text(s, &v.notes), Sub: f.Timing(s).Interval}
		switch p := f.Percentile(s); {
		case s.Overloaded():
			c.Sort = number(float64(results.MaxDuration))
			c.Bad = true
		case p.Rounds > 0:
			c.Sort = number(p.Value)
		}
		return c
	}}
}

func throughputColumn() decisionColumn {
	c := of("throughput", "throughput", false, func(s *results.Summary) string {
		if s.Ratio.Rounds == 0 {
			return ""
		}
		return format.Digits(s.Ratio.Value) + " × INCR"
	})
	c.Title = "decisions/s"
	c.only = func(v *settingView) bool { return !v.simulated }
	return c
}

func errorsColumn() decisionColumn {
	c := of("errors-pct", "errors-pct", true, func(s *results.Summary) string { return strings.Join(figures.Errors(s), ", ") })
	c.Wrap = true
	return c
}

// decide fills the table.
func (v *settingView) decide(a *ranking.Setting, p *panels) {
	for _, c := range decisionColumns {
		if c.only == nil || c.only(v) {
			v.Columns = append(v.Columns, c)
		}
	}
	for i := range v.group {
		s := &v.group[i]
		x := &a.Strategies[i]
		row := decisionRow{Strategy: x, Panel: p.of(x.Label, s.Strategy).ID}
		for _, c := range v.Columns {
			row.Cells = append(row.Cells, c.of(s, v))
		}
		v.Rows = append(v.Rows, row)
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func leakOf(s *results.Summary) string {
	l := &s.Leak
	switch {
	case l.Possible > 0:
		return format.Pct(l.PctOfLimit) + " of limit"
	case l.Trials > 0:
		return "≤ " + format.Pct(100*stat.RateBound(l.Trials)) + " of trials"
	}
	return ""
}

func boundOf(s *results.Summary) string {
	if g := figures.Strictest(s); figures.Bounded(g) {
		return "bound " + format.Count(g.Bound)
	}
	return "no bound"
}

func commandsColumn() decisionColumn {
	c := of("all-commands", "all-commands", false, func(s *results.Summary) string {
		if sql := s.Cost.SQL + s.Cost.ModelSQL; sql > 0 {
			return format.Per(sql) + " SQL"
		}
		return ""
	})
	c.Title = "commands"
	return c
}

func guaranteeOf(s *results.Summary, _ *settingView) decisionCell {
	if !s.Counts() {
		return decisionCell{Main: "-"}
	}
	c := decisionCell{Main: figures.Guarantee(s), Bad: s.Verdict == results.Broken}
	if g := figures.Strictest(s); g != nil {
		c.Sub = "at most " + g.Formula
	}
	return c
}
