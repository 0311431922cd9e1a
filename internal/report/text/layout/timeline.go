package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/results"
)

// Geometry of a timeline, in characters.
const (
	stepWidth   = 4
	leastColumn = 14 // the narrowest column that reads well
)

// Timeline renders what a search found: a line per step, a column per actor with the command and its reply, and the
// truth after it.
func (p Page) Timeline(finding *results.Finding) []string {
	t := newTimeline(p, finding)
	out := rowLines(t.widths, slices.Concat([]string{"step"}, t.names, []string{"in use"}))
	rules := make([]string, len(t.widths))
	for i, width := range t.widths {
		rules[i] = strings.Repeat("-", width)
	}
	out = append(out, rowLines(t.widths, rules)...)
	for i := range finding.Steps {
		out = append(out, t.stepLines(&finding.Steps[i])...)
	}
	return out
}

// timeline is the layout of a schedule: a column of step numbers, one for each actor, and one of the units in use.
type timeline struct {
	actors []int // columns of the finding
	// shared is set if there are too many actors for a column each: they share one, with their names in it.
	shared bool
	names  []string
	widths []int
	// span is the width of all actors' columns together.
	span int
}

func newTimeline(page Page, finding *results.Finding) *timeline {
	t := &timeline{actors: finding.ActorColumns()}
	truth := len("in use")
	for i := range finding.Steps {
		truth = max(truth, len(truthText(&finding.Steps[i])))
	}
	room := page.Cells() - stepWidth - truth - columnGap*(len(t.actors)+1)
	t.shared = len(t.actors)*leastColumn > room || len(t.actors) == 0
	if t.shared {
		room = page.Cells() - stepWidth - truth - 2*columnGap
		t.names = []string{"who does what"}
	} else {
		for _, actor := range t.actors {
			t.names = append(t.names, finding.Columns[actor].Name)
		}
	}
	columns := shareRoom(t.natural(finding), room)
	gaps := columnGap * (len(columns) - 1)
	t.span = gaps
	for _, width := range columns {
		t.span += width
	}
	t.widen(finding, columns, room+gaps)
	t.widths = slices.Concat([]int{stepWidth}, columns, []int{truth})
	return t
}

// natural are the widths that the actors' columns would have with enough room.
func (t *timeline) natural(finding *results.Finding) []int {
	widths := make([]int, len(t.names))
	for i, name := range t.names {
		widths[i] = TextWidth(name)
	}
	for i := range finding.Steps {
		step := &finding.Steps[i]
		at := t.columnOf(step)
		if at >= 0 {
			widths[at] = max(widths[at], TextWidth(t.text(step)))
		}
	}
	return widths
}

// widen makes room for the steps of no actor, which go across all columns.
func (t *timeline) widen(finding *results.Finding, columns []int, room int) {
	if t.shared {
		return
	}
	for i := range finding.Steps {
		step := &finding.Steps[i]
		if step.Column >= 0 {
			continue
		}
		need := min(TextWidth(acrossText(step)), room)
		columns[len(columns)-1] += max(0, need-t.span)
		t.span = max(t.span, need)
	}
}

// columnOf is the place of the step's actor among the columns, or -1 if it goes across all of them.
func (t *timeline) columnOf(step *results.Step) int {
	if t.shared {
		return 0
	}
	return slices.Index(t.actors, step.Column)
}

// text is what stands in the column of the step's actor.
func (t *timeline) text(step *results.Step) string {
	if t.shared {
		return step.Actor + ": " + stepText(step)
	}
	return stepText(step)
}

func (t *timeline) stepLines(step *results.Step) []string {
	number := fmt.Sprintf("T%d", step.Number)
	truth := t.widths[len(t.widths)-1]
	at := t.columnOf(step)
	if at < 0 {
		return rowLines([]int{stepWidth, t.span, truth}, []string{number, acrossText(step), truthText(step)})
	}
	cells := make([]string, len(t.widths))
	cells[0] = number
	cells[at+1] = t.text(step)
	cells[len(cells)-1] = truthText(step)
	return rowLines(t.widths, cells)
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
// [Wrap] does not break at.
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
	out := Beside(cells, widths)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], glue, " ")
	}
	return out
}
