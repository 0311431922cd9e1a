package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Exploration writes the reports of all that was searched, counted and replayed.
// Replays of what a search found follow its report.
func Exploration(w io.Writer, page layout.Page, exploration *results.Exploration) error {
	return page.Write(w, explored(exploration))
}

func explored(exploration *results.Exploration) (doc document.Document) {
	searched := map[string]bool{}
	for i, search := range exploration.Searches {
		searched[search.Strategy] = true
		doc.Section(SearchSection(search, "")...)
		if slices.ContainsFunc(exploration.Searches[i+1:], func(later *results.Search) bool {
			return later.Strategy == search.Strategy
		}) {
			continue // replays follow the last of its searches
		}
		for _, replay := range exploration.Replays {
			if replay.Strategy == search.Strategy {
				doc.Section(ReplaySection(replay, true)...)
			}
		}
	}
	for _, census := range exploration.Censuses {
		doc.Section(CensusSection(census)...)
	}
	for _, replay := range exploration.Replays {
		if !searched[replay.Strategy] {
			doc.Section(ReplaySection(replay, false)...)
		}
	}
	doc.Section(untried(exploration)...)
	doc.Section(commandAdvice(exploration.Advice)...)
	return doc
}

// Search writes what was searched, the timeline of every finding, and what
// may be claimed of the rest. again is what search lacks, since an earlier search found it too.
func Search(w io.Writer, page layout.Page, search *results.Search, again string) error {
	return page.Write(w, document.Document{SearchSection(search, again)})
}

// Timeline writes a finding as a table: a line per step, a column per actor
// with the command and its reply, and the truth after it.
func Timeline(w io.Writer, page layout.Page, finding *results.Finding) error {
	return page.Write(w, document.Document{{&document.Schedule{Finding: finding}}})
}

// Census writes what an enumeration counted, and the shortest schedule that
// leaks.
func Census(w io.Writer, page layout.Page, census *results.Census) error {
	return page.Write(w, document.Document{CensusSection(census)})
}

// Replay writes how a schedule went when it was run again. known says that its
// timeline stands above, and need not be shown if nothing was different.
func Replay(w io.Writer, page layout.Page, replay *results.Replay, known bool) error {
	return page.Write(w, document.Document{ReplaySection(replay, known)})
}

// searchFacts say what was searched, a text for each.
func searchFacts(search *results.Search) []string {
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
	return out
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
	return search.Strategy + ": " + passed(search, other) + again + "."
}

// passed says in one line in which schedules nothing was found. The record has all conditions.
func passed(search *results.Search, other string) string {
	callers := format.Number(search.Clients, "caller")
	if search.Instances < search.Clients {
		callers += " on " + format.Number(search.Instances, "instance")
	}
	if len(search.Faults) > 0 {
		callers += " with " + format.List(search.Faults, ", ", func(fault quota.Fault) string {
			return fmt.Sprintf("%d x %s", search.Often(fault), fault)
		})
	}
	if search.Service != "" && search.Used > 0 {
		callers += " after " + format.Number(search.Used, "request")
	}
	switch {
	case search.OtherSubjects > 0:
		callers += fmt.Sprintf(" around the requests of %s other subjects", format.Count(search.OtherSubjects))
	case slices.ContainsFunc(search.Scripts, func(script string) bool { return strings.Contains(script, "@") }):
		callers += " for two subjects"
	}
	if search.Passes {
		callers += ", time passing between calls"
	}
	if search.Clock != "" {
		callers += ", all clocks standing at one instant"
	}
	of := ""
	if search.Window != "" {
		of = " under " + limited(search)
	}
	if search.Capped != "" {
		tried := format.Number(search.Runs+search.LeftOut, "schedule")
		return fmt.Sprintf("no %sviolation found in %s of %s%s; the search did not end (%s)", other, tried, callers, of,
			search.Capped)
	}
	which := ""
	if len(search.Held) <= fewProperties {
		which = surrounded(" (", strings.Join(format.Strings(search.Held), ", "), ")")
	}
	return fmt.Sprintf("PASS%s: no %sviolation in any order of %s%s", which, other, callers, of)
}

