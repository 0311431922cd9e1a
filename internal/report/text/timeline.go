package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Geometry of a timeline, in characters.
const (
	stepWidth   = 4
	leastColumn = 14 // the narrowest column that reads well
	columnGap   = 2
)

// timelineLines are the rows of a finding.
func timelineLines(page layout.Page, finding *results.Finding) (out []string) {
	cols := finding.ActorColumns()
	truth := len("in use")
	for _, step := range finding.Steps {
		truth = max(truth, len(truthText(&step)))
	}
	room := page.Cells() - stepWidth - truth - columnGap*(len(cols)+1)
	// Too many actors for a column each share one, with their names in it.
	shared := len(cols)*leastColumn > room || len(cols) == 0
	names := []string{"who does what"}
	columns := 1
	if shared {
		room = page.Cells() - stepWidth - truth - 2*columnGap
	} else {
		names = nil
		columns = len(cols)
		for _, c := range cols {
			names = append(names, finding.Columns[c].Name)
		}
	}
	natural := make([]int, columns)
	for i, n := range names {
		natural[i] = layout.TextWidth(n)
	}
	for _, step := range finding.Steps {
		if at := slices.Index(cols, step.Column); shared {
			natural[0] = max(natural[0], layout.TextWidth(step.Actor+": "+stepText(&step)))
		} else if at >= 0 {
			natural[at] = max(natural[at], layout.TextWidth(stepText(&step)))
		}
	}
	middle := shareRoom(natural, room)
	span := columnGap * (columns - 1)
	for _, n := range middle {
		span += n
	}
	for _, step := range finding.Steps { // what belongs to no column goes across all of them
		if step.Column < 0 && !shared {
			need := min(layout.TextWidth(acrossText(&step)), room+columnGap*(columns-1))
			middle[columns-1] += max(0, need-span)
			span = max(span, need)
		}
	}
	widths := slices.Concat([]int{stepWidth}, middle, []int{truth})
	out = append(out, rowLines(widths, slices.Concat([]string{"step"}, names, []string{"in use"}))...)
	rules := make([]string, len(widths))
	for i, n := range widths {
		rules[i] = strings.Repeat("-", n)
	}
	out = append(out, rowLines(widths, rules)...)
	for _, step := range finding.Steps {
		at := slices.Index(cols, step.Column)
		text := stepText(&step)
		number := fmt.Sprintf("T%d", step.Number)
		switch {
		case shared:
			at = 0
			text = step.Actor + ": " + text
		case at < 0:
			out = append(out, rowLines([]int{stepWidth, span, truth}, []string{number, acrossText(&step), truthText(&step)})...)
			continue
		}
		cells := make([]string, len(widths))
		cells[0], cells[at+1], cells[len(cells)-1] = number, text, truthText(&step)
		out = append(out, rowLines(widths, cells)...)
	}
	return out
}

// shareRoom gives columns the widths that they would like, and if that is too much
// the same to all that would like more than that.
func shareRoom(wanted []int, room int) []int {
	out := slices.Clone(wanted)
	order := make([]int, len(wanted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return wanted[a] - wanted[b] })
	for n, i := range order {
		out[i] = min(wanted[i], room/(len(order)-n))
		room -= out[i]
	}
	return out
}

// glue holds words together that a line should not end between: a blank that
// [layout.Wrap] does not break at.
const glue = "\u00a0"

// stepText is a step in one cell.
func stepText(step *results.Step) string {
	var parts []string
	if fault := step.Event.Fault(); fault != "" {
		parts = append(parts, "!! "+fault)
	}
	switch {
	case step.Kind == "sql" && step.Command != "" && step.Reply != "": // SQL is full of equals signs
		parts = append(parts, step.Command+glue+step.Reply)
	case step.Command != "" && step.Reply != "":
		parts = append(parts, step.Command+" ="+glue+step.Reply)
	case step.Command != "" || step.Reply != "":
		parts = append(parts, step.Command+step.Reply)
	}
	if step.Outcome != "" {
		parts = append(parts, "->"+glue+step.Outcome)
	}
	return strings.Join(parts, " ")
}

// acrossText is a step of an actor that has no column.
func acrossText(step *results.Step) string { return "** " + step.Actor + ": " + stepText(step) }

// truthText is what is in use after the step, with a mark if that is too much.
func truthText(step *results.Step) string {
	mark := ""
	if step.InUse > step.Limit {
		mark = " !"
	}
	return fmt.Sprintf("%d of %d%s", step.InUse, step.Limit, mark)
}

// rowLines are those of one row, with cells wrapped over several.
func rowLines(widths []int, cells []string) []string {
	out := layout.Beside(cells, widths)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], glue, " ")
	}
	return out
}
