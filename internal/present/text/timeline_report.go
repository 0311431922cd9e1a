package text

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Search writes what was searched, the timeline of every finding, and what
// may be claimed of the rest.
func Search(w io.Writer, page layout.Page, r *results.Search) error {
	out := bufio.NewWriter(w)
	how := "one step per command"
	if r.Split {
		how = "effect and reply are two steps"
	}
	if r.Store != "" {
		how = "one step per statement on " + r.Store
	}
	if r.Passes {
		how += "; time passes between calls"
	}
	writeText(out, page, fmt.Sprintf("%s, %s with a limit of %s; %s on %s: %s; %s",
		r.Strategy, r.Policy, limited(r), count(r.Clients, "client"), count(r.Instances, "instance"), strings.Join(r.Scripts, "; "), how))
	if r.Store == "" {
		text := fmt.Sprintf("%s in %s, at most %s deep; %s met a known state", count(r.States, "state"), count(r.Runs, "run"),
			count(r.Depth, "step"), count(r.Pruned, "run"))
		if r.LeftOut > 0 {
			text += fmt.Sprintf("; %s of independent steps left out", count(r.LeftOut, "order"))
		}
		writeText(out, page, text)
	} else {
		writeText(out, page, fmt.Sprintf("%s in %s, at most %s deep; clients that have not begun are alike", count(r.States, "state"),
			count(r.Runs, "schedule"), count(r.Depth, "step")))
	}
	writeBounded(out, page, r.Bounded)
	if r.Window != "" && len(r.Findings) > 0 {
		writeText(out, page, fmt.Sprintf("found with a limit of %s: this says nothing of the limiter with another policy", limited(r)))
	}
	writeWaits(out, page, &r.ServerFacts)
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintln(out)
		if len(f.Steps) == 0 { // see [results.Finding]
			writeText(out, page, fmt.Sprintf("%s: %s; its schedule could not be run again", strings.ToUpper(string(f.Property)), f.Detail))
			continue
		}
		writeHead(out, page, strings.ToUpper(string(f.Property)),
			fmt.Sprintf(" in %s%s: %s", count(len(f.Steps), "step"), preempted(f), f.Detail))
		// Often one schedule breaks several properties.
		same := slices.IndexFunc(r.Findings[:i], func(g results.Finding) bool { return slices.Equal(g.Steps, f.Steps) })
		if same >= 0 {
			fmt.Fprintf(out, "by the schedule of the %s above\n", r.Findings[same].Property)
		} else if err := Timeline(out, page, f); err != nil {
			return err
		}
		writeOdds(out, page, f)
		writeReplayHint(out, f)
	}
	if err := writeAborts(out, page, r.Aborts); err != nil {
		return err
	}
	if text := r.Allowed(); text != "" {
		fmt.Fprintln(out)
		writeText(out, page, text)
	}
	if r.Claim != "" {
		fmt.Fprintln(out)
		writeText(out, page, r.Claim)
	}
	writeWithheld(out, page, r.Withheld)
	return out.Flush()
}

// limited is the limit, and where that is known the window, in words.
func limited(r *results.Search) string {
	return format.Join(" ", format.Units(r.Limit, r.Unit), r.Window)
}

// writeBounded says what the second part of a search did.
func writeBounded(out *bufio.Writer, page layout.Page, b *results.Bounded) {
	if b == nil {
		return
	}
	extent := b.Extent()
	if b.Capped != "" {
		extent += ", ended by: " + b.Capped
	}
	writeText(out, page, fmt.Sprintf("second part: %s; %s in %s, at most %s deep", extent, count(b.States, "state"), count(b.Runs, "run"),
		count(b.Depth, "step")))
}

// preempted says of a schedule that is not known to be a shortest one how it was found.
func preempted(f *results.Finding) string {
	text := ""
	if f.Preemptions != nil {
		text = " and " + count(*f.Preemptions, "preemption")
	}
	if f.Paused > 0 {
		text += ", in which calls are held up for " + f.HeldUp()
	}
	return text
}

// writeOdds says how often what was found is met.
func writeOdds(out *bufio.Writer, page layout.Page, f *results.Finding) {
	if f.Sampled > 0 {
		writeText(out, page, fmt.Sprintf("met in %s of %s at random (not a probability)", format.Count(int64(f.Met)),
			format.Plural(int64(f.Sampled), "schedule", "schedules")))
	}
	if odds := f.OddsAtRate(); odds != "" {
		writeText(out, page, odds)
	}
}