// fewProperties are named where nothing breaks one of them; more are all that there are.
const fewProperties = 5

// Untried lists what the searches have left out, for a terminal; nothing if every one found a violation.
func Untried(w io.Writer, page layout.Page, exploration *results.Exploration) error {
	return page.Write(w, document.Document{untried(exploration)})
}

func untried(exploration *results.Exploration) document.Section {
	passed := slices.ContainsFunc(exploration.Searches, func(search *results.Search) bool {
		return len(search.Findings) == 0 && search.Claim != ""
	})
	if !passed {
		return nil
	}
	more := "more callers (--clients)"
	crowded := slices.ContainsFunc(exploration.Searches, func(search *results.Search) bool {
		return search.OtherSubjects >= thousands
	})
	if exploration.Searches[0].Service != "" && !crowded {
		more += ", thousands of subjects"
	}
	if exploration.Searches[0].ClockGoes {
		more += ", time (the clock of PostgreSQL goes on)"
	}
	if unwindowed(exploration.Searches) {
		more += ", a TTL that is too short and leaks while a window ends (--policy '10 requests per first-request 1m')"
	}
	if len(exploration.Untried) == 0 {
		return document.Section{brief("Not tried: " + more)}
	}
	faults := strings.Join(format.Strings(exploration.Untried), ", ")
	return document.Section{brief("Not tried: " + faults + " (--faults all), " + more)}
}

// unwindowed reports whether a service was searched, and no search of it knows its window.
func unwindowed(searches []*results.Search) bool {
	ofService := false
	for _, search := range searches {
		if search.Service == "" || search.ClockGoes || search.Passes && slices.Contains(search.Properties, "ttl") {
			return false
		}
		ofService = true
	}
	return ofService
}

// SearchSection is what was searched, every finding, and what may be claimed of the rest. again is what the search
// lacks, since an earlier search found it too.
func SearchSection(search *results.Search, again string) document.Section {
	out := document.Section{brief(searchAnswer(search, again))}
	clean := len(search.Findings) == 0 && search.Claim != ""
	for i, fact := range searchFacts(search) {
		shown := &document.Paragraph{Text: fact}
		if clean || i > 0 {
			shown.Only = document.Full
		}
		out = append(out, shown)
	}
	if search.Window != "" && len(search.Findings) > 0 {
		note := "found with a limit of " + limited(search) + ": this says nothing of the limiter with another policy"
		out = append(out, &document.Paragraph{Text: note})
	}
	out = append(out, document.Text(waits(&search.ServerFacts)...)...)
	allowed := search.Allowed()
	out = append(out, full("declared: ", allowed)...)
	out = append(out, full("not complete: ", search.Capped)...)
	for i := range search.Findings {
		out = append(out, found(search, i))
	}
	out = append(out, aborts(search.Aborts)...)
	if allowed != "" {
		out = append(out, gap, brief(allowed))
	}
	if search.Claim != "" {
		out = append(out, &document.Paragraph{Text: search.Claim, Tone: document.Good, Only: document.Full})
	}
	return append(out, withheld(search.Withheld)...)
}

// found is the finding of a search at a place in its list. Often one schedule breaks several properties.
func found(search *results.Search, i int) *document.Schedule {
	finding := &search.Findings[i]
	schedule := scheduleOf(finding)
	name := strings.ToUpper(string(finding.Property))
	if len(finding.Steps) == 0 { // see [results.Finding]
		text := fmt.Sprintf("%s: %s; its schedule could not be run again", name, finding.Detail)
		schedule.Title = &document.Paragraph{Text: text}
		return schedule
	}
	text := fmt.Sprintf(" in %s%s: %s", format.Number(len(finding.Steps), "step"), preempted(finding), finding.Detail)
	schedule.Title = headed(name, text)
	same := slices.IndexFunc(search.Findings[:i], func(g results.Finding) bool {
		return slices.EqualFunc(g.Steps, finding.Steps, results.Step.Equal)
	})
	if same >= 0 {
		schedule.Same = search.Findings[same].Property
	}
	return schedule
}

