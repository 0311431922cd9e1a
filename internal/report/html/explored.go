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
func (v *recordView) explored(x *results.Exploration, p *panels) {
	if x.Interrupted {
		v.Facts = append(v.Facts, fact{"note", []string{"interrupted: the last search ended before its bounds"}})
	}
	v.skipped(x.Skipped)
	for _, f := range x.Failed {
		why := results.Reason{Discards: results.DiscardsCorrectness, Code: "search-failed", Detail: f.Error, Stack: f.Stack}
		v.Findings = append(v.Findings, text.Finding{Reason: why, Of: f.Strategy})
	}
	t := newTable("Schedules explored: the shortest that breaks each property", "strategy", "searched with", "found", "search")
	for _, s := range x.Searches {
		p.search(s)
		t.Links = append(t.Links, p.of(s.Strategy, "").ID)
		t.Add(s.Strategy, searchedWith(s), cmp.Or(text.Found(s, "; "), "nothing"), completeness(s))
	}
	for _, c := range x.Censuses {
		p.census(c)
		t.Links = append(t.Links, p.of(c.Strategy, "").ID)
		t.Add(c.Strategy, format.Number(c.Clients, "client")+", every schedule", leaking(c), pick(c.Complete, "complete", "not complete"))
	}
	for _, r := range x.Replays {
		p.replay(r)
	}
	for i := range x.Advice {
		a := &x.Advice[i]
		p.exploredOf(a.Strategy, "Advice: "+string(a.Code), []string{text.AdviceText(a), a.Command})
	}
	v.Searches = t.orNil()
}

func searchedWith(s *results.Search) string {
	return format.Join(", ", format.Number(s.Clients, "client"), format.Number(s.Instances, "instance"), faultsText(s))
}

func faultsText(s *results.Search) string {
	if s.Passes {
		return "time passes between calls"
	}
	if len(s.Faults) == 0 {
		return "no fault"
	}
	return "faults " + strings.Join(format.Strings(s.Faults), ", ")
}

// completeness says what may be concluded from a search.
func completeness(s *results.Search) string {
	switch {
	case len(s.Withheld) > 0:
		return "nothing is claimed: " + s.Withheld[0].Detail
	case !s.Tried():
		return "nothing was tried: " + s.Capped
	case s.Capped != "":
		return "not complete: " + s.Capped
	default:
		return "complete"
	}
}

func leaking(c *results.Census) string {
	return fmt.Sprintf("%s of %s %s schedules leak (%s, not a probability)", format.Count(c.Leaking),
		pick(c.Complete, "all", "the first"), format.Count(c.Schedules), format.Pct(results.Percent(c.Leaking, c.Schedules)))
}

