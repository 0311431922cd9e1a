package strategytest

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// refunder is a book of one instance that can refund, over a standing policy
// if one is served.
func refunder(tb testing.TB, meta *strategies.Meta, stores Stores, limit int64) *book {
	tb.Helper()
	policy := standingFirst(tb, meta, stores)
	// What the Meta says is enough to skip: the check of the Meta checks it against
	// an instance.
	if !meta.GivesBack {
		tb.Skip("does not refund")
	}
	return open(tb, meta, stores, 1).book(withLimit(policy, limit))
}

// checkRefund: what is refunded can be had again, once.
func checkRefund(tb testing.TB, meta *strategies.Meta, stores Stores) {
	book := refunder(tb, meta, stores, 6)
	subject := book.subject(0)
	_, held := book.exhaust(subject, 2*book.policy.Limit)
	if len(held) == 0 {
		tb.Skip("admits nothing that could be refunded")
	}
	for i, reservation := range held[:min(3, len(held))] {
		if err := book.refund(subject, reservation, reservation.Request.Units); err != nil {
			tb.Fatalf("refund %d: %v", i, err)
		}
		decision := book.take(subject, 1)
		again := book.take(subject, 1)
		if !decision.Admitted && book.least(2*book.policy.Limit) > 0 {
			tb.Errorf("refund %d: a unit was given back, and the next request for one is rejected", i)
		}
		if again.Admitted && book.exactly(2*book.policy.Limit, 1) {
			tb.Errorf("refund %d: one unit was given back, and two were admitted", i)
		}
	}

	if !meta.ServesUnits(book.policy, 4) {
		book.hold()
		return
	}
	// Several units at once, from an otherwise empty account.
	subject = book.subject(0)
	if decision := book.take(subject, 4); decision.Admitted {
		if err := book.refund(subject, decision.Reservation, 4); err != nil {
			tb.Fatal(err)
		}
		admitted, _ := book.exhaust(subject, 2*book.policy.Limit)
		book.within("after a refund of everything", admitted, 2*book.policy.Limit)
	}
	book.hold()
}

// checkDoubleRefund: a leak clause that tolerates repeated commands must also
// hold if a refund is repeated.
func checkDoubleRefund(tb testing.TB, meta *strategies.Meta, stores Stores) {
	policy := standingFirst(tb, meta, stores)
	promised := slices.ContainsFunc(meta.Guarantee, func(clause quota.Clause) bool {
		return clause.Property == quota.PropertyLeak && clause.Applies(policy.Window.Kind) &&
			slices.Contains(clause.Tolerates, quota.FaultRetry)
	})
	if !promised {
		tb.Skip("no leak clause tolerates a repeated command")
	}
	book := refunder(tb, meta, stores, 6)
	subject := book.subject(0)
	_, held := book.exhaust(subject, book.policy.Limit)
	if len(held) == 0 {
		tb.Skip("admits nothing that could be refunded")
	}
	if err := book.refund(subject, held[0], held[0].Request.Units); err != nil {
		tb.Fatal(err)
	}
	// Callers hold nothing that a second refund could give back. Whether it is an
	// error is the strategy's business.
	err := book.refund(subject, held[0], 0)
	tb.Logf("the second refund of one request returned: %v", err)
	book.exhaust(subject, 2*book.policy.Limit)
	book.hold()
}

// checkCommit: what is committed (as much as was reserved, less or more) stays
// in use until it is refunded at its actual size.
func checkCommit(tb testing.TB, meta *strategies.Meta, stores Stores) {
	book := refunder(tb, meta, stores, 9)
	if _, ok := book.instances[0].(strategies.Committer); !ok {
		tb.Skip("does not commit")
	}
	for _, actual := range []int64{3, 1, 5} {
		subject := book.subject(0)
		decision := book.take(subject, 3)
		if !decision.Admitted {
			continue
		}
		if err := book.commit(subject, decision.Reservation, actual); err != nil {
			tb.Fatalf("committing %d of 3 units: %v", actual, err)
		}
		book.exhaust(subject, 2*book.policy.Limit)
		if err := book.refund(subject, decision.Reservation, actual); err != nil {
			tb.Fatalf("refunding %d committed units: %v", actual, err)
		}
		if admitted, _ := book.exhaust(subject, 2*book.policy.Limit); admitted == 0 && book.least(2*book.policy.Limit) > 0 {
			tb.Errorf("%d committed units were given back, and nothing is admitted", actual)
		}
	}
	book.hold()
}

// checkUsed: what the strategy shows is what it counts. It is held to that if it
// declares to be exact; otherwise the difference is drift, which is measured.
func checkUsed(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1)
	viewer, ok := fixture.instances[0].(strategies.Viewer)
	if !ok {
		tb.Skip("shows no counts")
	}
	if meta.Counts == quota.CountsNothing {
		tb.Error("counts nothing, and yet shows counts")
	}
	const limit, offered = 5, 10
	for _, policy := range served(meta, stores) {
		book := fixture.book(withLimit(policy, limit))
		s := book.subject(0)
		book.shows(viewer, s, 0)
		book.shows(viewer, subject{book.subjects.Add(1), "never seen"}, 0)
		var admitted, asked int64
		for range offered {
			asked++
			if book.take(s, 1).Admitted {
				admitted++
			}
			if meta.Counts == quota.CountsAttempts {
				book.shows(viewer, s, asked)
			} else {
				book.shows(viewer, s, admitted)
			}
		}
	}
}

// shows checks every tier that knows the subject against the units that it should
// have counted.
func (b *book) shows(viewer strategies.Viewer, s subject, want int64) {
	b.Helper()
	readings, err := viewer.Used(b.ctx(), s.name, b.policy)
	if err != nil {
		b.Fatalf("reading what %q has used: %v", s.name, err)
	}
	if len(readings) == 0 {
		b.Errorf("%q: no tier shows anything", s.name)
	}
	var tiers []quota.Tier
	for _, reading := range readings {
		if reading.Tier == "" {
			b.Errorf("%+v is of no tier", reading)
		}
		tiers = append(tiers, reading.Tier)
		if !reading.Known && reading.Units != 0 {
			b.Errorf("%+v: units that are not known", reading)
		}
		if b.exactly(2*b.policy.Limit, 1) && reading.Units != want {
			b.Errorf("%s window: tier %s shows %d units, and %d were counted", b.policy.Window.Kind, reading.Tier, reading.Units,
				want)
		}
	}
	unique(b, "tier", tiers)
}
