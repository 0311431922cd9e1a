package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/results"
)

// exploredView is a search, a census or a replay of one strategy.
type exploredView struct {
	Title     string
	Facts     []string
	Schedules []*scheduleView
	Claim     string
	Withheld  []string
}

// scheduleView is a schedule that was found.
type scheduleView struct {
	*results.Finding
	// Said is what else is known of it: its faults, how often it is met, and the property
	// that the same schedule breaks above.
	Said    []string
	Table   *table
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
		why := results.Reason{Discards: results.DiscardsCorrectness, Code: "search-failed", Detail: explore.Error,
			Stack: explore.Stack}
		v.Findings = append(v.Findings, text.Finding{Reason: why, Of: explore.Strategy})
	}
	table := newTable("Schedules explored: the shortest that breaks each property", "strategy", "searched with", "found",
		"search")
	for _, search := range exploration.Searches {
		p.search(search)
		table.Links = append(table.Links, p.of(search.Strategy, "").ID)
		table.Add(search.Strategy, searchedWith(search), cmp.Or(text.Found(search, "; "), "nothing"), completeness(search))
	}
	for _, census := range exploration.Censuses {
		p.census(census)
		table.Links = append(table.Links, p.of(census.Strategy, "").ID)
		table.Add(census.Strategy, format.Number(census.Clients, "client")+
			", every schedule", leaking(census), pick(census.Complete, "complete", "not complete"))
	}
	for _, replay := range exploration.Replays {
		p.replay(replay)
	}
	for i := range exploration.Advice {
		advice := &exploration.Advice[i]
		p.exploredOf(advice.Strategy, "Advice: "+string(advice.Code), []string{text.AdviceText(advice), advice.Command})
	}
	v.Searches = table.orNil()
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
		format.Pct(results.Percent(census.Leaking, census.Schedules)))
}

func pick(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

func (p *panels) search(search *results.Search) {
	view := p.exploredOf(search.Strategy, "Explored with "+searchedWith(search), text.SearchFacts(search))
	view.Claim = search.Claim
	if text := search.Allowed(); text != "" {
		view.Facts = append(view.Facts, "declared: "+text)
	}
	if search.Capped != "" {
		view.Facts = append(view.Facts, "not complete: "+search.Capped)
	}
	for i := range search.Findings {
		finding := &search.Findings[i]
		scheduleView := p.schedule(view, finding)
		same := slices.IndexFunc(search.Findings[:i], func(g results.Finding) bool {
			return len(finding.Steps) > 0 && slices.Equal(g.Steps, finding.Steps)
		})
		if same >= 0 {
			scheduleView.Said = append(scheduleView.Said,
				fmt.Sprintf("by the schedule of the %s above", search.Findings[same].Property))
			scheduleView.Table = nil
		}
	}
	p.rest(view, search.Aborts, search.Withheld)
}

func (p *panels) census(census *results.Census) {
	view := p.exploredOf(census.Strategy, "Every schedule of "+
		format.Plural(int64(census.Clients), "client", "clients"), text.CensusFacts(census))
	view.Facts = append(view.Facts, "worst leak: "+format.Plural(census.Worst, "unit", "units"))
	if census.Shortest != nil {
		p.schedule(view, census.Shortest)
	}
	p.rest(view, census.Aborts, census.Withheld)
}

func (p *panels) replay(replay *results.Replay) {
	view := p.exploredOf(replay.Strategy, "Repeated on "+replay.Store, text.ReplayFacts(replay))
	if replay.Same {
		view.Facts = append(view.Facts, "every step and every reply as when it was searched")
	}
	if replay.Finding != nil {
		p.schedule(view, replay.Finding)
	}
}

// exploredOf adds a part to a strategy's panel.
func (p *panels) exploredOf(strategy, title string, facts []string) *exploredView {
	view := &exploredView{Title: title, Facts: facts}
	panel := p.of(strategy, "")
	panel.Explored = append(panel.Explored, view)
	return view
}

// rest are schedules in which the store ended transactions, and why nothing is claimed.
func (p *panels) rest(view *exploredView, aborts []results.Abort, withheld []results.Withheld) {
	for _, abort := range aborts {
		if abort.Shortest != nil {
			p.schedule(view, abort.Shortest).Harmless = true
		}
	}
	for _, w := range withheld {
		view.Withheld = append(view.Withheld, w.Detail+" ("+w.Code+")")
	}
}

// schedule adds a finding. Its drawing, if there is one, follows.
func (p *panels) schedule(view *exploredView, finding *results.Finding) *scheduleView {
	x := &scheduleView{Finding: finding, Table: stepsTable(finding)}
	if len(finding.Faults) > 0 {
		x.Said = append(x.Said, "faults: "+strings.Join(format.Strings(finding.Faults), ", "))
	}
	if finding.Paused > 0 {
		x.Said = append(x.Said, "calls held up for "+finding.HeldUp())
	}
	x.Said = append(x.Said, text.Odds(finding)...)
	view.Schedules = append(view.Schedules, x)
	p.charts[finding] = x
	return x
}

// chart puts a drawing to its finding.
func (p *panels) chart(finding *results.Finding, view drawingView) {
	if scheduleView := p.charts[finding]; scheduleView != nil && scheduleView.Table != nil {
		scheduleView.Drawing = &view
	}
}

// stepsTable is a schedule step by step.
func stepsTable(finding *results.Finding) *table {
	t := newTable("Step by step", "step", "who", "what", "told", "#in use")
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
			fmt.Sprintf("%d of %d", step.InUse, step.Limit))
	}
	return t.orNil()
}

// seriesTable has at most seriesRows moments of a series.
func seriesTable(series *results.Series) *table {
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
