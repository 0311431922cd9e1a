package explore

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Geometry of a timeline, in characters.
const (
	timelineWidth = 120
	stepWidth     = 4
	leastColumn   = 14 // the narrowest column that reads well
	columnGap     = 2
)

// WriteTimeline writes a finding as a table: a line per step, a column per actor
// with the command and its reply, and the truth after it.
func WriteTimeline(w io.Writer, f *Finding) error {
	out := bufio.NewWriter(w)
	cols := f.actors()
	truth := len("in use")
	for _, s := range f.Steps {
		truth = max(truth, len(s.truth()))
	}
	room := timelineWidth - stepWidth - truth - columnGap*(len(cols)+1)
	// Too many actors for a column each share one, with their names in it.
	shared := len(cols)*leastColumn > room || len(cols) == 0
	names, columns := []string{"who does what"}, 1
	if shared {
		room = timelineWidth - stepWidth - truth - 2*columnGap
	} else {
		names, columns = f.names(cols), len(cols)
	}
	natural := make([]int, columns)
	for i, n := range names {
		natural[i] = runes(n)
	}
	for _, s := range f.Steps {
		if at := slices.Index(cols, s.Column); shared {
			natural[0] = max(natural[0], runes(s.Actor+": "+s.text()))
		} else if at >= 0 {
			natural[at] = max(natural[at], runes(s.text()))
		}
	}
	middle := share(natural, room)
	span := columnGap * (columns - 1)
	for _, n := range middle {
		span += n
	}
	for _, s := range f.Steps { // what belongs to no column goes across all of them
		if s.Column < 0 && !shared {
			need := min(runes(s.across()), room+columnGap*(columns-1))
			middle[columns-1] += max(0, need-span)
			span = max(span, need)
		}
	}
	widths := slices.Concat([]int{stepWidth}, middle, []int{truth})
	writeRow(out, widths, slices.Concat([]string{"step"}, names, []string{"in use"}))
	rules := make([]string, len(widths))
	for i, n := range widths {
		rules[i] = strings.Repeat("-", n)
	}
	writeRow(out, widths, rules)
	for _, s := range f.Steps {
		at, text := slices.Index(cols, s.Column), s.text()
		number := fmt.Sprintf("T%d", s.Number)
		switch {
		case shared:
			at, text = 0, s.Actor+": "+text
		case at < 0:
			writeRow(out, []int{stepWidth, span, truth}, []string{number, s.across(), s.truth()})
			continue
		}
		cells := make([]string, len(widths))
		cells[0], cells[at+1], cells[len(cells)-1] = number, text, s.truth()
		writeRow(out, widths, cells)
	}
	return out.Flush()
}

// share gives columns the widths that they would like, and where that is too much
// the same to all that would like more than that.
func share(wanted []int, room int) []int {
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

func runes(s string) int { return len([]rune(s)) }

// actors are the columns that have a step, in their order; none where only the
// clock moves.
func (f *Finding) actors() []int {
	var cols []int
	for _, s := range f.Steps {
		if s.Column >= 0 && !slices.Contains(cols, s.Column) {
			cols = append(cols, s.Column)
		}
	}
	// Clients were made after the jobs; they read better before them.
	slices.SortFunc(cols, func(a, b int) int { return strings.Compare(columnKey(f.Columns[a]), columnKey(f.Columns[b])) })
	return cols
}

// names are the heads of the columns.
func (f *Finding) names(cols []int) []string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = f.Columns[c]
	}
	return out
}

// isClient tells the names of clients from those of jobs.
func isClient(name string) bool { return len(name) == 1 || strings.HasPrefix(name, "client") }

func columnKey(name string) string {
	if isClient(name) {
		return fmt.Sprintf("0%3d%s", len(name), name) // client26 after Z
	}
	return "1" + name
}

// glue holds words together that a line should not end between.
const glue = "\x00"

// text is a step in one cell.
func (s Step) text() string {
	var parts []string
	if s.Fault != "" {
		parts = append(parts, "!! "+s.Fault)
	}
	switch {
	case strings.HasSuffix(s.Command, ";") && s.Reply != "": // SQL is full of equals signs
		parts = append(parts, s.Command+glue+s.Reply)
	case s.Command != "" && s.Reply != "":
		parts = append(parts, s.Command+" ="+glue+s.Reply)
	case s.Command != "" || s.Reply != "":
		parts = append(parts, s.Command+s.Reply)
	}
	if s.Outcome != "" {
		parts = append(parts, "->"+glue+s.Outcome)
	}
	return strings.Join(parts, " ")
}

// across is a step of nobody who has a column.
func (s Step) across() string { return "** " + s.Actor + ": " + s.text() }

// truth is what is in use after the step, with a mark where that is too much.
func (s Step) truth() string {
	mark := ""
	if s.InUse > s.Limit {
		mark = " !"
	}
	return fmt.Sprintf("%d of %d%s", s.InUse, s.Limit, mark)
}

// writeRow writes one row, wrapping cells over several lines.
func writeRow(out *bufio.Writer, widths []int, cells []string) {
	wrapped := make([][]string, len(cells))
	lines := 1
	for i, c := range cells {
		wrapped[i] = wrap(c, widths[i])
		lines = max(lines, len(wrapped[i]))
	}
	for l := range lines {
		var b strings.Builder
		for i := range cells {
			text := ""
			if l < len(wrapped[i]) {
				text = wrapped[i][l]
			}
			b.WriteString(text)
			b.WriteString(strings.Repeat(" ", max(0, widths[i]-runes(text))+columnGap))
		}
		_, _ = out.WriteString(strings.TrimRight(b.String(), " ") + "\n") // Flush tells
	}
}

// wrap breaks text at blanks, and within words that are wider than a column.
func wrap(text string, width int) []string {
	var lines []string
	line := []rune(nil)
	flush := func() { lines, line = append(lines, strings.ReplaceAll(string(line), glue, " ")), nil }
	for _, word := range strings.Fields(text) {
		r := []rune(word)
		for len(r) > width {
			room := width
			if len(line) > 0 {
				room -= len(line) + 1
			}
			if room < 4 && len(line) > 0 {
				flush()
				continue
			}
			if len(line) > 0 {
				line = append(line, ' ')
			}
			line = append(line, r[:room]...)
			flush()
			r = r[room:]
		}
		if len(line) > 0 && len(line)+1+len(r) > width {
			flush()
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		line = append(line, r...)
	}
	flush()
	return lines
}
