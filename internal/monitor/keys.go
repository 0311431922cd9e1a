package monitor

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// Countable is the store if its keys can be counted while a run goes on, and nil otherwise. A server that others use too
// counts theirs as well.
func Countable(s stores.Store) stores.Counter {
	c, ok := s.(stores.Counter)
	if !ok || !s.Owned() || Follows(s) {
		return nil
	}
	return c
}

// Follows reports whether what a store holds is another one's.
func Follows(s stores.Store) bool {
	f, ok := s.(stores.Follower)
	return ok && f.Follows()
}

// Count counts the keys of all that use a store; none if that is not known.
func Count(ctx context.Context, s stores.Store) (u stores.Usage, err error) {
	c := Countable(s)
	if c == nil {
		return u, nil
	}
	return c.Count(ctx)
}

// Keys are the keys of a pass' stores at its quarters, by the store's name. They are counted on the harness' own
// connection.
type Keys struct{ Over map[string][]results.StoredAt }

// Schedule plans the counts of a pass of that length that starts now. Count gives the strategy's keys in each store that
// can be counted. The returned function ends the counts.
func (k *Keys) Schedule(now func() int64, length time.Duration, count func() map[string]results.StoredAt) (stop func()) {
	k.Over = map[string][]results.StoredAt{}
	begun := now()
	return clock.Aside(func(wait func(time.Duration) bool) {
		for q := range results.Quarters - 1 {
			at := int64(length) / results.Quarters * int64(q+1)
			if !wait(time.Duration(at - now() + begun)) {
				return
			}
			for name, n := range count() {
				n.AtNS = now() - begun
				k.Over[name] = append(k.Over[name], n)
			}
		}
	})
}
