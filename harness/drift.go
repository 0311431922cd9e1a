package harness

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// driftFinder checks readings against what callers were told, one subject after
// the other.
type driftFinder struct {
	facts *Facts
	cfg   oracle.Config
	limit int64 // in force when counters are read
	// by holds the readings of each pass by subject.
	by    []map[uint32][]Reading
	tiers [][]results.TierDrift
}

func newDrift(f *Facts, cfg oracle.Config) *driftFinder {
	d := &driftFinder{facts: f, cfg: cfg, limit: cfg.Limit, tiers: make([][]results.TierDrift, len(f.Readings))}
	if n := len(cfg.Changes); n > 0 {
		d.limit = cfg.Changes[n-1].Limit
	}
	for _, r := range f.Readings {
		m := map[uint32][]Reading{}
		for _, x := range r.List {
			m[x.Subject] = append(m[x.Subject], x)
		}
		d.by = append(d.by, m)
	}
	return d
}

// subject judges the readings of the subject that the events are about.
func (d *driftFinder) subject(events []oracle.Event) error {
	for pass, by := range d.by {
		for _, r := range by[events[0].Subject] {
			want, ok, err := oracle.Expect(d.cfg, r.Subject, events, oracle.Reading{Call: r.Call, Reply: r.Reply}, d.facts.Selection.Counts)
			if err != nil {
				return fmt.Errorf("hold a counter against the truth: %w", err)
			}
			if ok {
				d.add(pass, r, want)
			}
		}
	}
	return nil
}

func (d *driftFinder) add(pass int, r Reading, want oracle.Expectation) {
	none := results.TierDrift{Tier: r.Tier, At: d.facts.Readings[pass].At, SettledNS: d.facts.Readings[pass].SettledNS}
	t, _ := collect.In(&d.tiers[pass], none, func(t results.TierDrift) bool { return t.Tier == r.Tier })
	t.Readings++
	t.Surplus += want.Surplus.Lo
	if r.Known {
		t.Stranded += max(0, r.Units-want.Held.Hi)
	}
	drift := want.Units.Distance(r.Units)
	switch {
	case !r.Known:
		t.Unknown++
	case drift != 0:
		t.Drifting++
		t.Total += abs(drift)
		t.Lost += max(0, -drift)
		if abs(drift) > abs(t.Units) {
			t.Units, t.Width, t.PctOfUsage = drift, want.Units.Width(), 0
			t.PctOfLimit = 100 * float64(drift) / float64(d.limit)
			if usage := want.Units.Lo - want.Surplus.Lo; usage > 0 {
				t.PctOfUsage = 100 * float64(drift) / float64(usage)
			}
		}
	}
}

// result is nil if nothing was read.
func (d *driftFinder) result() *results.Drift {
	if len(d.by) == 0 {
		return nil
	}
	out := &results.Drift{Tiers: []results.TierDrift{}}
	for _, list := range d.tiers {
		out.Tiers = append(out.Tiers, list...)
	}
	for _, t := range out.Tiers {
		if t.At == AtRest && abs(t.Units) >= abs(out.Units) {
			out.Units = t.Units
			out.PctOfLimit = t.PctOfLimit
			out.PctOfUsage = t.PctOfUsage
		}
	}
	return out
}

func abs(n int64) int64 { return max(n, -n) }