// scheduleOf has no title yet.
func scheduleOf(finding *results.Finding) *document.Schedule {
	schedule := &document.Schedule{Finding: finding}
	if finding.Sampled > 0 {
		met := format.Count(int64(finding.Met)) + " of " + format.Number(finding.Sampled, "schedule")
		schedule.Odds = "met in " + met + " at random (not a probability)"
	}
	return schedule
}

// gap is an empty line within a section.
var gap = &document.Paragraph{Whole: true, Only: document.Brief}

// brief is a paragraph for a terminal alone.
func brief(text string) *document.Paragraph {
	return &document.Paragraph{Text: text, Only: document.Brief}
}

// full is a paragraph that a terminal has in other words; none if there is no text.
func full(before, text string) document.Section {
	if text == "" {
		return nil
	}
	return document.Section{&document.Paragraph{Text: before + text, Only: document.Full}}
}

// line is a text that is never broken.
func line(text string) *document.Paragraph { return &document.Paragraph{Text: text, Whole: true} }

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

// censusFacts say what an enumeration counted, a text for each.
func censusFacts(census *results.Census) []string {
	what := "every schedule"
	if !census.Complete {
		what = "the first schedules"
	}
	counted := fmt.Sprintf("%s of %d clients: %s, of which %s leak (%.2f %%, not a probability)", what, census.Clients,
		format.Count(census.Schedules), format.Count(census.Leaking), stat.Percent(census.Leaking, census.Schedules))
	if !census.Tried() {
		counted = fmt.Sprintf("no schedule of %d clients was tried", census.Clients)
	}
	return append([]string{
		fmt.Sprintf("%s, %s with a limit of %d", census.Strategy, census.Policy, census.Limit),
		counted,
	}, waits(&census.ServerFacts)...)
}

// CensusSection is what an enumeration counted, and the shortest schedule that leaks.
func CensusSection(census *results.Census) document.Section {
	facts := censusFacts(census)
	out := append(document.Section{line(facts[0])}, document.Text(facts[1:]...)...)
	worst := format.Number(census.Worst, "unit")
	out = append(out, full("worst leak: ", worst)...)
	if finding := census.Shortest; finding != nil {
		title := line(fmt.Sprintf("shortest: %s; worst leak: %s", format.Number(len(finding.Steps), "step"), worst))
		schedule := scheduleOf(finding)
		schedule.Title = title
		out = append(out, schedule)
	}
	return append(append(out, aborts(census.Aborts)...), withheld(census.Withheld)...)
}

// replayFacts say how a schedule went when it was run again, a text for each.
func replayFacts(replay *results.Replay) []string {
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

// ReplaySection is how a schedule went when it was run again. known says that its timeline stands above, and need not
// be shown if nothing was different.
func ReplaySection(replay *results.Replay, known bool) document.Section {
	out := document.Text(replayFacts(replay)...)
	if known && replay.Same {
		return append(out, line("every step and every reply as above"))
	}
	if replay.Same {
		out = append(out, full("", "every step and every reply as when it was searched")...)
	}
	if replay.Finding != nil {
		out = append(out, scheduleOf(replay.Finding))
	}
	return out
}

// headed begins with the name of what is broken.
func headed(name, text string) *document.Paragraph {
	return &document.Paragraph{Lead: name, Tone: document.Bad, Text: text}
}

// withheld says why nothing is claimed.
func withheld(reasons []results.Withheld) (out document.Section) {
	for i, reason := range reasons {
		if i == 0 {
			out = append(out, gap)
		}
		out = append(out, headed("NOTHING IS CLAIMED", fmt.Sprintf(": %s (%s)", reason.Detail, reason.Code)))
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

// aborts show the shortest schedule for each.
func aborts(list []results.Abort) (out document.Section) {
	for _, abort := range list {
		finding := abort.Shortest
		if finding == nil {
			continue
		}
		schedule := scheduleOf(finding)
		schedule.Harmless = true
		schedule.Title = line(fmt.Sprintf("%s in %s, which breaks no property: %s", strings.ToUpper(string(abort.Kind)),
			format.Number(len(finding.Steps), "step"), finding.Detail))
		out = append(out, schedule)
	}
	return out
}
