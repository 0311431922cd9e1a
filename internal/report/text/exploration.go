package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Exploration writes the reports of all that was searched, counted and replayed.
// Replays of what a search found follow its report.
func Exploration(w io.Writer, page layout.Page, x *results.Exploration) error {
	return write(w, func(section func([]string)) {
		searched := map[string]bool{}
		for i, s := range x.Searches {
			searched[s.Strategy] = true
			section(searchLines(page, s, ""))
			if slices.ContainsFunc(x.Searches[i+1:], func(later *results.Search) bool { return later.Strategy == s.Strategy }) {
				continue // replays follow the last of its searches
			}
			for _, r := range x.Replays {
				if r.Strategy == s.Strategy {
					section(replayLines(page, r, true))
				}
			}
		}
		for _, c := range x.Censuses {
			section(censusLines(page, c))
		}
		for _, r := range x.Replays {
			if !searched[r.Strategy] {
				section(replayLines(page, r, false))
			}
		}
		section(adviceLines(page, x.Advice))
	})
}

// Search writes what was searched, the timeline of every finding, and what
// may be claimed of the rest. again is what r lacks, since an earlier search found it too.
func Search(w io.Writer, page layout.Page, r *results.Search, again string) error {
	return write(w, func(section func([]string)) { section(searchLines(page, r, again)) })
}

// Timeline writes a finding as a table: a line per step, a column per actor
// with the command and its reply, and the truth after it.
func Timeline(w io.Writer, page layout.Page, f *results.Finding) error {
	return write(w, func(section func([]string)) { section(timelineLines(page, f)) })
}

// Census writes what an enumeration counted, and the shortest schedule that
// leaks.
func Census(w io.Writer, page layout.Page, c *results.Census) error {
	return write(w, func(section func([]string)) { section(censusLines(page, c)) })
}

// Replay writes how a schedule went when it was run again. known says that its
// timeline stands above, and need not be shown if nothing was different.
func Replay(w io.Writer, page layout.Page, r *results.Replay, known bool) error {
	return write(w, func(section func([]string)) { section(replayLines(page, r, known)) })
}

// SearchFacts say what was searched, a text for each.
func SearchFacts(r *results.Search) []string {
	how := "one step per command"
	alike := "; clients that have not begun are alike"
	if r.Split {
		how = "effect and reply are two steps"
	}
	switch {
	case r.Service != "":
		how += fmt.Sprintf("; each instance is a process of %s, with %s", r.Service, r.Store)
		alike = ""
	case r.Store != "":
		how = "one step per statement on " + r.Store
	}
	if r.Passes {
		how += "; time passes between calls"
	}
	out := []string{fmt.Sprintf("%s, %s with a limit of %s; %s on %s: %s; %s",
		r.Strategy, r.Policy, limited(r), format.Number(r.Clients, "client"), format.Number(r.Instances, "instance"),
		strings.Join(r.Scripts, "; "), how)}
	if r.Store == "" {
		text := fmt.Sprintf("%s in %s, at most %s deep; %s met a known state", format.Number(r.States, "state"), format.Number(r.Runs, "run"),
			format.Number(r.Depth, "step"), format.Number(r.Pruned, "run"))
		if r.LeftOut > 0 {
			text += fmt.Sprintf("; %s of independent steps left out", format.Number(r.LeftOut, "order"))
		}
		out = append(out, text)
	} else {
		out = append(out, fmt.Sprintf("%s in %s, at most %s deep%s", format.Number(r.States, "state"),
			format.Number(r.Runs, "schedule"), format.Number(r.Depth, "step"), alike))
	}
	if b := r.Bounded; b != nil {
		extent := b.Extent()
		if b.Capped != "" {
			extent += ", ended by: " + b.Capped
		}
		out = append(out, fmt.Sprintf("second part: %s; %s in %s, at most %s deep", extent, format.Number(b.States, "state"),
			format.Number(b.Runs, "run"), format.Number(b.Depth, "step")))
	}
	if r.Window != "" && len(r.Findings) > 0 {
		out = append(out, fmt.Sprintf("found with a limit of %s: this says nothing of the limiter with another policy", limited(r)))
	}
	return append(out, waits(&r.ServerFacts)...)
}