func pick(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

func (p *panels) search(s *results.Search) {
	v := p.exploredOf(s.Strategy, "Explored with "+searchedWith(s), text.SearchFacts(s))
	v.Claim = s.Claim
	if text := s.Allowed(); text != "" {
		v.Facts = append(v.Facts, "declared: "+text)
	}
	if s.Capped != "" {
		v.Facts = append(v.Facts, "not complete: "+s.Capped)
	}
	for i := range s.Findings {
		f := &s.Findings[i]
		x := p.schedule(v, f)
		same := slices.IndexFunc(s.Findings[:i], func(g results.Finding) bool { return len(f.Steps) > 0 && slices.Equal(g.Steps, f.Steps) })
		if same >= 0 {
			x.Said = append(x.Said, fmt.Sprintf("by the schedule of the %s above", s.Findings[same].Property))
			x.Table = nil
		}
	}
	p.rest(v, s.Aborts, s.Withheld)
}

func (p *panels) census(c *results.Census) {
	v := p.exploredOf(c.Strategy, "Every schedule of "+format.Plural(int64(c.Clients), "client", "clients"), text.CensusFacts(c))
	v.Facts = append(v.Facts, "worst leak: "+format.Plural(c.Worst, "unit", "units"))
	if c.Shortest != nil {
		p.schedule(v, c.Shortest)
	}
	p.rest(v, c.Aborts, c.Withheld)
}

func (p *panels) replay(r *results.Replay) {
	v := p.exploredOf(r.Strategy, "Repeated on "+r.Store, text.ReplayFacts(r))
	if r.Same {
		v.Facts = append(v.Facts, "every step and every reply as when it was searched")
	}
	if r.Finding != nil {
		p.schedule(v, r.Finding)
	}
}

// exploredOf adds a part to a strategy's panel.
func (p *panels) exploredOf(strategy, title string, facts []string) *exploredView {
	v := &exploredView{Title: title, Facts: facts}
	panel := p.of(strategy, "")
	panel.Explored = append(panel.Explored, v)
	return v
}

// rest are schedules in which the store ended transactions, and why nothing is claimed.
func (p *panels) rest(v *exploredView, aborts []results.Abort, withheld []results.Withheld) {
	for _, a := range aborts {
		if a.Shortest != nil {
			p.schedule(v, a.Shortest).Harmless = true
		}
	}
	for _, w := range withheld {
		v.Withheld = append(v.Withheld, w.Detail+" ("+w.Code+")")
	}
}

// schedule adds a finding. Its drawing, if there is one, follows.
func (p *panels) schedule(v *exploredView, f *results.Finding) *scheduleView {
	x := &scheduleView{Finding: f, Table: stepsTable(f)}
	if len(f.Faults) > 0 {
		x.Said = append(x.Said, "faults: "+strings.Join(format.Strings(f.Faults), ", "))
	}
	if f.Paused > 0 {
		x.Said = append(x.Said, "calls held up for "+f.HeldUp())
	}
	x.Said = append(x.Said, text.Odds(f)...)
	v.Schedules = append(v.Schedules, x)
	p.charts[f] = x
	return x
}

// chart puts a drawing to its finding.
func (p *panels) chart(f *results.Finding, d drawingView) {
	if x := p.charts[f]; x != nil && x.Table != nil {
		x.Drawing = &d
	}
}

// stepsTable is a schedule step by step.
func stepsTable(f *results.Finding) *table {
	t := newTable("Step by step", "step", "who", "what", "told", "#in use")
	for i := range f.Steps {
		s := &f.Steps[i]
		what := s.Command
		if s.Reply != "" {
			what = strings.TrimSpace(what + " → " + s.Reply)
		}
		what = format.Join(": ", s.Event.Fault(), what)
		if s.At > 0 {
			what += fmt.Sprintf(" (after %s)", s.At.Round(time.Millisecond))
		}
		t.Add(fmt.Sprintf("T%d", s.Number), s.Actor, what, s.Outcome, fmt.Sprintf("%d of %d", s.InUse, s.Limit))
	}
	return t.orNil()
}

// seriesTable has at most seriesRows moments of a series.
func seriesTable(s *results.Series) *table {
	const seriesRows = 25
	t := newTable("Over virtual time", "after", "#requests", "#admitted", "#rejected", "#errors", "#leak, "+s.Unit, "#false rejects",
		"#drift, "+s.Unit, "#staleness")
	step := max(1, (len(s.Samples)+seriesRows-1)/seriesRows)
	for i := range s.Samples {
		if i%step != 0 && i != len(s.Samples)-1 {
			continue
		}
		x := &s.Samples[i]
		drift := "-"
		stale := "-"
		if n := len(x.Counters); n > 0 {
			var sum, longest int64
			for _, c := range x.Counters {
				sum += c.Drift
				longest = max(longest, c.StalenessNS)
			}
			drift = format.Signed(sum)
			stale = format.NS(float64(longest))
		}
		t.Add(time.Duration(x.AtNS).String(), format.Count(x.Issued), format.Count(x.Admitted), format.Count(x.Rejected),
			format.Count(x.Errors), format.Count(x.Leak),
			format.Count(x.FalseRejects), drift, stale)
	}
	return t
}
