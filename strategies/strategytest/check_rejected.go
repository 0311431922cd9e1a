package strategytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/verdict"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// checkRejected: a request that is rejected is charged nothing, unless the strategy counts attempts. Of two subjects
// that make the same requests, one makes one more, which is rejected. Both are told the same afterwards.
func checkRejected(tb testing.TB, meta *strategies.Meta, stores Stores) {
	tb.Helper()
	skipForeign(tb, meta)
	if meta.Counts == quota.CountsAttempts {
		tb.Skip("it counts attempts, as its Meta says")
	}
	if stores.advance != nil { // time moves by whole windows, which no other check is to see
		given := stores
		stores = embeddedStores(tb, meta)
		stores.Policy = given.Policy
		stores.Second = given.Second
	}
	f := openMoved(tb, meta, stores, 1)
	compared := false
	for _, policy := range served(meta, stores) {
		for _, pair := range f.pairs(&policy) {
			ran, differs := f.differ(policy, pair)
			compared = compared || ran
			if differs != "" {
				tb.Errorf("%s window, limit %d: %s. A rejected request was charged: if that is meant, set Counts to "+
					"quota.CountsAttempts in its Meta", policy.Window.Kind, pairLimit, differs)
				break // and the other pairs say the same
			}
		}
	}
	if !compared && !tb.Failed() {
		tb.Skip("it rejects nothing that could be compared")
	}
}

// pairLimit is the limit of the subjects that are compared.
const pairLimit = 3

// pair is what two subjects do, of which one makes a request more.
type pair struct {
	// first are single units that both take; 0 is as many as they get.
	first int64
	// before is the time from then to the further request, of so many units.
	before time.Duration
	units  int64
	// after is the time before each of the rounds in which both ask so often for a unit.
	after  time.Duration
	asks   int64
	rounds int
}

// moment is what time is beyond a deadline.
const moment = 10 * time.Millisecond

// pairs are those of a policy. Time passes if it can be moved, and if windows end.
func (f *fixture) pairs(policy *quota.Policy) (out []pair) {
	if f.meta.ServesUnits(policy, pairLimit) {
		out = append(out, pair{first: 1, units: pairLimit, asks: pairLimit, rounds: 1})
	}
	if !f.moved || f.meta.Reset != strategies.ResetsWindow {
		return out
	}
	// A further window of the strategy's own, if there is one, is often a second.
	out = append(out, pair{units: 1, after: time.Second + moment, asks: 1, rounds: pairLimit + 1})
	length := verdict.Length(withLimit(*policy, pairLimit), f.env.Clock.Now())
	if policy.Window.Kind == quota.Bucket {
		length /= pairLimit // for one unit
	}
	if length > 0 {
		half := length / 2
		out = append(out, pair{first: pairLimit, before: half, units: 1, after: half + moment, asks: pairLimit, rounds: 2})
	}
	return out
}

// tries is how often two subjects must differ: once may be the moment at which a window of the strategy's own ends.
const tries = 3

// differ reports whether the subjects of a pair could be compared, and how they differ; "" if they do not.
func (f *fixture) differ(policy quota.Policy, pair pair) (ran bool, how string) {
	f.Helper()
	for range tries {
		ran, how = f.compare(policy, pair)
		if how == "" {
			return ran, ""
		}
	}
	return ran, how
}

// compare is one try.
func (f *fixture) compare(policy quota.Policy, pair pair) (ran bool, how string) {
	f.Helper()
	if length := int64(policy.Window.RealLength()); f.moved && policy.Window.Kind == quota.Fixed { // not near its end
		f.pass(time.Duration(length - f.env.Clock.Now().UnixNano()%length + length/10))
	}
	held := withLimit(policy, pairLimit)
	if held.Window.Timeline != (quota.Timeline{}) {
		held.Window.Timeline.Real = f.env.Clock.Now()
	}
	book := f.book(held)
	more := book.subject(0)
	other := book.subject(0)
	if !book.rejectedOnce(more, other, pair) {
		return false, ""
	}
	passed := time.Duration(0)
	for range pair.rounds {
		f.passIf(pair.after)
		passed += pair.after
		for i := range pair.asks {
			with := book.take(more, 1).Admitted
			without := book.take(other, 1).Admitted
			if with != without {
				return true, fmt.Sprintf("%v after a request that was rejected, request %d for a unit is %s, and it is %s if the "+
					"rejected request was not made", passed, i+1, told(with), told(without))
			}
		}
	}
	return true, ""
}

// rejectedOnce has both subjects use up what there is, and one of them be rejected.
func (b *book) rejectedOnce(more, other subject, pair pair) bool {
	b.Helper()
	most := pair.first
	if most == 0 {
		most = pairLimit + 1
	}
	for range most {
		with := b.take(more, 1).Admitted
		if !with && pair.first == 0 {
			return true
		}
		if without := b.take(other, 1).Admitted; with != without {
			return false // they differ by themselves
		}
	}
	if pair.first == 0 {
		return false
	}
	b.passIf(pair.before)
	return !b.take(more, pair.units).Admitted
}

// passIf lets time pass that is not 0.
func (f *fixture) passIf(duration time.Duration) {
	if duration > 0 {
		f.pass(duration)
	}
}

func told(admitted bool) string {
	if admitted {
		return "admitted"
	}
	return "rejected"
}
