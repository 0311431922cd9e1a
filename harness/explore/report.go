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
		r.Strategy, r.Policy, r.Limit, r.Unit, count(r.Clients, "client"), count(r.Instances, "instance"), strings.Join(r.Scripts, "; "), how))
	if r.Store == "" {
		writeText(out, fmt.Sprintf("%s in %s, at most %s deep; %s met a known state", count(r.States, "state"), count(r.Runs, "run"), count(r.Depth, "step"), count(r.Pruned, "run")))
	} else {
		writeText(out, fmt.Sprintf("%s in %s, at most %s deep; clients that have not begun are alike", count(r.States, "state"), count(r.Runs, "schedule"), count(r.Depth, "step")))
	}
	writeHappenings(out, &r.OnServer)
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintln(out)
		writeText(out, fmt.Sprintf("%s in %s: %s", strings.ToUpper(string(f.Property)), count(len(f.Steps), "step"), f.Detail))
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
		fmt.Fprintf(out, "\nshortest: %s; worst leak: %s\n", count(len(f.Steps), "step"), count(c.Worst, "unit"))
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

// writeReplayHint writes a line to copy, however long.
func writeReplayHint(out *bufio.Writer, f *Finding) {
	fmt.Fprintf(out, "replay: quotabench explore --replay %s\n", f.Token)
}

func writeText(out *bufio.Writer, text string) {
	for _, line := range wrap(text, timelineWidth) {
		fmt.Fprintln(out, line)
	}
}

// count is a number of things, e.g. "1 step" or "2 steps".
func count[N int | int64](n N, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
