package strategytest

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// refunder is a book of one instance that can refund, over a standing policy
// if one is served.
func refunder(tb testing.TB, m *strategies.Meta, stores Stores, limit int64) *book {
	tb.Helper()
	p := standingFirst(tb, m, stores)
	// What the Meta says is enough to skip: the check of the Meta checks it against
	// an instance.
	if !m.GivesBack {
		tb.Skip("does not refund")
	}
	return open(tb, m, stores, 1).book(withLimit(p, limit))
}

// checkRefund: what is refunded can be had again, once.
func checkRefund(tb testing.TB, m *strategies.Meta, stores Stores) {
	b := refunder(tb, m, stores, 6)
	s := b.subject(0)
	_, held := b.exhaust(s, 2*b.policy.Limit)
	if len(held) == 0 {
		tb.Skip("admits nothing that could be refunded")
	}
	for i, r := range held[:min(3, len(held))] {
		if err := b.refund(s, r, r.Request.Units); err != nil {
			tb.Fatalf("refund %d: %v", i, err)
		}
		d := b.take(s, 1)
		again := b.take(s, 1)
		if !d.Admitted && b.least(2*b.policy.Limit) > 0 {
			tb.Errorf("refund %d: a unit was given back, and the next request for one is rejected", i)
		}
		if again.Admitted && b.exactly(2*b.policy.Limit, 1) {
			tb.Errorf("refund %d: one unit was given back, and two were admitted", i)
		}
	}

	if !m.ServesUnits(b.policy, 4) {
		b.hold()
		return
	}
	// Several units at once, from an otherwise empty account.
	s = b.subject(0)
	if d := b.take(s, 4); d.Admitted {
		if err := b.refund(s, d.Reservation, 4); err != nil {
			tb.Fatal(err)
		}
		admitted, _ := b.exhaust(s, 2*b.policy.Limit)
		b.within("after a refund of everything", admitted, 2*b.policy.Limit)
	}
	b.hold()
}

// checkDoubleRefund: a leak clause that tolerates repeated commands must also
// hold if a refund is repeated.
func checkDoubleRefund(tb testing.TB, m *strategies.Meta, stores Stores) {
	p := standingFirst(tb, m, stores)
	promised := slices.ContainsFunc(m.Guarantee, func(c quota.Clause) bool {
		return c.Property == quota.PropertyLeak && c.Applies(p.Window.Kind) &&
			slices.Contains(c.Tolerates, quota.FaultRetry)
	})
	if !promised {
		tb.Skip("no leak clause tolerates a repeated command")
	}
	b := refunder(tb, m, stores, 6)
	s := b.subject(0)
	_, held := b.exhaust(s, b.policy.Limit)
	if len(held) == 0 {
		tb.Skip("admits nothing that could be refunded")
	}
	if err := b.refund(s, held[0], held[0].Request.Units); err != nil {
		tb.Fatal(err)
	}
	// Callers hold nothing that a second refund could give back. Whether it is an
	// error is the strategy's business.
	err := b.refund(s, held[0], 0)
	tb.Logf("the second refund of one request returned: %v", err)
	b.exhaust(s, 2*b.policy.Limit)
	b.hold()
}

// checkCommit: what is committed (as much as was reserved, less or more) stays
// in use until it is refunded at its actual size.
func checkCommit(tb testing.TB, m *strategies.Meta, stores Stores) {
	b := refunder(tb, m, stores, 9)
	if _, ok := b.instances[0].(strategies.Committer); !ok {
		tb.Skip("does not commit")
	}
	for _, actual := range []int64{3, 1, 5} {
		s := b.subject(0)
		d := b.take(s, 3)
		if !d.Admitted {
			continue
		}
		if err := b.commit(s, d.Reservation, actual); err != nil {
			tb.Fatalf("committing %d of 3 units: %v", actual, err)
		}
		b.exhaust(s, 2*b.policy.Limit)
		if err := b.refund(s, d.Reservation, actual); err != nil {
			tb.Fatalf("refunding %d committed units: %v", actual, err)
		}
		if admitted, _ := b.exhaust(s, 2*b.policy.Limit); admitted == 0 && b.least(2*b.policy.Limit) > 0 {
			tb.Errorf("%d committed units were given back, and nothing is admitted", actual)
		}
	}
	b.hold()
}

// checkUsed: what the strategy shows is what it counts. It is held to that if it
// declares to be exact; otherwise the difference is drift, which is measured.
func checkUsed(tb testing.TB, m *strategies.Meta, stores Stores) {
	f := open(tb, m, stores, 1)
	viewer, ok := f.instances[0].(strategies.Viewer)
	if !ok {
		tb.Skip("shows no counts")
	}
	if m.Counts == quota.CountsNothing {
		tb.Error("counts nothing, and yet shows counts")
	}
	const limit, offered = 5, 10
	for _, p := range served(m, stores) {
		b := f.book(withLimit(p, limit))
		s := b.subject(0)
		b.shows(viewer, s, 0)
		b.shows(viewer, subject{b.subjects.Add(1), "never seen"}, 0)
		var admitted, asked int64
		for range offered {
			asked++
			if b.take(s, 1).Admitted {
				admitted++
			}
			if m.Counts == quota.CountsAttempts {
				b.shows(viewer, s, asked)
			} else {
				b.shows(viewer, s, admitted)
			}
		}
	}
}

// shows checks every tier that knows the subject against the units that it should
// have counted.
func (b *book) shows(v strategies.Viewer, s subject, want int64) {
	b.Helper()
	readings, err := v.Used(b.ctx(), s.name, b.policy)
	if err != nil {
		b.Fatalf("reading what %q has used: %v", s.name, err)
	}
	if len(readings) == 0 {
		b.Errorf("%q: no tier shows anything", s.name)
	}
	var tiers []quota.Tier
	for _, r := range readings {
		if r.Tier == "" {
			b.Errorf("%+v is of no tier", r)
		}
		tiers = append(tiers, r.Tier)
		if !r.Known && r.Units != 0 {
			b.Errorf("%+v: units that are not known", r)
		}
		if b.exactly(2*b.policy.Limit, 1) && r.Units != want {
			b.Errorf("%s window: tier %s shows %d units, and %d were counted", b.policy.Window.Kind, r.Tier, r.Units, want)
		}
	}
	unique(b, "tier", tiers)
}
