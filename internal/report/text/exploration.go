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
func Exploration(w io.Writer, page layout.Page, exploration *results.Exploration) error {
	return write(w, func(section func([]string)) {
		searched := map[string]bool{}
		for i, search := range exploration.Searches {
			searched[search.Strategy] = true
			section(searchLines(page, search, ""))
			if slices.ContainsFunc(exploration.Searches[i+1:], func(later *results.Search) bool {
				return later.Strategy == search.Strategy
			}) {
				continue // replays follow the last of its searches
			}
			for _, replay := range exploration.Replays {
				if replay.Strategy == search.Strategy {
					section(replayLines(page, replay, true))
				}
			}
		}
		for _, census := range exploration.Censuses {
			section(censusLines(page, census))
		}
		for _, replay := range exploration.Replays {
			if !searched[replay.Strategy] {
				section(replayLines(page, replay, false))
			}
		}
		section(adviceLines(page, exploration.Advice))
	})
}

// Search writes what was searched, the timeline of every finding, and what
// may be claimed of the rest. again is what search lacks, since an earlier search found it too.
func Search(w io.Writer, page layout.Page, search *results.Search, again string) error {
	return write(w, func(section func([]string)) { section(searchLines(page, search, again)) })
}

// Timeline writes a finding as a table: a line per step, a column per actor
// with the command and its reply, and the truth after it.
func Timeline(w io.Writer, page layout.Page, finding *results.Finding) error {
	return write(w, func(section func([]string)) { section(timelineLines(page, finding)) })
}

// Census writes what an enumeration counted, and the shortest schedule that
// leaks.
func Census(w io.Writer, page layout.Page, census *results.Census) error {
	return write(w, func(section func([]string)) { section(censusLines(page, census)) })
}

// Replay writes how a schedule went when it was run again. known says that its
// timeline stands above, and need not be shown if nothing was different.
func Replay(w io.Writer, page layout.Page, replay *results.Replay, known bool) error {
	return write(w, func(section func([]string)) { section(replayLines(page, replay, known)) })
}

// SearchFacts say what was searched, a text for each.
func SearchFacts(search *results.Search) []string {
	how := "one step per command"
	alike := "; clients that have not begun are alike"
	if search.Split {
		how = "effect and reply are two steps"
	}
	switch {
	case search.Service != "":
		how += fmt.Sprintf("; each instance is a process of %s, with %s", search.Service, search.Store)
		alike = ""
	case search.Store != "":
		how = "one step per statement on " + search.Store
	}
	if search.Passes {
		how += "; time passes between calls"
	}
	out := []string{fmt.Sprintf("%s, %s with a limit of %s; %s on %s: %s; %s",
		search.Strategy, search.Policy, limited(search), format.Number(search.Clients, "client"),
		format.Number(search.Instances, "instance"),
		strings.Join(search.Scripts, "; "), how)}
	if search.Store == "" {
		text := fmt.Sprintf("%s in %s, at most %s deep; %s met a known state", format.Number(search.States, "state"),
			format.Number(search.Runs, "run"),
			format.Number(search.Depth, "step"), format.Number(search.Pruned, "run"))
		if search.LeftOut > 0 {
			text += fmt.Sprintf("; %s of independent steps left out", format.Number(search.LeftOut, "order"))
		}
		out = append(out, text)
	} else {
		out = append(out, fmt.Sprintf("%s in %s, at most %s deep%s", format.Number(search.States, "state"),
			format.Number(search.Runs, "schedule"), format.Number(search.Depth, "step"), alike))
	}
	if bounded := search.Bounded; bounded != nil {
		extent := bounded.Extent()
		if bounded.Capped != "" {
			extent += ", ended by: " + bounded.Capped
		}
		out = append(out, fmt.Sprintf("second part: %s; %s in %s, at most %s deep", extent,
			format.Number(bounded.States, "state"),
			format.Number(bounded.Runs, "run"), format.Number(bounded.Depth, "step")))
	}
	if search.Window != "" && len(search.Findings) > 0 {
		out = append(out, fmt.Sprintf("found with a limit of %s: this says nothing of the limiter with another policy",
			limited(search)))
	}
	return append(out, waits(&search.ServerFacts)...)
}