// Census writes what an enumeration counted, and the shortest schedule that
// leaks.
func Census(w io.Writer, page layout.Page, c *results.Census) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s, %s with a limit of %d\n", c.Strategy, c.Policy, c.Limit)
	writeText(out, page, censusLine(c))
	writeWaits(out, page, &c.ServerFacts)
	if f := c.Shortest; f != nil {
		fmt.Fprintf(out, "\nshortest: %s; worst leak: %s\n", count(len(f.Steps), "step"), count(c.Worst, "unit"))
		if err := Timeline(out, page, f); err != nil {
			return err
		}
		writeOdds(out, page, f)
		writeReplayHint(out, f)
	}
	if err := writeAborts(out, page, c.Aborts); err != nil {
		return err
	}
	writeWithheld(out, page, c.Withheld)
	return out.Flush()
}

// Replay writes how a schedule went when it was run again. known says that its
// timeline stands above, and need not be shown where nothing was different.
func Replay(w io.Writer, page layout.Page, r *results.Replay, known bool) error {
	out := bufio.NewWriter(w)
	how := strings.ToUpper(string(r.Property)) + " again: " + r.Finding.Detail
	if !r.Broken {
		how = fmt.Sprintf("%s NOT broken this time", r.Property)
	}
	writeText(out, page, fmt.Sprintf("%s, %s, repeated on %s: %s", r.Strategy, r.Policy, r.Store, how))
	for _, n := range r.Notes {
		writeText(out, page, "note: "+n)
	}
	if known && r.Same {
		fmt.Fprintln(out, "every step and every reply as above")
	} else if err := Timeline(out, page, r.Finding); err != nil {
		return err
	}
	return out.Flush()
}

// writeReplayHint writes a line to copy, however long.
func writeReplayHint(out *bufio.Writer, f *results.Finding) {
	fmt.Fprintf(out, "replay: quotabench explore --replay %s\n", f.Token)
}

func writeText(out *bufio.Writer, page layout.Page, text string) {
	for _, line := range page.Wrap(text) {
		fmt.Fprintln(out, line)
	}
}

// writeHead writes a text that begins with the name of what is broken.
func writeHead(out *bufio.Writer, page layout.Page, name, text string) {
	for i, line := range page.Wrap(name + text) {
		if i == 0 && strings.HasPrefix(line, name) {
			line = page.Paint(layout.Bad, name) + line[len(name):]
		}
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

// censusLine says what was counted.
func censusLine(c *results.Census) string {
	what := "every schedule"
	if !c.Complete {
		what = "the first schedules"
	}
	share := 0.0
	if c.Schedules > 0 {
		share = 100 * float64(c.Leaking) / float64(c.Schedules)
	}
	return fmt.Sprintf("%s of %d clients: %d, of which %d leak (%.2f %%, not a probability)", what, c.Clients, c.Schedules,
		c.Leaking, share)
}

// writeWithheld says why nothing is claimed.
func writeWithheld(out *bufio.Writer, page layout.Page, reasons []results.Withheld) {
	for i, r := range reasons {
		if i == 0 {
			fmt.Fprintln(out)
		}
		writeHead(out, page, "NOTHING IS CLAIMED", fmt.Sprintf(": %s (%s)", r.Detail, r.Code))
	}
}

// writeWaits says in how many schedules a client waited or was aborted on a server.
func writeWaits(out *bufio.Writer, page layout.Page, s *results.ServerFacts) {
	if s.Store == "" {
		return
	}
	parts := []string{fmt.Sprintf("schedules in which a client waits for another's lock: %d", s.Waited)}
	for _, a := range s.Aborts {
		parts = append(parts, fmt.Sprintf("with a %s: %d", strings.ReplaceAll(string(a.Kind), "-", " "), a.Schedules))
	}
	writeText(out, page, strings.Join(parts, "; "))
}

// writeAborts shows the shortest schedule for each.
func writeAborts(out *bufio.Writer, page layout.Page, list []results.Abort) error {
	for _, a := range list {
		f := a.Shortest
		fmt.Fprintf(out, "\n%s in %s, which breaks no property: %s\n", strings.ToUpper(string(a.Kind)), count(len(f.Steps), "step"), f.Detail)
		if err := Timeline(out, page, f); err != nil {
			return err
		}
		writeReplayHint(out, f)
	}
	return nil
}
