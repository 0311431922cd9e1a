package measure

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// countKeys counts the strategy's keys in all stores if that can be done.
func (p *pass) countKeys(ctx context.Context) map[string]results.StoredAt {
	keys := map[string]results.StoredAt{}
	for name, st := range p.s.stores {
		// In an outage of the server's own nothing is known.
		if c := monitor.Countable(st.Store); c != nil {
			if n, err := c.Count(ctx); err == nil {
				marks := p.stores.Marks(name) // which never expire
				keys[name] = results.StoredAt{Entries: max(0, n.Keys-st.others.Keys-marks),
					WithoutTTL: max(0, n.WithoutTTL-st.others.WithoutTTL-marks), Bytes: max(0, n.Bytes-st.others.Bytes)}
			}
		}
	}
	return keys
}

// keep counts what the strategy left in its stores.
func (p *pass) keep(ctx context.Context) error {
	c := &p.run.Cost
	subjects := p.subjects()
	for _, name := range slices.Sorted(maps.Keys(p.s.stores)) {
		st := p.s.stores[name]
		if monitor.Follows(st.Store) {
			continue // its primary's
		}
		u, err := st.Usage(ctx, p.s.scope)
		if err != nil {
			return fmt.Errorf("count keys: %w", err)
		}
		c.KeysAtEnd += u.Keys
		c.KeysWithoutTTL += u.WithoutTTL
		if p.m.latencyOnly {
			continue
		}
		over := p.keys.Over[name]
		if len(over) < results.Quarters-1 {
			over = nil // the run ended early
		}
		p.run.Stored = append(p.run.Stored, results.NewStored(name, subjects, u.Keys+u.Rows, u.Bytes, over))
	}
	return nil
}

// subjects is how many the strategy was asked about, in the warm-up and in the pass, or
// that were set up.
func (p *pass) subjects() (n int64) {
	if _, setUp := p.s.Instances[0].(strategies.Provisioner); setUp {
		return warmSubjects + int64(p.d.subjects.n)
	}
	for _, s := range p.d.subjects.all() {
		if s.initial != 0 || s.touched() {
			n++
		}
	}
	return p.warmed + n
}