// Found lists the properties that broke, each with the length of its schedule.
func Found(search *results.Search, sep string) string {
	return format.List(search.Findings, sep, func(finding results.Finding) string {
		return fmt.Sprintf("%s in %s", finding.Property, format.Number(len(finding.Steps), "step"))
	})
}

// searchAnswer is what a search comes to, in one sentence. again is what an earlier one found too.
func searchAnswer(search *results.Search, again string) string {
	under := ""
	other := ""
	if again != "" {
		other = "other "
		again = "; found again: " + again
	}
	if len(search.Faults) > 0 {
		under = " under faults"
	}
	switch {
	case len(search.Findings) > 0:
		violations := "violations"
		if len(search.Findings) == 1 {
			violations = "violation"
		}
		return fmt.Sprintf("%s: %s found%s: %s%s.", search.Strategy, violations, under, Found(search, ", "), again)
	case !search.Tried():
		return fmt.Sprintf("%s: nothing was tried%s: %s.", search.Strategy, under, search.Capped)
	case search.Claim == "":
		return fmt.Sprintf("%s: nothing %sfound%s, and nothing is claimed%s.", search.Strategy, other, under, again)
	}
	return fmt.Sprintf("%s: no %sviolation found%s, within the bounds below%s.", search.Strategy, other, under, again)
}

func searchLines(page layout.Page, search *results.Search, again string) []string {
	out := paragraphs(page, append([]string{searchAnswer(search, again)}, SearchFacts(search)...)...)
	for i := range search.Findings {
		finding := &search.Findings[i]
		out = append(out, "")
		name := strings.ToUpper(string(finding.Property))
		if len(finding.Steps) == 0 { // see [results.Finding]
			out = append(out, page.Wrap(fmt.Sprintf("%s: %s; its schedule could not be run again", name, finding.Detail))...)
			continue
		}
		out = append(out, page.Headed(layout.Bad, name,
			fmt.Sprintf(" in %s%s: %s", format.Number(len(finding.Steps), "step"), preempted(finding), finding.Detail))...)
		// Often one schedule breaks several properties.
		same := slices.IndexFunc(search.Findings[:i], func(g results.Finding) bool {
			return slices.Equal(g.Steps, finding.Steps)
		})
		if same >= 0 {
			out = append(out, fmt.Sprintf("by the schedule of the %s above", search.Findings[same].Property))
		} else {
			out = append(out, timelineLines(page, finding)...)
		}
		out = append(out, repeatLines(page, finding)...)
	}
	out = append(out, abortLines(page, search.Aborts)...)
	for _, text := range []string{search.Allowed(), search.Claim} {
		if text != "" {
			out = append(append(out, ""), page.Wrap(text)...)
		}
	}
	return append(out, withheldLines(page, search.Withheld)...)
}

// limited is the limit, and the window if that is known, in words.
func limited(search *results.Search) string {
	return format.Join(" ", format.Units(search.Limit, search.Unit), search.Window)
}

// preempted says of a schedule that is not known to be a shortest one how it was found.
func preempted(finding *results.Finding) string {
	text := ""
	if finding.Preemptions != nil {
		text = " and " + format.Number(*finding.Preemptions, "preemption")
	}
	if finding.Paused > 0 {
		text += ", in which calls are held up for " + finding.HeldUp()
	}
	return text
}

// Odds say how often what was found is met.
func Odds(finding *results.Finding) (out []string) {
	if finding.Sampled > 0 {
		out = append(out, "met in "+format.Count(int64(finding.Met))+" of "+format.Number(finding.Sampled, "schedule")+
			" at random (not a probability)")
	}
	if odds := finding.OddsAtRate(); odds != "" {
		out = append(out, odds)
	}
	return out
}

