package compare

import (
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// explorations compares two records of searches.
func (c *Comparison) explorations(base, head *results.Exploration, options *Options) {
	searched := map[string]int{}
	counted := map[string]int{}
	for _, search := range head.Searches {
		searched[search.Strategy]++
	}
	for _, search := range head.Searches {
		i := slices.IndexFunc(base.Searches, func(b *results.Search) bool { return asked(b) == asked(search) })
		if i < 0 {
			c.unmatched(search.Strategy, "%s", searchAlone(search.Strategy, base, c.Base))
			continue
		}
		c.Pairs++
		p := &pair{label: search.Strategy}
		if searched[search.Strategy] > 1 {
			p.setting = fmt.Sprintf("%s, limit %d, %d clients", search.Policy, search.Limit, search.Clients)
		}
		c.search(p, base.Searches[i], search, options)
		for _, gate := range options.Gates {
			c.add(p, gate.search(search))
		}
	}
	for _, census := range head.Censuses {
		counted[census.Strategy]++
		i := slices.IndexFunc(base.Censuses, func(b *results.Census) bool {
			return b.Strategy == census.Strategy && b.Policy == census.Policy && b.Limit == census.Limit &&
				b.Clients == census.Clients && b.Store == census.Store
		})
		if i < 0 {
			c.unmatched(census.Strategy, "%s has no count of all its schedules under %s, limit %d, %d clients", c.Base,
				census.Policy, census.Limit, census.Clients)
			continue
		}
		c.Pairs++
		c.census(&pair{label: census.Strategy}, base.Censuses[i], census, options)
	}
	for _, search := range base.Searches {
		if searched[search.Strategy] == 0 {
			c.gone(search.Strategy, head)
		}
	}
	for _, census := range base.Censuses {
		if counted[census.Strategy] == 0 {
			c.gone(census.Strategy, head)
		}
	}
	c.replays(base.Replays, head.Replays)
	c.interrupted(base.Interrupted, head.Interrupted, "was interrupted: its last search is not whole")
}

// gone handles a strategy that only the base has. A search that failed passes nothing.
func (c *Comparison) gone(strategy string, head *results.Exploration) {
	for _, explore := range head.Failed {
		if explore.Strategy == strategy {
			c.Pairs++
			c.invalid(&pair{label: strategy}, "the search of %s failed: %s", c.Head, explore.Error)
			return
		}
	}
	c.unmatched(strategy, "%s", searchAlone(strategy, head, c.Head))
}

// asked is all that a search was asked to do.
func asked(search *results.Search) string {
	return fmt.Sprintf("%q %q %d %q %d %d %q %q %d %q %d %t %q %t %d %d", search.Strategy, search.Policy, search.Limit,
		search.Unit, search.Clients, search.Instances,
		search.Scripts, search.Faults, search.Times, search.Properties, search.JobRounds, search.Split, search.Store,
		search.Passes, search.FromNS, search.Often(quota.FaultClock))
}

// searchAlone says why a search has no counterpart.
func searchAlone(strategy string, other *results.Exploration, name string) string {
	for _, search := range other.Searches {
		if search.Strategy == strategy {
			return "was searched within other bounds, or on another store, in " + name
		}
	}
	for _, skipped := range other.Skipped {
		if skipped.Strategy == strategy {
			return fmt.Sprintf("took no part in %s: %s", name, skipped.Reason)
		}
	}
	for _, explore := range other.Failed {
		if explore.Strategy == strategy {
			return fmt.Sprintf("failed in %s: %s", name, explore.Error)
		}
	}
	return "is not in " + name
}

// search compares what was found within the same bounds.
func (c *Comparison) search(p *pair, base, head *results.Search, options *Options) {
	if len(head.Withheld) > 0 {
		c.invalid(p, "nothing may be claimed of %s: %s (%s)", c.Head, head.Withheld[0].Detail, head.Withheld[0].Code)
	}
	if !head.Tried() {
		c.invalid(p, "nothing was tried in %s: %s", c.Head, head.Capped)
		return
	}
	for _, property := range head.Properties {
		of := "a broken " + string(property)
		finding := base.Found(property)
		h := head.Found(property)
		if finding != nil && h != nil {
			c.finding(p, finding, h, of, options)
			continue
		}
		row := Row{Figure: Counterexamples, Of: of, Unit: "schedules", Kind: Exact, Verdict: Same,
			Base: new(once(finding != nil)), Head: new(once(h != nil))}
		switch {
		case h != nil:
			c.New = append(c.New, *h)
			row.Verdict = Worse
			row.Detail = fmt.Sprintf("%s in %s: %s", h.Property, format.Plural(int64(len(h.Steps)), "step", "steps"), h.Detail)
		case finding != nil && head.Capped == "":
			row.Verdict = Better
		case finding != nil:
			row.Verdict = Inconclusive
			row.Detail = "the search ended before it had seen everything: " + head.Capped
		case head.Capped != "" && base.Capped == "":
			row.Verdict = Inconclusive
			row.Detail = "the search ended before it had seen everything, and that of the base did not: " + head.Capped
		}
		c.add(p, row)
	}
}

// finding compares two shortest schedules: a shorter one is easier to meet.
func (c *Comparison) finding(p *pair, base, head *results.Finding, of string, options *Options) {
	b := float64(len(base.Steps))
	h := float64(len(head.Steps))
	row := Row{Figure: Steps, Of: of, Kind: Exact, Base: &b, Head: &h}
	row.Verdict, row.Detail = options.weigh(Steps, b, b-h)
	if row.Verdict == Worse {
		row.Detail = "a shorter schedule breaks it: " + head.Detail
	}
	c.add(p, row)
	units := func(finding *results.Finding) []value {
		return []value{{figure: Units, of: of, value: float64(format.Magnitude(finding.Units))}}
	}
	c.values(p, options, both{units(base), units(head)})
}

// census compares two counts of all schedules.
func (c *Comparison) census(p *pair, base, head *results.Census, options *Options) {
	if len(head.Withheld) > 0 {
		c.invalid(p, "nothing may be claimed of %s: %s", c.Head, head.Withheld[0].Detail)
	}
	if !base.Complete || !head.Complete {
		c.unmatched(p.label, "not every schedule was run on both sides")
		return
	}
	of := func(census *results.Census) []value {
		return []value{{figure: Schedules, unit: "schedules", value: float64(census.Leaking)},
			{figure: WorstLeak, of: "all schedules", value: float64(census.Worst)}}
	}
	c.values(p, options, both{of(base), of(head)})
	if base.Shortest != nil && head.Shortest != nil {
		c.finding(p, base.Shortest, head.Shortest, "a leak", options)
	}
}

// replays compares schedules that both sides repeated on a store. They are advisory: what a
// search found decides.
func (c *Comparison) replays(base, head []*results.Replay) {
	for _, replay := range head {
		i := slices.IndexFunc(base, func(b *results.Replay) bool { return repeated(b) == repeated(replay) })
		if i < 0 {
			continue
		}
		c.Pairs++
		p := &pair{label: replay.Strategy}
		for _, x := range []struct {
			figure     string
			base, head bool
		}{
			{BrokenAgain, base[i].Broken, replay.Broken},
			{OtherReplies, !base[i].Same, !replay.Same},
		} {
			b := once(x.base)
			n := once(x.head)
			row := Row{Figure: x.figure, Of: "a repeated " +
				string(replay.Property), Unit: "schedules", Kind: Exact, Base: &b, Head: &n, Verdict: Same,
				Advisory: true}
			switch {
			case n > b:
				row.Verdict = Worse
				row.Detail = "on " + replay.Store
			case n < b:
				row.Verdict = Better
				row.Detail = "on " + replay.Store
			}
			c.add(p, row)
		}
	}
}

// repeated is what was repeated, and where.
func repeated(replay *results.Replay) string {
	token := ""
	if replay.Finding != nil {
		token = replay.Finding.Token
	}
	return fmt.Sprintf("%q %q %q %q %q", replay.Strategy, replay.Policy, replay.Property, replay.Store, token)
}

func once(so bool) float64 {
	if so {
		return 1
	}
	return 0
}
