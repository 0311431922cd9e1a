package strategytest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/strategies"
)

// checkConcurrent: many callers over two instances ask for twice the limit of one
// subject at once, again and again with a fresh subject.
func checkConcurrent(tb testing.TB, m *strategies.Meta, stores Stores) {
	f := open(tb, m, stores, 2)
	const crossings, workers, limit, perWorker = 10, 8, 16, 4
	for _, p := range representative(m) {
		for _, costs := range [][]int64{{1}, {1, 2, 3}} {
			if !m.ServesUnits(&p, slices.Max(costs)) {
				continue
			}
			b := f.book(withLimit(p, limit))
			for range crossings {
				s := b.subject(0)
				together(workers, func(w int) {
					for i := range perWorker {
						f.meter() // the race detector sees what is read unguarded
						units := costs[(w+i)%len(costs)]
						if _, err := b.try(b.ctx(), w%2, s, units); err != nil {
							b.complain("asking", err)
						}
					}
				})
			}
			b.hold()
			v := b.judge(b.policy.Window)
			if len(costs) == 1 && v.Admitted.Units == 0 && b.least(2*limit) > 0 {
				tb.Errorf("%s window: none of %d requests was admitted", p.Window.Kind, v.Issued.Requests)
			}
			tb.Logf("%s window, costs %v: %d in flight at most; of %d units over the limit %d leaked, worst subject %d",
				p.Window.Kind, costs, v.MaxInFlight, v.OverOffered, v.LeakUnits, v.LeakWorst)
		}
	}
}

// checkConcurrentRefunds: callers that take and refund at once never hold more
// than what the clauses allow.
func checkConcurrentRefunds(tb testing.TB, m *strategies.Meta, stores Stores) {
	b := refunder(tb, m, stores, 4)
	const workers, rounds = 6, 20
	s := b.subject(0)
	several := int64(1)
	if !m.ServesUnits(b.policy, 2) {
		several = 0
	}
	together(workers, func(w int) {
		for range rounds {
			d, err := b.try(b.ctx(), 0, s, 1+several*int64(w%2))
			if err != nil {
				b.complain("asking", err)
				continue
			}
			if !d.Admitted {
				continue
			}
			if err := b.refund(s, d.Reservation, d.Reservation.Request.Units); err != nil {
				b.complain("refunding", err)
			}
		}
	})
	b.hold()
	// Everything was given back, so that all of it can be had again.
	if b.exactly(2*b.policy.Limit, 1) {
		admitted, _ := b.exhaust(s, 2*b.policy.Limit)
		b.within("after everything was refunded", admitted, 2*b.policy.Limit)
	}
}

// complain fails the test for an error under load, unless the strategy's source
// asks for that error.
func (b *book) complain(doing string, err error) {
	b.Helper()
	if errors.Is(err, strategies.ErrPrescribed) {
		b.Logf("%s: %v", doing, err)
		return
	}
	b.Errorf("%s: %v", doing, err)
}

// together runs f in that many goroutines, which start at the same time.
func together(n int, f func(worker int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for w := range n {
		wg.Go(func() {
			<-start
			f(w)
		})
	}
	close(start)
	wg.Wait()
}

// meter reads the figures of instances that have some.
func (f *fixture) meter() {
	for _, s := range f.instances {
		if m, ok := s.(strategies.Meter); ok {
			m.Measures()
		}
	}
}
