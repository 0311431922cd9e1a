package harness

import (
	"fmt"
	"math"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/stat"
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
	// saturated is set if a sum is larger than a number can be.
	saturated bool
}

func newDrift(facts *Facts, cfg oracle.Config) *driftFinder {
	finder := &driftFinder{facts: facts, cfg: cfg, limit: cfg.Limit,
		tiers: make([][]results.TierDrift, len(facts.Readings))}
	if n := len(cfg.Changes); n > 0 {
		finder.limit = cfg.Changes[n-1].Limit
	}
	for _, readings := range facts.Readings {
		m := map[uint32][]Reading{}
		for _, reading := range readings.List {
			m[reading.Subject] = append(m[reading.Subject], reading)
		}
		finder.by = append(finder.by, m)
	}
	return finder
}

// subject judges the readings of the subject that the events are about.
func (d *driftFinder) subject(events []oracle.Event) error {
	for pass, by := range d.by {
		for _, reading := range by[events[0].Subject] {
			want, ok, err := oracle.Expect(d.cfg, reading.Subject, events,
				oracle.Reading{Call: reading.Call, Reply: reading.Reply}, d.facts.Selection.Counts)
			if err != nil {
				return fmt.Errorf("hold a counter against the truth: %w", err)
			}
			if ok {
				d.add(pass, reading, want)
			}
		}
	}
	return nil
}

func (d *driftFinder) add(pass int, reading Reading, want oracle.Expectation) {
	none := results.TierDrift{Tier: reading.Tier, At: d.facts.Readings[pass].At,
		SettledNS: d.facts.Readings[pass].SettledNS}
	tierDrift, _ := collect.In(&d.tiers[pass], none, func(drift results.TierDrift) bool {
		return drift.Tier == reading.Tier
	})
	tierDrift.Readings++
	tierDrift.Surplus += want.Surplus.Lo
	if reading.Known {
		d.sum(&tierDrift.Stranded, max(0, want.Held.Distance(reading.Units)))
	}
	drift := want.Units.Distance(reading.Units)
	switch {
	case !reading.Known:
		tierDrift.Unknown++
	case drift != 0:
		tierDrift.Drifting++
		d.sum(&tierDrift.Total, abs(drift))
		d.sum(&tierDrift.Lost, max(0, -drift))
		if abs(drift) > abs(tierDrift.Units) {
			tierDrift.Units, tierDrift.Width, tierDrift.PctOfUsage = drift, want.Units.Width(), 0
			tierDrift.PctOfLimit = 100 * float64(drift) / float64(d.limit)
			if usage := want.Units.Lo - want.Surplus.Lo; usage > 0 {
				tierDrift.PctOfUsage = 100 * float64(drift) / float64(usage)
			}
		}
	}
}

// sum adds to a sum of units.
func (d *driftFinder) sum(total *int64, units int64) {
	*total = stat.Sum(*total, units)
	d.saturated = d.saturated || *total == math.MaxInt64
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
	for _, drift := range out.Tiers {
		if drift.At == AtRest && abs(drift.Units) >= abs(out.Units) {
			out.Units = drift.Units
			out.PctOfLimit = drift.PctOfLimit
			out.PctOfUsage = drift.PctOfUsage
		}
	}
	return out
}

func abs(n int64) int64 { return max(n, -n) }