// Found lists the properties that broke, each with the length of its schedule.
func Found(r *results.Search, sep string) string {
	return format.List(r.Findings, sep, func(f results.Finding) string {
		return fmt.Sprintf("%s in %s", f.Property, format.Number(len(f.Steps), "step"))
	})
}

// searchAnswer is what a search comes to, in one sentence. again is what an earlier one found too.
func searchAnswer(r *results.Search, again string) string {
	under := ""
	other := ""
	if again != "" {
		other = "other "
		again = "; found again: " + again
	}
	if len(r.Faults) > 0 {
		under = " under faults"
	}
	switch {
	case len(r.Findings) > 0:
		violations := "violations"
		if len(r.Findings) == 1 {
			violations = "violation"
		}
		return fmt.Sprintf("%s: %s found%s: %s%s.", r.Strategy, violations, under, Found(r, ", "), again)
	case !r.Tried():
		return fmt.Sprintf("%s: nothing was tried%s: %s.", r.Strategy, under, r.Capped)
	case r.Claim == "":
		return fmt.Sprintf("%s: nothing %sfound%s, and nothing is claimed%s.", r.Strategy, other, under, again)
	}
	return fmt.Sprintf("%s: no %sviolation found%s, within the bounds below%s.", r.Strategy, other, under, again)
}

func searchLines(page layout.Page, r *results.Search, again string) []string {
	out := paragraphs(page, append([]string{searchAnswer(r, again)}, SearchFacts(r)...)...)
	for i := range r.Findings {
		f := &r.Findings[i]
		out = append(out, "")
		name := strings.ToUpper(string(f.Property))
		if len(f.Steps) == 0 { // see [results.Finding]
			out = append(out, page.Wrap(fmt.Sprintf("%s: %s; its schedule could not be run again", name, f.Detail))...)
			continue
		}
		out = append(out, headed(page, name, fmt.Sprintf(" in %s%s: %s", format.Number(len(f.Steps), "step"), preempted(f), f.Detail))...)
		// Often one schedule breaks several properties.
		same := slices.IndexFunc(r.Findings[:i], func(g results.Finding) bool { return slices.Equal(g.Steps, f.Steps) })
		if same >= 0 {
			out = append(out, fmt.Sprintf("by the schedule of the %s above", r.Findings[same].Property))
		} else {
			out = append(out, timelineLines(page, f)...)
		}
		out = append(out, repeatLines(page, f)...)
	}
	out = append(out, abortLines(page, r.Aborts)...)
	for _, text := range []string{r.Allowed(), r.Claim} {
		if text != "" {
			out = append(append(out, ""), page.Wrap(text)...)
		}
	}
	return append(out, withheldLines(page, r.Withheld)...)
}

// limited is the limit, and the window if that is known, in words.
func limited(r *results.Search) string {
	return format.Join(" ", format.Units(r.Limit, r.Unit), r.Window)
}

// preempted says of a schedule that is not known to be a shortest one how it was found.
func preempted(f *results.Finding) string {
	text := ""
	if f.Preemptions != nil {
		text = " and " + format.Number(*f.Preemptions, "preemption")
	}
	if f.Paused > 0 {
		text += ", in which calls are held up for " + f.HeldUp()
	}
	return text
}

// Odds say how often what was found is met.
func Odds(f *results.Finding) (out []string) {
	if f.Sampled > 0 {
		out = append(out, "met in "+format.Count(int64(f.Met))+" of "+format.Number(f.Sampled, "schedule")+" at random (not a probability)")
	}
	if odds := f.OddsAtRate(); odds != "" {
		out = append(out, odds)
	}
	return out
}

