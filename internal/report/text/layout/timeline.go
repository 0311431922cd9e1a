package layout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Geometry of a timeline, in characters.
const (
	stepWidth   = 4
	leastColumn = 14 // the narrowest column that reads well
)

// Timeline renders what a search found: a line per step, a column per actor with the command and its reply, the truth
// after it, and what is stored.
func (p Page) Timeline(finding *results.Finding) []string {
	t := newTimeline(p, finding)
	heads := slices.Concat([]string{"step"}, t.names, []string{"in use"})
	if t.stored != nil {
		heads = append(heads, "then stored")
	}
	out := rowLines(t.widths, heads)
	rules := make([]string, len(t.widths))
	for i, width := range t.widths {
		rules[i] = strings.Repeat("-", width)
	}
	out = append(out, rowLines(t.widths, rules)...)
	for i := range finding.Steps {
		out = append(out, t.stepLines(&finding.Steps[i], i)...)
	}
	return out
}

// timeline is the layout of a schedule: a column of step numbers, one for each actor, one of the units in use, and one
// of what is stored, if that is known.
type timeline struct {
	actors []int // columns of the finding
	// shared is set if there are too many actors for a column each: they share one, with their names in it.
	shared bool
	names  []string
	stored []string // after each step; nil if nothing is known of it
	widths []int
	// span is the width of all actors' columns together.
	span int
}

func newTimeline(page Page, finding *results.Finding) *timeline {
	t := &timeline{actors: finding.ActorColumns()}
	truth := len("in use")
	stored := 0
	for i := range finding.Steps {
		truth = max(truth, len(truthText(&finding.Steps[i])))
	}
	texts := StoredTexts(finding)
	for _, text := range texts {
		stored = max(stored, TextWidth(text))
	}
	if stored > 0 {
		t.stored = texts
		stored = min(stored, max(leastColumn, page.Cells()/3)) + columnGap
	}
	room := page.Cells() - stepWidth - truth - stored - columnGap*(len(t.actors)+1)
	t.shared = len(t.actors)*leastColumn > room || len(t.actors) == 0
	if t.shared {
		room = page.Cells() - stepWidth - truth - stored - 2*columnGap
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
	if t.stored != nil {
		t.widths = append(t.widths, stored-columnGap)
	}
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

func (t *timeline) stepLines(step *results.Step, at int) []string {
	number := fmt.Sprintf("T%d", step.Number)
	last := []string{truthText(step)}
	if t.stored != nil {
		last = append(last, t.stored[at])
	}
	ends := t.widths[len(t.widths)-len(last):]
	column := t.columnOf(step)
	if column < 0 {
		widths := append([]int{stepWidth, t.span}, ends...)
		return rowLines(widths, append([]string{number, acrossText(step)}, last...))
	}
	cells := make([]string, len(t.widths)-len(last))
	cells[0] = number
	cells[column+1] = t.text(step)
	return rowLines(t.widths, append(cells, last...))
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

// StoredTexts say what is stored after each step, of the keys that it has to do with. Keys are named if there are
// several, without what their names have in common.
func StoredTexts(finding *results.Finding) []string {
	keys := map[string]bool{}
	shared := ""
	for i := range finding.Steps {
		for _, key := range finding.Steps[i].Stored {
			if len(keys) == 0 {
				shared = key.Key
			}
			keys[key.Key] = true
			shared = commonPart(shared, key.Key)
		}
	}
	texts := make([]string, len(finding.Steps))
	for i := range finding.Steps {
		texts[i] = format.List(finding.Steps[i].Stored, "; ", func(key results.StoredKey) string {
			if len(keys) == 1 {
				return keyText(&key)
			}
			return strings.TrimPrefix(key.Key, shared) + ": " + keyText(&key)
		})
	}
	return texts
}

// commonPart is how two names of keys begin, up to a colon.
func commonPart(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:strings.LastIndexByte(a[:n], ':')+1]
}

// keyText is what a key holds, for how long, and whether that is news.
func keyText(key *results.StoredKey) string {
	var parts []string
	switch {
	case key.Gone && key.Unchanged:
		return "is not there"
	case key.Gone:
		return "gone"
	case key.Members > 0:
		parts = append(parts, format.Number(key.Members, "member"))
	default:
		most := mostValue
		if key.Row {
			most = mostOfRow
		}
		parts = append(parts, format.Shorten(key.Value, most))
	}
	switch {
	case key.Row:
	case key.TTL > 0:
		parts = append(parts, "ttl "+quota.LengthText(key.TTL.Round(time.Millisecond)))
	default:
		parts = append(parts, "no ttl")
	}
	if key.Unchanged {
		parts = append(parts, "unchanged")
	}
	return strings.Join(parts, ", ")
}

// Bounds of a stored value, and of the columns of a row, in characters.
const (
	mostValue = 24
	mostOfRow = 60
)

// rowLines are those of one row, with cells wrapped over several.
func rowLines(widths []int, cells []string) []string {
	out := Beside(cells, widths)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], glue, " ")
	}
	return out
}
