package compare

import (
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// explorations compares two records of searches.
func (c *Comparison) explorations(base, head *results.Exploration, o *Options) {
	searched := map[string]int{}
	counted := map[string]int{}
	for _, h := range head.Searches {
		searched[h.Strategy]++
	}
	for _, h := range head.Searches {
		i := slices.IndexFunc(base.Searches, func(b *results.Search) bool { return asked(b) == asked(h) })
		if i < 0 {
			c.unmatched(h.Strategy, "%s", searchAlone(h.Strategy, base, c.Base))
			continue
		}
		c.Pairs++
		p := &pair{label: h.Strategy}
		if searched[h.Strategy] > 1 {
			p.setting = fmt.Sprintf("%s, limit %d, %d clients", h.Policy, h.Limit, h.Clients)
		}
		c.search(p, base.Searches[i], h, o)
		for _, g := range o.Gates {
			c.add(p, g.search(h))
		}
	}
	for _, h := range head.Censuses {
		counted[h.Strategy]++
		i := slices.IndexFunc(base.Censuses, func(b *results.Census) bool {
			return b.Strategy == h.Strategy && b.Policy == h.Policy && b.Limit == h.Limit && b.Clients == h.Clients && b.Store == h.Store
		})
		if i < 0 {
			c.unmatched(h.Strategy, "%s has no count of all its schedules under %s, limit %d, %d clients", c.Base, h.Policy, h.Limit, h.Clients)
			continue
		}
		c.Pairs++
		c.census(&pair{label: h.Strategy}, base.Censuses[i], h, o)
	}
	for _, b := range base.Searches {
		if searched[b.Strategy] == 0 {
			c.gone(b.Strategy, head)
		}
	}
	for _, b := range base.Censuses {
		if counted[b.Strategy] == 0 {
			c.gone(b.Strategy, head)
		}
	}
	c.replays(base.Replays, head.Replays)
	c.interrupted(base.Interrupted, head.Interrupted, "was interrupted: its last search is not whole")
}

// gone handles a strategy that only the base has. A search that failed passes nothing.
func (c *Comparison) gone(strategy string, head *results.Exploration) {
	for _, f := range head.Failed {
		if f.Strategy == strategy {
			c.Pairs++
			c.invalid(&pair{label: strategy}, "the search of %s failed: %s", c.Head, f.Error)
			return
		}
	}
	c.unmatched(strategy, "%s", searchAlone(strategy, head, c.Head))
}

// asked is all that a search was asked to do.
func asked(s *results.Search) string {
	return fmt.Sprintf("%q %q %d %q %d %d %q %q %d %q %d %t %q %t %d", s.Strategy, s.Policy, s.Limit, s.Unit, s.Clients, s.Instances,
		s.Scripts, s.Faults, s.Times, s.Properties, s.JobRounds, s.Split, s.Store, s.Passes, s.FromNS)
}

// searchAlone says why a search has no counterpart.
func searchAlone(strategy string, other *results.Exploration, name string) string {
	for _, s := range other.Searches {
		if s.Strategy == strategy {
			return "was searched within other bounds, or on another store, in " + name
		}
	}
	for _, s := range other.Skipped {
		if s.Strategy == strategy {
			return fmt.Sprintf("took no part in %s: %s", name, s.Reason)
		}
	}
	for _, f := range other.Failed {
		if f.Strategy == strategy {
			return fmt.Sprintf("failed in %s: %s", name, f.Error)
		}
	}
	return "is not in " + name
}

// search compares what was found within the same bounds.
func (c *Comparison) search(p *pair, base, head *results.Search, o *Options) {
	if len(head.Withheld) > 0 {
		c.invalid(p, "nothing may be claimed of %s: %s (%s)", c.Head, head.Withheld[0].Detail, head.Withheld[0].Code)
	}
	if !head.Tried() {
		c.invalid(p, "nothing was tried in %s: %s", c.Head, head.Capped)
		return
	}
	for _, property := range head.Properties {
		of := "a broken " + string(property)
		b := base.Found(property)
		h := head.Found(property)
		if b != nil && h != nil {
			c.finding(p, b, h, of, o)
			continue
		}
		r := Row{Figure: Counterexamples, Of: of, Unit: "schedules", Kind: Exact, Verdict: Same,
			Base: new(once(b != nil)), Head: new(once(h != nil))}
		switch {
		case h != nil:
			r.Verdict = Worse
			r.Detail = fmt.Sprintf("%s in %s: %s", h.Property, format.Plural(int64(len(h.Steps)), "step", "steps"), h.Detail)
		case b != nil && head.Capped == "":
			r.Verdict = Better
		case b != nil:
			r.Verdict = Inconclusive
			r.Detail = "the search ended before it had seen everything: " + head.Capped
		case head.Capped != "" && base.Capped == "":
			r.Verdict = Inconclusive
			r.Detail = "the search ended before it had seen everything, and that of the base did not: " + head.Capped
		}
		c.add(p, r)
	}
}

// finding compares two shortest schedules: a shorter one is easier to meet.
func (c *Comparison) finding(p *pair, base, head *results.Finding, of string, o *Options) {
	b := float64(len(base.Steps))
	h := float64(len(head.Steps))
	r := Row{Figure: Steps, Of: of, Kind: Exact, Base: &b, Head: &h}
	r.Verdict, r.Detail = o.weigh(Steps, b, b-h)
	if r.Verdict == Worse {
		r.Detail = "a shorter schedule breaks it: " + head.Detail
	}
	c.add(p, r)
	units := func(f *results.Finding) []value {
		return []value{{figure: Units, of: of, v: float64(format.Magnitude(f.Units))}}
	}
	c.values(p, o, both{units(base), units(head)})
}

// census compares two counts of all schedules.
func (c *Comparison) census(p *pair, base, head *results.Census, o *Options) {
	if len(head.Withheld) > 0 {
		c.invalid(p, "nothing may be claimed of %s: %s", c.Head, head.Withheld[0].Detail)
	}
	if !base.Complete || !head.Complete {
		c.unmatched(p.label, "not every schedule was run on both sides")
		return
	}
	of := func(x *results.Census) []value {
		return []value{{figure: Schedules, unit: "schedules", v: float64(x.Leaking)},
			{figure: WorstLeak, of: "all schedules", v: float64(x.Worst)}}
	}
	c.values(p, o, both{of(base), of(head)})
	if base.Shortest != nil && head.Shortest != nil {
		c.finding(p, base.Shortest, head.Shortest, "a leak", o)
	}
}

// replays compares schedules that both sides repeated on a store. They are advisory: what a
// search found decides.
func (c *Comparison) replays(base, head []*results.Replay) {
	for _, h := range head {
		i := slices.IndexFunc(base, func(b *results.Replay) bool { return repeated(b) == repeated(h) })
		if i < 0 {
			continue
		}
		c.Pairs++
		p := &pair{label: h.Strategy}
		for _, x := range []struct {
			figure     string
			base, head bool
		}{
			{BrokenAgain, base[i].Broken, h.Broken},
			{OtherReplies, !base[i].Same, !h.Same},
		} {
			b := once(x.base)
			n := once(x.head)
			r := Row{Figure: x.figure, Of: "a repeated " + string(h.Property), Unit: "schedules", Kind: Exact, Base: &b, Head: &n, Verdict: Same,
				Advisory: true}
			switch {
			case n > b:
				r.Verdict = Worse
				r.Detail = "on " + h.Store
			case n < b:
				r.Verdict = Better
				r.Detail = "on " + h.Store
			}
			c.add(p, r)
		}
	}
}

// repeated is what was repeated, and where.
func repeated(r *results.Replay) string {
	token := ""
	if r.Finding != nil {
		token = r.Finding.Token
	}
	return fmt.Sprintf("%q %q %q %q %q", r.Strategy, r.Policy, r.Property, r.Store, token)
}

func once(so bool) float64 {
	if so {
		return 1
	}
	return 0
}
