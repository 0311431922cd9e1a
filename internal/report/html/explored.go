package html

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// exploredView is a search, a census or a replay of one strategy.
type exploredView struct {
	Title     string
	Prose     []*document.Paragraph
	Schedules []*scheduleView
}

// scheduleView is a schedule that was found.
type scheduleView struct {
	*results.Finding
	// Said is what else is known of it: its faults, how often it is met, and the property
	// that the same schedule breaks above.
	Said    []string
	Table   *document.Table
	Drawing *drawingView
	// Harmless schedules break no property.
	Harmless bool
}

// explored shows what was found in the panels, and in one table.
func (v *recordView) explored(exploration *results.Exploration, p *panels) {
	if exploration.Interrupted {
		v.Facts = append(v.Facts, fact{"note", []string{"interrupted: the last search ended before its bounds"}})
	}
	v.skipped(exploration.Skipped)
	for _, explore := range exploration.Failed {
		why := results.Reason{Discards: codes.DiscardsCorrectness, Code: "search-failed", Detail: explore.Error,
			Stack: explore.Stack}
		v.Findings = append(v.Findings, text.Finding{Reason: why, Of: explore.Strategy})
	}
	table := newTable("Schedules explored: the shortest that breaks each property", "strategy", "searched with", "found",
		"search")
	for _, search := range exploration.Searches {
		p.explored(search.Strategy, "Explored with "+searchedWith(search), text.SearchSection(search, ""))
		found := cmp.Or(text.Found(search, "; "), "nothing")
		row := table.Add(search.Strategy, searchedWith(search), found, completeness(search))
		row.Link = p.of(search.Strategy, "").ID
	}
	for _, census := range exploration.Censuses {
		clients := format.Number(census.Clients, "client")
		p.explored(census.Strategy, "Every schedule of "+clients, text.CensusSection(census))
		complete := pick(census.Complete, "complete", "not complete")
		row := table.Add(census.Strategy, clients+", every schedule", leaking(census), complete)
		row.Link = p.of(census.Strategy, "").ID
	}
	for _, replay := range exploration.Replays {
		p.explored(replay.Strategy, "Repeated on "+replay.Store, text.ReplaySection(replay, false))
	}
	for i := range exploration.Advice {
		advice := &exploration.Advice[i]
		said := document.Text(text.AdviceText(advice), advice.Command)
		p.explored(advice.Strategy, "Advice: "+string(advice.Code), said)
	}
	v.Searches = filled(table)
}

func searchedWith(search *results.Search) string {
	return format.Join(", ", format.Number(search.Clients, "client"), format.Number(search.Instances, "instance"),
		faultsText(search))
}

func faultsText(search *results.Search) string {
	if search.Passes {
		return "time passes between calls"
	}
	if len(search.Faults) == 0 {
		return "no fault"
	}
	return "faults " + strings.Join(format.Strings(search.Faults), ", ")
}

// completeness says what may be concluded from a search.
func completeness(search *results.Search) string {
	switch {
	case len(search.Withheld) > 0:
		return "nothing is claimed: " + search.Withheld[0].Detail
	case !search.Tried():
		return "nothing was tried: " + search.Capped
	case search.Capped != "":
		return "not complete: " + search.Capped
	default:
		return "complete"
	}
}

func leaking(census *results.Census) string {
	return fmt.Sprintf("%s of %s %s schedules leak (%s, not a probability)", format.Count(census.Leaking),
		pick(census.Complete, "all", "the first"), format.Count(census.Schedules),
		format.Pct(stat.Percent(census.Leaking, census.Schedules)))
}

func pick(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

// explored adds a part to a strategy's panel.
func (p *panels) explored(strategy, title string, section document.Section) {
	view := &exploredView{Title: title}
	panel := p.of(strategy, "")
	panel.Explored = append(panel.Explored, view)
	for _, block := range section.To(document.Full) {
		switch block := block.(type) {
		case *document.Paragraph:
			view.Prose = append(view.Prose, block)
		case *document.Schedule:
			view.Schedules = append(view.Schedules, p.schedule(block))
		}
	}
}

// schedule is that of a finding. Its drawing, if there is one, follows.
func (p *panels) schedule(schedule *document.Schedule) *scheduleView {
	finding := schedule.Finding
	view := &scheduleView{Finding: finding, Table: stepsTable(finding), Harmless: schedule.Harmless}
	if len(finding.Faults) > 0 {
		view.Said = append(view.Said, "faults: "+strings.Join(format.Strings(finding.Faults), ", "))
	}
	if finding.Paused > 0 {
		view.Said = append(view.Said, "calls held up for "+finding.HeldUp())
	}
	if schedule.Odds != "" {
		view.Said = append(view.Said, schedule.Odds)
	}
	if schedule.Same != "" {
		view.Said = append(view.Said, fmt.Sprintf("by the schedule of the %s above", schedule.Same))
		view.Table = nil
	}
	p.charts[finding] = view
	return view
}

// claimClass is that of what is claimed, and of why nothing is.
func claimClass(paragraph *document.Paragraph) string {
	switch paragraph.Tone {
	case document.Good:
		return "claim"
	case document.Bad:
		return "claim withheld"
	}
	return ""
}

// sentence begins with the name of a block, which a terminal has in capital letters.
func sentence(name string) string {
	if name == "" {
		return ""
	}
	return name[:1] + strings.ToLower(name[1:])
}

// chart puts a drawing to its finding.
func (p *panels) chart(finding *results.Finding, view drawingView) {
	if scheduleView := p.charts[finding]; scheduleView != nil && scheduleView.Table != nil {
		scheduleView.Drawing = &view
	}
}

// stepsTable is a schedule step by step.
func stepsTable(finding *results.Finding) *document.Table {
	t := newTable("Step by step", "step", "who", "what", "told", "#in use", "then stored")
	stored := layout.StoredTexts(finding)
	for i := range finding.Steps {
		step := &finding.Steps[i]
		what := step.Command
		if step.Reply != "" {
			what = strings.TrimSpace(what + " → " + step.Reply)
		}
		what = format.Join(": ", step.Event.Fault(), what)
		if step.At > 0 {
			what += fmt.Sprintf(" (after %s)", step.At.Round(time.Millisecond))
		}
		t.Add(fmt.Sprintf("T%d", step.Number), step.Actor, what, step.Outcome,
			fmt.Sprintf("%d of %d", step.InUse, step.Limit), stored[i])
	}
	return filled(t)
}

// seriesTable has at most seriesRows moments of a series.
func seriesTable(series *results.Series) *document.Table {
	const seriesRows = 25
	t := newTable("Over virtual time", "after", "#requests", "#admitted", "#rejected", "#errors", "#leak, "+
		series.Unit, "#false rejects",
		"#drift, "+series.Unit, "#staleness")
	step := max(1, (len(series.Samples)+seriesRows-1)/seriesRows)
	for i := range series.Samples {
		if i%step != 0 && i != len(series.Samples)-1 {
			continue
		}
		sample := &series.Samples[i]
		drift := "-"
		stale := "-"
		if n := len(sample.Counters); n > 0 {
			var sum, longest int64
			for _, counter := range sample.Counters {
				sum += counter.Drift
				longest = max(longest, counter.StalenessNS)
			}
			drift = format.Signed(sum)
			stale = format.NS(float64(longest))
		}
		t.Add(time.Duration(sample.AtNS).String(), format.Count(sample.Issued), format.Count(sample.Admitted),
			format.Count(sample.Rejected),
			format.Count(sample.Errors), format.Count(sample.Leak),
			format.Count(sample.FalseRejects), drift, stale)
	}
	return t
}
