package compare

import (
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/results"
)

// staleness compares how old what counters said was at the worst, if both sides have
// the series of a simulated run. It is advisory: no clause bounds it.
func (c *Comparison) staleness(p *pair, base, head []results.Series, o *Options) {
	if p.setting != "" {
		return // a series tells strategies apart, and no settings
	}
	of := func(all []results.Series) (out []value) {
		i := slices.IndexFunc(all, func(s results.Series) bool { return s.Strategy == p.label })
		if i < 0 || len(all[i].Samples) == 0 {
			return nil
		}
		for k, counter := range all[i].Counters {
			worst := int64(0)
			for _, x := range all[i].Samples {
				if k < len(x.Counters) {
					worst = max(worst, x.Counters[k].StalenessNS)
				}
			}
			out = append(out, value{figure: Staleness, of: counter, unit: "ms", v: float64(worst) / 1e6, advisory: true})
		}
		return out
	}
	c.values(p, o, both{of(base), of(head)})
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
			b, n := once(x.base), once(x.head)
			r := Row{Figure: x.figure, Of: "a repeated " + string(h.Property), Unit: "schedules", Kind: Exact, Base: &b, Head: &n, Verdict: Same,
				Advisory: true}
			switch {
			case n > b:
				r.Verdict, r.Detail = Worse, "on "+h.Store
			case n < b:
				r.Verdict, r.Detail = Better, "on "+h.Store
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
