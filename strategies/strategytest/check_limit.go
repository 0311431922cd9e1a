package strategytest

import (
	"testing"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// checkLimit: clauses that tolerate another limit in mid-run hold when it is lowered
// below what is used, and raised.
func checkLimit(tb testing.TB, m *strategies.Meta, stores Stores) {
	f := open(tb, m, stores, 1)
	for _, policy := range representative(m, stores) {
		if policy.Window.Kind == quota.Bucket {
			continue // its size cannot change
		}
		b := f.book(withLimit(policy, 8))
		s := b.subject(0)
		for _, limit := range []int64{8, 4, 10, 5} {
			b.setLimit(s, limit)
			b.exhaust(s, 6)
		}
		b.hold(quota.FaultLimit)
	}
}

// setLimit gives the subject another limit, as an operator would.
func (b *book) setLimit(s subject, limit int64) {
	b.Helper()
	if limit == b.policy.Limit {
		return
	}
	c := oracle.LimitChange{From: clock.Nano() - b.epoch, Limit: limit}
	next := *b.policy
	next.Limit = limit
	for _, in := range b.instances {
		l, ok := in.(strategies.LimitSetter)
		if !ok {
			continue
		}
		if err := l.SetLimit(b.ctx(), &next, []quota.Subject{s.name}); err != nil {
			b.Fatalf("setting the limit of %q to %d: %v", s.name, limit, err)
		}
		break
	}
	c.To = clock.Nano() - b.epoch
	b.policy, b.changes = &next, append(b.changes, c)
}
