package explore

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Width of a timeline in characters, and the narrowest column that reads well.
const (
	timelineWidth = 120
	leastColumn   = 14
)

// WriteTimeline writes a finding as a table: a line per step, a column per actor
// with the command and its reply, and the truth after it.
func WriteTimeline(w io.Writer, f *Finding) error {
	out := bufio.NewWriter(w)
	cols := f.actors()
	const stepWidth, truthWidth = 4, 12
	names := append([]string{"step"}, make([]string, 0, len(cols)+1)...)
	widths := []int{stepWidth}
	room := timelineWidth - stepWidth - truthWidth - 2*(len(cols)+1)
	each := max(room/max(len(cols), 1), leastColumn)
	for _, c := range cols {
		names = append(names, f.Columns[c])
		widths = append(widths, each)
	}
	narrow := len(cols)*(leastColumn+2)+stepWidth+truthWidth+2 > timelineWidth
	if narrow { // too many actors for a column each: one for all, with names
		names, widths = []string{"step", "who does what"}, []int{stepWidth, timelineWidth - stepWidth - truthWidth - 4}
	}
	names, widths = append(names, "in use"), append(widths, truthWidth)
	writeRow(out, widths, names)
	rules := make([]string, len(widths))
	for i, n := range widths {
		rules[i] = strings.Repeat("-", n)
	}
	writeRow(out, widths, rules)
	for _, s := range f.Steps {
		cells := make([]string, len(widths))
		cells[0] = fmt.Sprintf("T%d", s.Number)
		at := slices.Index(cols, s.Column)
		text := s.text()
		switch {
		case narrow:
			at, text = 0, s.Actor+": "+text
		case at < 0: // clock, store or instance: wherever there is room
			at, text = 0, "** "+s.Actor+": "+text
		}
		if at+1 < len(cells)-1 || narrow {
			cells[at+1] = text
		}
		cells[len(cells)-1] = fmt.Sprintf("%d of %d", s.InUse, s.Limit)
		if s.InUse > s.Limit {
			cells[len(cells)-1] += " !"
		}
		writeRow(out, widths, cells)
	}
	return out.Flush()
}

// actors are the columns that have a step, in their order; one where only the
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

func columnKey(name string) string {
	if len(name) == 1 || strings.HasPrefix(name, "client") {
		return "0" + name
	}
	return "1" + name
}

// text is a step in one cell.
func (s Step) text() string {
	var parts []string
	if s.Fault != "" {
		parts = append(parts, "!! "+s.Fault)
	}
	switch {
	case s.Command != "" && s.Reply != "":
		parts = append(parts, s.Command+" = "+s.Reply)
	case s.Command != "" || s.Reply != "":
		parts = append(parts, s.Command+s.Reply)
	}
	if s.Outcome != "" {
		parts = append(parts, "-> "+s.Outcome)
	}
	return strings.Join(parts, " ")
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
			b.WriteString(strings.Repeat(" ", max(0, widths[i]-len([]rune(text)))+2))
		}
		_, _ = out.WriteString(strings.TrimRight(b.String(), " ") + "\n") // Flush tells
	}
}

// wrap breaks text at blanks, and within words that are wider than a column.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for len([]rune(word)) > width {
			r := []rune(word)
			room := width
			if line != "" {
				room = width - len([]rune(line)) - 1
			}
			if room < 4 && line != "" {
				lines, line = append(lines, line), ""
				continue
			}
			if line != "" {
				line += " "
			}
			lines, line = append(lines, line+string(r[:room])), ""
			word = string(r[room:])
		}
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// WriteReport writes what was searched, the timeline of every finding, and what
// may be claimed of the rest.
func WriteReport(w io.Writer, r *Result) error {
	out := bufio.NewWriter(w)
	how := "one step per command"
	if r.Split {
		how = "effect and reply are two steps"
	}
	fmt.Fprintf(out, "%s, %s with a limit of %d %s; %d clients on %d instances: %s; %s\n",
		r.Strategy, r.Policy, r.Limit, r.Unit, r.Clients, r.Instances, strings.Join(r.Scripts, "; "), how)
	fmt.Fprintf(out, "%d states in %d runs, at most %d steps deep; %d runs met a known state\n", r.States, r.Runs, r.Depth, r.Pruned)
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintf(out, "\n%s in %d steps: %s\n", strings.ToUpper(string(f.Property)), len(f.Steps), f.Detail)
		if err := WriteTimeline(out, f); err != nil {
			return err
		}
		fmt.Fprintf(out, "replay: quotabench explore --replay %s\n", f.Token)
	}
	if claim := r.Claim(); claim != "" {
		fmt.Fprintln(out)
		for _, line := range wrap(claim, timelineWidth) {
			fmt.Fprintln(out, line)
		}
	}
	return out.Flush()
}
