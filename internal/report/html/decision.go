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
	of   func(summary *results.Summary, view *settingView) decisionCell
	// only says where it is shown; nil is everywhere.
	only func(view *settingView) bool
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
	figure := figures.Of(key)
	order := figures.Of(by)
	return decisionColumn{Title: figure.Title(), Doc: figure.Doc, Figure: true,
		of: func(summary *results.Summary, view *settingView) decisionCell {
			cell := decisionCell{Main: figure.Text(summary, &view.notes)}
			value, err := order.Value(summary)
			if err != nil {
				cell.Bad = bad
				return cell
			}
			cell.Sort = number(value)
			cell.Bad = bad && value > 0
			if sub != nil {
				cell.Sub = sub(summary)
			}
			return cell
		}}
}

func latencyOf(key string) decisionColumn {
	figure := figures.Of(key)
	return decisionColumn{Title: figure.Title(), Doc: figure.Doc, Figure: true,
		of: func(summary *results.Summary, view *settingView) decisionCell {
			cell := decisionCell{Main: figure.Text(summary, &view.notes), Sub: figure.Timing(summary).Interval}
			switch percentile := figure.Percentile(summary); {
			case summary.Overloaded():
				cell.Sort = number(float64(results.MaxDuration))
				cell.Bad = true
			case percentile.Rounds > 0:
				cell.Sort = number(percentile.Value)
			}
			return cell
		}}
}

func throughputColumn() decisionColumn {
	column := of("throughput", "throughput", false, func(summary *results.Summary) string {
		if summary.Ratio.Rounds == 0 {
			return ""
		}
		return format.Digits(summary.Ratio.Value) + " × INCR"
	})
	column.Title = "decisions/s"
	column.only = func(view *settingView) bool { return !view.simulated }
	return column
}

func errorsColumn() decisionColumn {
	column := of("errors-pct", "errors-pct", true, func(summary *results.Summary) string {
		return strings.Join(figures.Errors(summary), ", ")
	})
	column.Wrap = true
	return column
}

// decide fills the table.
func (v *settingView) decide(setting *ranking.Setting, p *panels) {
	for _, column := range decisionColumns {
		if column.only == nil || column.only(v) {
			v.Columns = append(v.Columns, column)
		}
	}
	for i := range v.group {
		summary := &v.group[i]
		strategy := &setting.Strategies[i]
		row := decisionRow{Strategy: strategy, Panel: p.of(strategy.Label, summary.Strategy).ID}
		for _, column := range v.Columns {
			row.Cells = append(row.Cells, column.of(summary, v))
		}
		v.Rows = append(v.Rows, row)
	}
}

func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

func leakOf(summary *results.Summary) string {
	leakSummary := &summary.Leak
	switch {
	case leakSummary.Possible > 0:
		return format.Pct(leakSummary.PctOfLimit) + " of limit"
	case leakSummary.Trials > 0:
		return "≤ " + format.Pct(100*stat.RateBound(leakSummary.Trials)) + " of trials"
	}
	return ""
}

func boundOf(summary *results.Summary) string {
	if clause := figures.Strictest(summary); figures.Bounded(clause) {
		return "bound " + format.Count(clause.Bound)
	}
	return "no bound"
}

func commandsColumn() decisionColumn {
	column := of("all-commands", "all-commands", false, func(summary *results.Summary) string {
		if sql := summary.Cost.SQL + summary.Cost.ModelSQL; sql > 0 {
			return format.Per(sql) + " SQL"
		}
		return ""
	})
	column.Title = "commands"
	return column
}

func guaranteeOf(summary *results.Summary, _ *settingView) decisionCell {
	if !summary.Counts() {
		return decisionCell{Main: "-"}
	}
	cell := decisionCell{Main: figures.Guarantee(summary), Bad: summary.Verdict == results.Broken}
	if clause := figures.Strictest(summary); clause != nil {
		cell.Sub = "at most " + clause.Formula
	}
	return cell
}
