package explore

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteReport writes what was searched, the timeline of every finding, and what
// may be claimed of the rest.
func WriteReport(w io.Writer, r *Result) error {
	out := bufio.NewWriter(w)
	how := "one step per command"
	if r.Split {
		how = "effect and reply are two steps"
	}
	if r.Store != "" {
		how = "one step per statement on " + r.Store
	}
	writeText(out, fmt.Sprintf("%s, %s with a limit of %d %s; %s on %s: %s; %s",
		r.Strategy, r.Policy, r.Limit, r.Unit, plural(r.Clients, "client"), plural(r.Instances, "instance"), strings.Join(r.Scripts, "; "), how))
	if r.Store == "" {
		writeText(out, fmt.Sprintf("%d states in %d runs, at most %d steps deep; %d runs met a known state", r.States, r.Runs, r.Depth, r.Pruned))
	} else {
		writeText(out, fmt.Sprintf("%d states in %d schedules, at most %d steps deep; clients that have not begun are alike", r.States, r.Runs, r.Depth))
	}
	writeHappenings(out, &r.OnServer)
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintln(out)
		writeText(out, fmt.Sprintf("%s in %d steps: %s", strings.ToUpper(string(f.Property)), len(f.Steps), f.Detail))
		// Often one schedule breaks several properties.
		same := slices.IndexFunc(r.Findings[:i], func(g Finding) bool { return slices.Equal(g.Steps, f.Steps) })
		if same >= 0 {
			fmt.Fprintf(out, "by the schedule of the %s above\n", r.Findings[same].Property)
		} else if err := WriteTimeline(out, f); err != nil {
			return err
		}
		writeReplayHint(out, f)
	}
	if err := writeHappened(out, r.Happenings); err != nil {
		return err
	}
	if claim := r.Claim(); claim != "" {
		fmt.Fprintln(out)
		writeText(out, claim)
	}
	return out.Flush()
}

// WriteCensus writes what an enumeration counted, and the shortest schedule that
// leaks.
func WriteCensus(w io.Writer, c *Census) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s, %s with a limit of %d\n", c.Strategy, c.Policy, c.Limit)
	writeText(out, c.String())
	writeHappenings(out, &c.OnServer)
	if f := c.Shortest; f != nil {
		fmt.Fprintf(out, "\nshortest: %d steps; worst leak: %d units\n", len(f.Steps), c.Worst)
		if err := WriteTimeline(out, f); err != nil {
			return err
		}
		writeReplayHint(out, f)
	}
	if err := writeHappened(out, c.Happenings); err != nil {
		return err
	}
	return out.Flush()
}

// WriteReplay writes how a schedule went when it was run again. known says that its
// timeline stands above, and need not be shown where nothing was different.
func WriteReplay(w io.Writer, r *Replayed, known bool) error {
	out := bufio.NewWriter(w)
	how := strings.ToUpper(string(r.Property)) + " again: " + r.Finding.Detail
	if !r.Broken {
		how = fmt.Sprintf("%s NOT broken this time", r.Property)
	}
	writeText(out, fmt.Sprintf("%s, %s, repeated on %s: %s", r.Strategy, r.Policy, r.Store, how))
	for _, n := range r.Notes {
		writeText(out, "note: "+n)
	}
	if known && r.Same {
		fmt.Fprintln(out, "every step and every reply as above")
	} else if err := WriteTimeline(out, r.Finding); err != nil {
		return err
	}
	return out.Flush()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// writeReplayHint writes a line to copy, however long.
func writeReplayHint(out *bufio.Writer, f *Finding) {
	fmt.Fprintf(out, "replay: quotabench explore --replay %s\n", f.Token)
}

func writeText(out *bufio.Writer, text string) {
	for _, line := range wrap(text, timelineWidth) {
		fmt.Fprintln(out, line)
	}
}
