package strategytest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// exact reports whether a strategy promises that so many instances together keep the limit.
func exact(m *strategies.Meta, p *quota.Policy, instances int64) bool {
	const limit = 100
	return slices.ContainsFunc(m.Guarantee, func(c quota.Clause) bool {
		params := quota.Params{Limit: limit, MaxCost: 1, InFlight: 1, Instances: instances, Offered: 2 * limit, Policy: p}
		return c.Property == quota.PropertyLeak && c.Applies(p.Window.Kind) && c.Bound(params) == 0
	})
}

// checkConcurrent: many callers over two instances ask for twice the limit of one
// subject at once, again and again with a fresh subject.
func checkConcurrent(tb testing.TB, m *strategies.Meta, stores Stores) {
	f := open(tb, m, stores, 2)
	const crossings, workers, limit, perWorker = 10, 8, 16, 4
	for _, p := range representative(m, stores) {
		instances := 2
		if m.PerProcess && exact(m, &p, 2) {
			instances = 1 // it keeps that on each
		}
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
						if _, err := b.try(b.ctx(), w%instances, s, units); err != nil {
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

// checkAtOnce: of two callers of one instance that ask for the last unit at the same moment,
// one is admitted. Without a store between them their moments are nanoseconds long, which
// takes many crossings to meet.
func checkAtOnce(tb testing.TB, m *strategies.Meta, stores Stores) {
	if len(m.Needs) > 0 {
		tb.Skip("it counts in a store, whose commands explorations put in every order")
	}
	switch {
	case runtime.NumCPU() == 1:
		tb.Log("there is one processor, on which two callers meet only if one waits: run it on two")
	case runtime.GOMAXPROCS(0) == 1:
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	f := open(tb, m, stores, 1)
	for _, p := range representative(m, stores) {
		if !exact(m, &p, 1) {
			continue
		}
		for _, of := range []struct {
			limit     int64
			crossings int
		}{{1, 20_000}, {4, 30_000}} {
			crossings := of.crossings / crossingsPart
			if several := f.cross(withLimit(p, of.limit), crossings); several > 0 {
				tb.Errorf("%s window: two callers that asked for the last unit of %d at the same moment were both admitted, "+
					"in %d of %d crossings", p.Window.Kind, of.limit, several, crossings)
			}
		}
	}
}

// cross has two callers ask for all units of a fresh subject, again and again, and counts how often they got more. With more
// than one unit, what a subject needs is there when the last one is asked for: whoever makes it is late.
func (f *fixture) cross(p *quota.Policy, crossings int) (several int) {
	const callers = 2
	b := f.book(p)
	var arrived atomic.Int64
	admitted := make([]atomic.Int64, crossings)
	together(callers, func(int) {
		req := quota.Request{Policy: b.policy, Units: 1}
		for i := range crossings {
			req.Subject = quota.Subject(fmt.Sprintf("at-once-%d-%d", p.Limit, i))
			began := b.policy.Window.At(f.env.Clock.Now())
			got := int64(0)
			arrived.Add(1)
			for spins := 0; arrived.Load() < int64(i+1)*callers; spins++ {
				if spins > 1000 { // the other one has no processor
					runtime.Gosched()
				}
			}
			for range p.Limit {
				if d, err := f.instances[0].Take(f.ctx(), req); err == nil && d.Admitted {
					got++
				}
			}
			if began == b.policy.Window.At(f.env.Clock.Now()) {
				admitted[i].Add(got)
			}
		}
	})
	for i := range admitted {
		if admitted[i].Load() > p.Limit {
			several++
		}
	}
	return several
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
	// Everything was given back, so all of it can be had again.
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
