package html

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// exploredView is a search, a census or a replay of one strategy.
type exploredView struct {
	Title     string
	Facts     []fact
	Schedules []*scheduleView
	Claim     string
	Withheld  []string
}

// scheduleView is a schedule that was found.
type scheduleView struct {
	ID, Property, Detail string
	Faults               string
	Steps                int
	// Same is the property that the same schedule breaks, which stands above; empty for
	// none.
	Same  string
	Table *table
	Token string
	// Odds is how often the property was broken by schedules at random, AtRate how often in a
	// simulation, and Paused for how long calls are held up; empty where there is nothing to
	// say.
	Odds, AtRate, Paused string
	Drawing              *drawingView
	// Harmless schedules break no property.
	Harmless bool
}

// explored shows what was found in the panels, and in one table.
func (v *recordView) explored(x *results.Exploration, p *panels) {
	if p.charts == nil {
		p.charts = map[*results.Finding]*scheduleView{}
	}
	if x.Interrupted {
		v.Facts = append(v.Facts, fact{"note", []string{"interrupted: the last search ended before its bounds"}})
	}
	v.skipped(x.Skipped)
	for _, f := range x.Failed {
		v.Findings = append(v.Findings, findingView{Strikes: results.StrikesCorrectness, What: "search failed", Code: "explore",
			Detail: f.Error, Of: f.Strategy, Stack: f.Stack})
	}
	t := newTable("Schedules explored: the shortest that breaks each property", "strategy", "searched with", "found", "search")
	for _, s := range x.Searches {
		p.search(s)
		t.Links = append(t.Links, p.of(s.Strategy, "").ID)
		t.add(s.Strategy, searchedWith(s), strings.Join(foundIn(s), "; "), completeness(s))
	}
	for _, c := range x.Censuses {
		p.census(c)
		t.Links = append(t.Links, p.of(c.Strategy, "").ID)
		t.add(c.Strategy, fmt.Sprintf("%s, every schedule", format.Plural(int64(c.Clients), "client", "clients")), leaking(c),
			pick(c.Complete, "complete", "not complete"))
	}
	for _, r := range x.Replays {
		p.replay(r)
	}
	v.Searches = t.orNil()
}

func searchedWith(s *results.Search) string {
	return format.Join(", ", format.Plural(int64(s.Clients), "client", "clients"),
		format.Plural(int64(s.Instances), "instance", "instances"), faultsText(s))
}

func faultsText(s *results.Search) string {
	if s.Passes {
		return "time passes between calls"
	}
	if len(s.Faults) == 0 {
		return "no fault"
	}
	return "faults " + joined(s.Faults)
}

func foundIn(s *results.Search) (out []string) {
	for i := range s.Findings {
		f := &s.Findings[i]
		out = append(out, fmt.Sprintf("%s in %s", f.Property, format.Plural(int64(len(f.Steps)), "step", "steps")))
	}
	if len(out) == 0 {
		return []string{"nothing"}
	}
	return out
}

// completeness says what may be concluded from a search.
func completeness(s *results.Search) string {
	switch {
	case len(s.Withheld) > 0:
		return "nothing is claimed: " + s.Withheld[0].Detail
	case s.Capped != "":
		return "not complete: " + s.Capped
	default:
		return "complete"
	}
}

func leaking(c *results.Census) string {
	return fmt.Sprintf("%s of %s %s schedules leak (%s, not a probability)", format.Count(c.Leaking),
		pick(c.Complete, "all", "the first"), format.Count(c.Schedules),
		format.Pct(results.Percent(c.Leaking, c.Schedules)))
}

