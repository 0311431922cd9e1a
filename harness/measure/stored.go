package measure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// counter is a store whose keys can be counted while a run goes on; nil where that is not
// so. A server that others use too counts theirs as well.
func counter(s stores.Store) stores.Counter {
	c, ok := s.(stores.Counter)
	if !ok || !s.Owned() || follows(s) {
		return nil
	}
	return c
}

// follows reports whether what a store holds is another one's.
func follows(s stores.Store) bool {
	f, ok := s.(stores.Follower)
	return ok && f.Follows()
}

// countOthers counts the keys of all that use a store, where that can be told.
func countOthers(ctx context.Context, s stores.Store) (int64, error) {
	c := counter(s)
	if c == nil {
		return 0, nil
	}
	return c.Count(ctx)
}

// census counts the keys of a pass' stores at its quarters: three commands in all, on the
// harness' own connection.
type census struct{ over map[string][]results.StoredAt }

// schedule plans the counts of a pass that starts now. The returned function ends them. A
// pass without a duration has none.
func (c *census) schedule(ctx context.Context, p *pass) (stop func()) {
	length := p.m.cfg.Duration
	if length == 0 || p.m.latencyOnly {
		return func() {}
	}
	c.over = map[string][]results.StoredAt{}
	done, ended := make(chan struct{}), make(chan struct{})
	begun := p.d.tb.nano()
	since := func() int64 { return p.d.tb.nano() - begun }
	go func() {
		defer close(ended)
		for q := range results.Quarters - 1 {
			at := int64(length) / results.Quarters * int64(q+1)
			if !waitOr(time.Duration(at-since()), done) {
				return
			}
			for name, st := range p.s.stores {
				if n, ok := p.count(ctx, name, st); ok {
					c.over[name] = append(c.over[name], results.StoredAt{AtNS: since(), Entries: n})
				}
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// count is how many keys of a store are the strategy's; ok is false where that is not
// known, e.g. in an outage of the server's own.
func (p *pass) count(ctx context.Context, name string, st *siteStore) (n int64, ok bool) {
	s := counter(st.Store)
	if s == nil {
		return 0, false
	}
	n, err := s.Count(ctx)
	if err != nil {
		return 0, false
	}
	return max(0, n-st.others-p.lookouts.marks(name)), true
}

// keep counts what the strategy left in its stores.
func (p *pass) keep(ctx context.Context) error {
	c := &p.run.Cost
	subjects := p.subjects()
	for _, name := range slices.Sorted(maps.Keys(p.s.stores)) {
		st := p.s.stores[name]
		if follows(st.Store) {
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
		over := p.census.over[name]
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