// CensusFacts say what an enumeration counted, a text for each.
func CensusFacts(census *results.Census) []string {
	what := "every schedule"
	if !census.Complete {
		what = "the first schedules"
	}
	counted := fmt.Sprintf("%s of %d clients: %s, of which %s leak (%.2f %%, not a probability)", what, census.Clients,
		format.Count(census.Schedules), format.Count(census.Leaking), results.Percent(census.Leaking, census.Schedules))
	if !census.Tried() {
		counted = fmt.Sprintf("no schedule of %d clients was tried", census.Clients)
	}
	return append([]string{
		fmt.Sprintf("%s, %s with a limit of %d", census.Strategy, census.Policy, census.Limit),
		counted,
	}, waits(&census.ServerFacts)...)
}

func censusLines(page layout.Page, census *results.Census) []string {
	facts := CensusFacts(census)
	out := append(facts[:1:1], paragraphs(page, facts[1:]...)...)
	if finding := census.Shortest; finding != nil {
		out = append(out, "", fmt.Sprintf("shortest: %s; worst leak: %s", format.Number(len(finding.Steps), "step"),
			format.Number(census.Worst, "unit")))
		out = append(append(out, timelineLines(page, finding)...), repeatLines(page, finding)...)
	}
	return append(append(out, abortLines(page, census.Aborts)...), withheldLines(page, census.Withheld)...)
}

// ReplayFacts say how a schedule went when it was run again, a text for each.
func ReplayFacts(replay *results.Replay) []string {
	how := fmt.Sprintf("%s NOT broken this time", replay.Property)
	if replay.Broken {
		how = strings.ToUpper(string(replay.Property)) + " again: " + replay.Finding.Detail
	}
	out := []string{fmt.Sprintf("%s, %s, repeated on %s: %s", replay.Strategy, replay.Policy, replay.Store, how)}
	for _, n := range replay.Notes {
		out = append(out, "note: "+n)
	}
	return out
}

func replayLines(page layout.Page, replay *results.Replay, known bool) []string {
	out := paragraphs(page, ReplayFacts(replay)...)
	if known && replay.Same {
		return append(out, "every step and every reply as above")
	}
	return append(out, timelineLines(page, replay.Finding)...)
}

// repeatLines say how often a schedule is met, and how to repeat it: a line to copy, however long.
func repeatLines(page layout.Page, finding *results.Finding) []string {
	return append(paragraphs(page, Odds(finding)...), "replay: "+finding.Replay())
}

func paragraphs(page layout.Page, texts ...string) (out []string) {
	for _, text := range texts {
		out = append(out, page.Wrap(text)...)
	}
	return out
}

// withheldLines say why nothing is claimed.
func withheldLines(page layout.Page, reasons []results.Withheld) (out []string) {
	for i, withheld := range reasons {
		if i == 0 {
			out = append(out, "")
		}
		why := fmt.Sprintf(": %s (%s)", withheld.Detail, withheld.Code)
		out = append(out, page.Headed(layout.Bad, "NOTHING IS CLAIMED", why)...)
	}
	return out
}

// waits says in how many schedules a client waited or was aborted on a server.
func waits(facts *results.ServerFacts) []string {
	if facts.Store == "" || facts.Service != "" {
		return nil
	}
	parts := []string{"schedules in which a client waits for another's lock: " + format.Count(facts.Waited)}
	for _, abort := range facts.Aborts {
		parts = append(parts, fmt.Sprintf("with a %s: %s", strings.ReplaceAll(string(abort.Kind), "-", " "),
			format.Count(abort.Schedules)))
	}
	return []string{strings.Join(parts, "; ")}
}

// abortLines show the shortest schedule for each.
func abortLines(page layout.Page, list []results.Abort) (out []string) {
	for _, abort := range list {
		finding := abort.Shortest
		out = append(out, "", fmt.Sprintf("%s in %s, which breaks no property: %s", strings.ToUpper(string(abort.Kind)),
			format.Number(len(finding.Steps), "step"), finding.Detail))
		out = append(append(out, timelineLines(page, finding)...), repeatLines(page, finding)...)
	}
	return out
}
