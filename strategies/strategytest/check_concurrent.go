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
func exact(meta *strategies.Meta, policy *quota.Policy, instances int64) bool {
	const limit = 100
	return slices.ContainsFunc(meta.Guarantee, func(clause quota.Clause) bool {
		params := quota.Params{Limit: limit, MaxCost: 1, Deciding: 1, InFlight: 1, Instances: instances, Offered: 2 * limit,
			Policy: policy}
		return clause.Property == quota.PropertyLeak && clause.Applies(policy.Window.Kind) && clause.Bound(params) == 0
	})
}

// checkConcurrent: many callers over two instances ask for twice the limit of one
// subject at once, again and again with a fresh subject.
func checkConcurrent(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 2)
	const crossings, workers, limit, perWorker = 10, 8, 16, 4
	for _, policy := range representative(meta, stores) {
		instances := 2
		if meta.PerProcess && exact(meta, &policy, 2) {
			instances = 1 // it keeps that on each
		}
		for _, costs := range [][]int64{{1}, {1, 2, 3}} {
			if !meta.ServesUnits(&policy, slices.Max(costs)) {
				continue
			}
			book := fixture.book(withLimit(policy, limit))
			for range crossings {
				subject := book.subject(0)
				together(workers, func(w int) {
					for i := range perWorker {
						fixture.meter() // the race detector sees what is read unguarded
						units := costs[(w+i)%len(costs)]
						if _, err := book.try(book.ctx(), w%instances, subject, units); err != nil {
							book.complain("asking", err)
						}
					}
				})
			}
			book.hold()
			verdict := book.judge(book.policy.Window)
			if len(costs) == 1 && verdict.Admitted.Units == 0 && book.least(2*limit) > 0 {
				tb.Errorf("%s window: none of %d requests was admitted", policy.Window.Kind, verdict.Issued.Requests)
			}
			tb.Logf("%s window, costs %v: %d in flight at most; of %d units over the limit %d leaked, worst subject %d",
				policy.Window.Kind, costs, verdict.MaxDeciding, verdict.OverOffered, verdict.LeakUnits, verdict.LeakWorst)
		}
	}
}

// checkAtOnce: of two callers of one instance that ask for the last unit at the same moment,
// one is admitted. Without a store between them their moments are nanoseconds long, which
// takes many crossings to meet.
func checkAtOnce(tb testing.TB, meta *strategies.Meta, stores Stores) {
	if len(meta.Needs) > 0 {
		tb.Skip("it counts in a store, whose commands explorations put in every order")
	}
	switch {
	case runtime.NumCPU() == 1:
		tb.Log("there is one processor, on which two callers meet only if one waits: run it on two")
	case runtime.GOMAXPROCS(0) == 1:
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	fixture := open(tb, meta, stores, 1)
	for _, policy := range representative(meta, stores) {
		if !exact(meta, &policy, 1) {
			continue
		}
		for _, of := range []struct {
			limit     int64
			crossings int
		}{{1, 20_000}, {4, 30_000}} {
			crossings := of.crossings / crossingsPart
			several := fixture.cross(withLimit(policy, of.limit), crossings, callersAtOnce)
			if several == 0 {
				continue
			}
			// Is it a race?
			if alone := fixture.cross(withLimit(policy, of.limit), crossings, 1); alone > 0 {
				tb.Errorf("%s window, limit %d: more was admitted to %d of %d subjects, and to %d of %d if a single caller "+
					"asks: that is no race. What a subject has used is forgotten while others come", policy.Window.Kind, of.limit,
					several, crossings, alone, crossings)
				continue
			}
			tb.Errorf("%s window: two callers that asked for the last unit of %d at the same moment were both admitted, "+
				"in %d of %d crossings", policy.Window.Kind, of.limit, several, crossings)
		}
	}
}

// callersAtOnce meet at the last unit.
const callersAtOnce = 2

// cross has callers ask for all units of a fresh subject, again and again, and counts how often they got more: each for
// all of them, or a single one for twice as many. With more than one unit, what a subject needs is there when the last
// one is asked for: whoever makes it is late.
func (f *fixture) cross(policy *quota.Policy, crossings, callers int) (several int) {
	book := f.book(policy)
	asks := policy.Limit * callersAtOnce / int64(callers)
	var arrived atomic.Int64
	admitted := make([]atomic.Int64, crossings)
	together(callers, func(int) {
		req := quota.Request{Policy: book.policy, Units: 1}
		for i := range crossings {
			req.Subject = quota.Subject(fmt.Sprintf("%d-at-once-%d-%d", callers, policy.Limit, i))
			began := book.policy.Window.At(f.env.Clock.Now())
			got := int64(0)
			arrived.Add(1)
			for spins := 0; arrived.Load() < int64(i+1)*int64(callers); spins++ {
				if spins > 1000 { // the other one has no processor
					runtime.Gosched()
				}
			}
			for range asks {
				if decision, err := f.instances[0].Take(f.ctx(), req); err == nil && decision.Admitted {
					got++
				}
			}
			if began == book.policy.Window.At(f.env.Clock.Now()) {
				admitted[i].Add(got)
			}
		}
	})
	for i := range admitted {
		if admitted[i].Load() > policy.Limit {
			several++
		}
	}
	return several
}

// checkConcurrentRefunds: callers that take and refund at once never hold more
// than what the clauses allow.
func checkConcurrentRefunds(tb testing.TB, meta *strategies.Meta, stores Stores) {
	book := refunder(tb, meta, stores, 4)
	const workers, rounds = 6, 20
	subject := book.subject(0)
	several := int64(1)
	if !meta.ServesUnits(book.policy, 2) {
		several = 0
	}
	together(workers, func(w int) {
		for range rounds {
			decision, err := book.try(book.ctx(), 0, subject, 1+several*int64(w%2))
			if err != nil {
				book.complain("asking", err)
				continue
			}
			if !decision.Admitted {
				continue
			}
			if err := book.refund(subject, decision.Reservation, decision.Reservation.Request.Units); err != nil {
				book.complain("refunding", err)
			}
		}
	})
	book.hold()
	// Everything was given back, so all of it can be had again.
	if book.exactly(2*book.policy.Limit, 1) {
		admitted, _ := book.exhaust(subject, 2*book.policy.Limit)
		book.within("after everything was refunded", admitted, 2*book.policy.Limit)
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
	var group sync.WaitGroup
	start := make(chan struct{})
	for w := range n {
		group.Go(func() {
			<-start
			f(w)
		})
	}
	close(start)
	group.Wait()
}

// meter reads the figures of instances that have some.
func (f *fixture) meter() {
	for _, strategy := range f.instances {
		if meter, ok := strategy.(strategies.Meter); ok {
			meter.Measures()
		}
	}
}
