package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// maxReadings bounds the subjects whose counters are read at rest.
const maxReadings = 500

// drift reads counters at rest: nothing is in flight, and woken jobs have ended.
func (p *pass) drift(events []oracle.Event) error {
	if len(p.d.series.viewers) == 0 || p.sel.Counts == quota.CountsNothing || p.d.history.Overflowed() {
		return nil
	}
	var starts []int
	for i := range events {
		if i == 0 || events[i].Subject != events[i-1].Subject {
			starts = append(starts, i)
		}
	}
	if len(starts) > maxReadings {
		rng := rand.New(rand.NewPCG(p.cfg.Seed, 1))
		rng.Shuffle(len(starts), func(i, j int) { starts[i], starts[j] = starts[j], starts[i] })
		starts = starts[:maxReadings]
	}
	now := p.d.now()
	w := p.d.windowAt(now)
	out := &results.Drift{Tiers: []results.TierDrift{}}
	index := map[string]int{}
	for _, from := range starts {
		n := sort.Search(len(events)-from, func(i int) bool { return events[from+i].Subject > events[from].Subject })
		if err := p.driftOf(events[from:from+n], now, w, out, index); err != nil {
			return err
		}
	}
	for _, t := range out.Tiers {
		if abs(t.Units) >= abs(out.Units) {
			out.Units, out.PctOfLimit, out.PctOfUsage = t.Units, t.PctOfLimit, t.PctOfUsage
		}
	}
	p.run.Drift = out
	return nil
}

func (p *pass) driftOf(events []oracle.Event, now int64, w window, out *results.Drift, index map[string]int) error {
	s := &p.d.truth.subjects[events[0].Subject]
	initial := s.initial
	if p.policy.Window.Kind.Tumbling() {
		if w.index != p.d.truth.first {
			initial = 0
		}
		from := sort.Search(len(events), func(i int) bool { return events[i].Call+p.d.epoch >= w.start })
		if slices.ContainsFunc(events[:from], func(e oracle.Event) bool { return e.Reply+p.d.epoch >= w.start }) {
			return nil
		}
		events = events[from:]
	}
	if p.policy.Window.Kind == quota.Rolling {
		from := sort.Search(len(events), func(i int) bool { return events[i].Reply+p.d.epoch > now-int64(p.policy.Window.RealLength()) })
		events, initial = events[from:], 0
	}
	at := oracle.Reading{Call: now - p.d.epoch + 1, Reply: now - p.d.epoch + 1}
	want, surplus, err := oracle.Expected(events, at, p.sel.Counts, initial)
	if err != nil {
		return err
	}
	for _, v := range p.d.series.viewers {
		got, err := v.Used(context.Background(), s.name, &p.policy)
		if err != nil {
			return fmt.Errorf("read counters: %w", err)
		}
		for _, g := range got {
			name := string(g.Tier)
			if v.region != "" && g.Tier == quota.TierRedis {
				name += " " + v.region
			} else if !v.first {
				continue
			}
			i, ok := index[name]
			if !ok {
				i = len(out.Tiers)
				index[name] = i
				out.Tiers = append(out.Tiers, results.TierDrift{Tier: name, At: "rest"})
			}
			p.addReading(&out.Tiers[i], g, want, surplus)
		}
	}
	return nil
}

func (p *pass) addReading(t *results.TierDrift, g quota.Reading, want, surplus oracle.Interval) {
	t.Readings++
	t.Surplus += surplus.Lo
	drift := want.Distance(g.Units)
	switch {
	case !g.Known:
		t.Unknown++
	case drift != 0:
		t.Drifting++
		t.Total += abs(drift)
		if abs(drift) > abs(t.Units) {
			t.Units, t.Width, t.PctOfUsage = drift, want.Width(), 0
			t.PctOfLimit = 100 * float64(drift) / float64(p.policy.Limit)
			if usage := want.Lo - surplus.Lo; usage > 0 {
				t.PctOfUsage = 100 * float64(drift) / float64(usage)
			}
		}
	}
}