func pick(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

func (p *panels) search(s *results.Search) {
	v := &exploredView{Title: "Explored with " + searchedWith(s), Claim: s.Claim}
	add := func(name string, values ...string) { v.Facts = append(v.Facts, fact{name, values}) }
	add("policy", fmt.Sprintf("%s with a limit of %s", s.Policy, format.Join(" ", format.Units(s.Limit, s.Unit), s.Window)))
	add("clients do", s.Scripts...)
	if s.Store != "" {
		add("store", s.Store)
	}
	add("seen", fmt.Sprintf("%s in %s, at most %s deep", format.Plural(int64(s.States), "state", "states"),
		format.Plural(s.Runs, "run", "runs"), format.Plural(int64(s.Depth), "step", "steps")))
	if s.Capped != "" {
		add("not complete", s.Capped)
	}
	if b := s.Bounded; b != nil {
		add("second part", fmt.Sprintf("%s: %s in %s, at most %s deep", b.Extent(), format.Plural(int64(b.States), "state", "states"),
			format.Plural(b.Runs, "run", "runs"), format.Plural(int64(b.Depth), "step", "steps")))
	}
	if text := s.Allowed(); text != "" {
		add("declared", text)
	}
	for i := range s.Findings {
		f := &s.Findings[i]
		x := p.schedule(v, f)
		if same := slices.IndexFunc(s.Findings[:i], func(g results.Finding) bool {
			return len(f.Steps) > 0 &&
				slices.Equal(g.Steps, f.Steps)
		}); same >= 0 {
			x.Same, x.Table = string(s.Findings[same].Property), nil
		}
	}
	p.aborts(v, s.Aborts)
	for _, w := range s.Withheld {
		v.Withheld = append(v.Withheld, w.Detail+" ("+w.Code+")")
	}
	panel := p.of(s.Strategy, "")
	panel.Explored = append(panel.Explored, v)
}

func (p *panels) census(c *results.Census) {
	v := &exploredView{Title: "Every schedule of " + format.Plural(int64(c.Clients), "client", "clients")}
	v.Facts = append(v.Facts, fact{"policy", []string{fmt.Sprintf("%s with a limit of %d", c.Policy, c.Limit)}},
		fact{"counted", []string{leaking(c)}},
		fact{"worst leak", []string{format.Plural(c.Worst, "unit", "units")}})
	if c.Shortest != nil {
		p.schedule(v, c.Shortest)
	}
	p.aborts(v, c.Aborts)
	for _, w := range c.Withheld {
		v.Withheld = append(v.Withheld, w.Detail+" ("+w.Code+")")
	}
	panel := p.of(c.Strategy, "")
	panel.Explored = append(panel.Explored, v)
}

func (p *panels) replay(r *results.Replay) {
	how := "broken again"
	if !r.Broken {
		how = "not broken this time"
	}
	v := &exploredView{Title: fmt.Sprintf("Repeated on %s: %s %s", r.Store, r.Property, how)}
	for _, n := range r.Notes {
		v.Facts = append(v.Facts, fact{"note", []string{n}})
	}
	if r.Same {
		v.Facts = append(v.Facts, fact{"replies", []string{"every step and every reply as when it was searched"}})
	}
	if r.Finding != nil {
		p.schedule(v, r.Finding)
	}
	panel := p.of(r.Strategy, "")
	panel.Explored = append(panel.Explored, v)
}

// aborts are schedules in which the store ended transactions.
func (p *panels) aborts(v *exploredView, all []results.Abort) {
	for _, a := range all {
		if a.Shortest != nil {
			p.schedule(v, a.Shortest).Harmless = true
		}
	}
}

// schedule adds a finding. Its drawing, where there is one, follows.
func (p *panels) schedule(v *exploredView, f *results.Finding) *scheduleView {
	x := &scheduleView{Property: string(f.Property), Detail: f.Detail, Steps: len(f.Steps), Token: f.Token, Table: stepsTable(f),
		AtRate: f.OddsAtRate()}
	if f.Sampled > 0 {
		x.Odds = fmt.Sprintf("in %s of %s at random (not a probability)", format.Count(int64(f.Met)),
			format.Plural(int64(f.Sampled), "schedule", "schedules"))
	}
	if f.Paused > 0 {
		x.Paused = f.HeldUp()
	}
	if len(f.Faults) > 0 {
		x.Faults = joined(f.Faults)
	}
	v.Schedules = append(v.Schedules, x)
	p.charts[f] = x
	return x
}

// chart puts a drawing to its finding.
func (p *panels) chart(f *results.Finding, d drawingView) {
	if x := p.charts[f]; x != nil && x.Same == "" {
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
		if s.Event.Injected() {
			what = format.Join(": ", strings.ReplaceAll(string(s.Event), "-", " "), what)
		}
		if s.At > 0 {
			what += fmt.Sprintf(" (after %s)", s.At.Round(time.Millisecond))
		}
		t.add(fmt.Sprintf("T%d", s.Number), s.Actor, what, s.Outcome, fmt.Sprintf("%d of %d", s.InUse, s.Limit))
	}
	return t.orNil()
}

// joined names things that are texts.
func joined[T ~string](all []T) string {
	parts := make([]string, len(all))
	for i, x := range all {
		parts[i] = string(x)
	}
	return strings.Join(parts, ", ")
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
		drift, stale := "-", "-"
		if n := len(x.Counters); n > 0 {
			var sum, longest int64
			for _, c := range x.Counters {
				sum += c.Drift
				longest = max(longest, c.StalenessNS)
			}
			drift, stale = format.Signed(sum), format.NS(float64(longest))
		}
		t.add(time.Duration(x.AtNS).String(), format.Count(x.Issued), format.Count(x.Admitted), format.Count(x.Rejected),
			format.Count(x.Errors), format.Count(x.Leak),
			format.Count(x.FalseRejects), drift, stale)
	}
	return t
}