// CensusFacts say what an enumeration counted, a text for each.
func CensusFacts(c *results.Census) []string {
	what := "every schedule"
	if !c.Complete {
		what = "the first schedules"
	}
	counted := fmt.Sprintf("%s of %d clients: %s, of which %s leak (%.2f %%, not a probability)", what, c.Clients,
		format.Count(c.Schedules), format.Count(c.Leaking), results.Percent(c.Leaking, c.Schedules))
	if !c.Tried() {
		counted = fmt.Sprintf("no schedule of %d clients was tried", c.Clients)
	}
	return append([]string{
		fmt.Sprintf("%s, %s with a limit of %d", c.Strategy, c.Policy, c.Limit),
		counted,
	}, waits(&c.ServerFacts)...)
}

func censusLines(page layout.Page, c *results.Census) []string {
	facts := CensusFacts(c)
	out := append(facts[:1:1], paragraphs(page, facts[1:]...)...)
	if f := c.Shortest; f != nil {
		out = append(out, "", fmt.Sprintf("shortest: %s; worst leak: %s", format.Number(len(f.Steps), "step"), format.Number(c.Worst, "unit")))
		out = append(append(out, timelineLines(page, f)...), repeatLines(page, f)...)
	}
	return append(append(out, abortLines(page, c.Aborts)...), withheldLines(page, c.Withheld)...)
}

// ReplayFacts say how a schedule went when it was run again, a text for each.
func ReplayFacts(r *results.Replay) []string {
	how := fmt.Sprintf("%s NOT broken this time", r.Property)
	if r.Broken {
		how = strings.ToUpper(string(r.Property)) + " again: " + r.Finding.Detail
	}
	out := []string{fmt.Sprintf("%s, %s, repeated on %s: %s", r.Strategy, r.Policy, r.Store, how)}
	for _, n := range r.Notes {
		out = append(out, "note: "+n)
	}
	return out
}

func replayLines(page layout.Page, r *results.Replay, known bool) []string {
	out := paragraphs(page, ReplayFacts(r)...)
	if known && r.Same {
		return append(out, "every step and every reply as above")
	}
	return append(out, timelineLines(page, r.Finding)...)
}

// repeatLines say how often a schedule is met, and how to repeat it: a line to copy, however long.
func repeatLines(page layout.Page, f *results.Finding) []string {
	return append(paragraphs(page, Odds(f)...), "replay: "+f.Replay())
}

func paragraphs(page layout.Page, texts ...string) (out []string) {
	for _, t := range texts {
		out = append(out, page.Wrap(t)...)
	}
	return out
}

// headed begins with the name of what is broken.
func headed(page layout.Page, name, text string) []string {
	out := page.Wrap(name + text)
	if strings.HasPrefix(out[0], name) {
		out[0] = page.Paint(layout.Bad, name) + out[0][len(name):]
	}
	return out
}

// withheldLines say why nothing is claimed.
func withheldLines(page layout.Page, reasons []results.Withheld) (out []string) {
	for i, r := range reasons {
		if i == 0 {
			out = append(out, "")
		}
		out = append(out, headed(page, "NOTHING IS CLAIMED", fmt.Sprintf(": %s (%s)", r.Detail, r.Code))...)
	}
	return out
}

// waits says in how many schedules a client waited or was aborted on a server.
func waits(s *results.ServerFacts) []string {
	if s.Store == "" || s.Service != "" {
		return nil
	}
	parts := []string{"schedules in which a client waits for another's lock: " + format.Count(s.Waited)}
	for _, a := range s.Aborts {
		parts = append(parts, fmt.Sprintf("with a %s: %s", strings.ReplaceAll(string(a.Kind), "-", " "), format.Count(a.Schedules)))
	}
	return []string{strings.Join(parts, "; ")}
}

// abortLines show the shortest schedule for each.
func abortLines(page layout.Page, list []results.Abort) (out []string) {
	for _, a := range list {
		f := a.Shortest
		out = append(out, "", fmt.Sprintf("%s in %s, which breaks no property: %s", strings.ToUpper(string(a.Kind)),
			format.Number(len(f.Steps), "step"), f.Detail))
		out = append(append(out, timelineLines(page, f)...), repeatLines(page, f)...)
	}
	return out
}
