package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// maxReadings bounds the subjects whose counters are read at rest. Of more, a
// sample drawn from the seed is read.
const maxReadings = 500

// readers is how many counters are read at a time.
const readers = 8

// reading is what one tier believes of one subject, beside what it should.
type reading struct {
	tier    quota.Tier
	known   bool
	drift   int64 // signed distance to the expected interval
	width   int64
	surplus int64
	usage   int64 // units that the subject truly holds
}

// readDrift reads the counters twice: at rest, and after the background jobs
// have run until they are idle.
func (p *pass) readDrift(ctx context.Context, events []oracle.Event) error {
	viewer, ok := p.s.instances[0].(strategies.Viewer)
	if !ok || p.s.sel.Counts == quota.CountsNothing || p.d.history.Overflowed() {
		return nil
	}
	bySubject := groupBySubject(events)
	touched := make([]uint32, 0, len(bySubject))
	for s := range bySubject {
		touched = append(touched, s)
	}
	slices.Sort(touched)
	if len(touched) > maxReadings {
		rng := rand.New(rand.NewPCG(p.m.cfg.Seed, uint64(p.run.Repetition)))
		rng.Shuffle(len(touched), func(i, j int) { touched[i], touched[j] = touched[j], touched[i] })
		touched = touched[:maxReadings]
	}
	drift := &results.Drift{Tiers: []results.TierDrift{}}
	rest, err := p.readAll(ctx, viewer, touched, bySubject)
	if err != nil {
		return err
	}
	drift.Tiers = append(drift.Tiers, p.summarise(rest, "rest", 0)...)
	start := p.d.tb.nano()
	if any, idle := p.s.jobs.settle(ctx); any {
		took := p.d.tb.nano() - start
		if !idle {
			p.run.Audit.Strike("jobs-not-idle", results.StrikesNote, fmt.Sprintf("background jobs still changed something after %s", settleLimit))
		}
		after, err := p.readAll(ctx, viewer, touched, bySubject)
		if err != nil {
			return err
		}
		drift.Tiers = append(drift.Tiers, p.summarise(after, "after-jobs", took)...)
	}
	for _, t := range drift.Tiers {
		if t.At == "rest" && abs(t.Units) >= abs(drift.Units) {
			drift.Units, drift.PctOfLimit, drift.PctOfUsage = t.Units, t.PctOfLimit, t.PctOfUsage
		}
	}
	p.run.Drift = drift
	return nil
}

// readAll reads the given subjects' counters.
func (p *pass) readAll(ctx context.Context, v strategies.Viewer, subjects []uint32, events map[uint32][]oracle.Event) ([]reading, error) {
	out := make([][]reading, len(subjects))
	errs := make([]error, len(subjects))
	var wg sync.WaitGroup
	for w := range readers {
		wg.Go(func() {
			for i := w; i < len(subjects); i += readers {
				out[i], errs[i] = p.read(ctx, v, subjects[i], events[subjects[i]])
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
	}
	return slices.Concat(out...), nil
}

// read asks for one subject's counters, and what they should hold by what
// callers were told. A subject with a request across the boundary of the window
// in force is left out: which window it was charged to is not known.
func (p *pass) read(ctx context.Context, v strategies.Viewer, number uint32, events []oracle.Event) ([]reading, error) {
	d, s := p.d, &p.d.subjects[number]
	call := d.tb.nano()
	got, err := v.Used(ctx, s.name, p.policy)
	if err != nil {
		return nil, err
	}
	reply := d.tb.nano()
	w := d.window(call)
	if reply >= w.end {
		return nil, nil
	}
	initial := int64(0)
	if w.index == d.firstWindow {
		initial = s.initial
	}
	// Events are ordered by call.
	from := sort.Search(len(events), func(i int) bool { return events[i].Call+d.epoch >= w.start })
	for _, e := range events[:from] {
		if e.Reply+d.epoch >= w.start {
			return nil, nil
		}
	}
	at := oracle.Reading{Call: call - d.epoch, Reply: reply - d.epoch}
	want, surplus, err := oracle.Expected(events[from:], at, p.s.sel.Counts, initial)
	if err != nil {
		return nil, err
	}
	out := make([]reading, len(got))
	for i, g := range got {
		out[i] = reading{
			tier: g.Tier, known: g.Known, drift: want.Distance(g.Units),
			width: want.Width(), surplus: surplus.Lo, usage: want.Lo - surplus.Lo,
		}
	}
	return out, nil
}

// groupBySubject cuts a history, ordered by subject, into its subjects' parts.
func groupBySubject(events []oracle.Event) map[uint32][]oracle.Event {
	out := map[uint32][]oracle.Event{}
	for i := 0; i < len(events); {
		j := i + 1
		for j < len(events) && events[j].Subject == events[i].Subject {
			j++
		}
		out[events[i].Subject] = events[i:j:j]
		i = j
	}
	return out
}

// summarise condenses readings per tier.
func (p *pass) summarise(all []reading, at string, settled int64) []results.TierDrift {
	var out []results.TierDrift
	index := map[quota.Tier]int{}
	for _, r := range all {
		i, ok := index[r.tier]
		if !ok {
			i = len(out)
			index[r.tier] = i
			out = append(out, results.TierDrift{Tier: string(r.tier), At: at, SettledNS: settled})
		}
		t := &out[i]
		t.Readings++
		t.Surplus += r.surplus
		if !r.known {
			t.Unknown++
			continue
		}
		if r.drift == 0 {
			continue
		}
		t.Drifting++
		t.Total += abs(r.drift)
		if abs(r.drift) > abs(t.Units) {
			t.Units, t.Width = r.drift, r.width
			t.PctOfLimit = 100 * float64(r.drift) / float64(p.policy.Limit)
			t.PctOfUsage = 0
			if r.usage > 0 {
				t.PctOfUsage = 100 * float64(r.drift) / float64(r.usage)
			}
		}
	}
	return out
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
