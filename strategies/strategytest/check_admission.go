package strategytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// checkSequential: one caller asks for twice the limit, unit by unit.
func checkSequential(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1)
	const limit, offered = 7, 14
	for _, policy := range served(meta, stores) {
		book := fixture.book(withLimit(policy, limit))
		subject := book.subject(0)
		var admitted int64
		for i := range int64(offered) {
			decision := book.take(subject, 1)
			if decision.Admitted {
				admitted++
			}
			if want := max(0, limit-admitted); book.exactly(offered, 1) && decision.Remaining >= 0 &&
				decision.Remaining != want {
				tb.Errorf("%s window: %d remain after request %d, says the decision; it is %d", policy.Window.Kind,
					decision.Remaining, i+1, want)
			}
		}
		book.within("one caller", admitted, offered)
		book.hold()
	}
}

// checkPerProcess: if each instance counts for itself, what one has admitted leaves
// the other its whole limit; if they share a count without a store, it leaves nothing.
func checkPerProcess(tb testing.TB, meta *strategies.Meta, stores Stores) {
	if !meta.PerProcess && len(meta.Needs) > 0 {
		tb.Skip("it counts in a store")
	}
	fixture := open(tb, meta, stores, 2)
	const limit = 7
	for _, policy := range served(meta, stores) {
		book := fixture.book(withLimit(policy, limit))
		subject := book.subject(0)
		book.exhaust(subject, limit)
		for i := range limit {
			decision, err := book.try(book.ctx(), 1, subject, 1)
			if err != nil {
				tb.Fatal(err)
			}
			if decision.Admitted && !meta.PerProcess && exact(meta, &policy, 2) {
				tb.Errorf("%s window: the second instance admits a request after the first has admitted the whole limit of %d: "+
					"each counts for itself. Set PerProcess in its Meta, and see quota.PerInstance for what it can promise",
					policy.Window.Kind, limit)
				return
			}
			if !decision.Admitted && meta.PerProcess {
				tb.Errorf("%s window: the second instance rejects request %d of a limit of %d, after the first has admitted as "+
					"many: PerProcess is set, but they share a count", policy.Window.Kind, i+1, limit)
				break
			}
		}
	}
}

// checkCosts: requests of several units that do not add up to the limit, then
// smaller ones that fit into what is left.
func checkCosts(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1)
	for _, policy := range served(meta, stores) {
		if !meta.ServesUnits(&policy, 11) {
			continue
		}
		book := fixture.book(withLimit(policy, 10))
		subject := book.subject(0)
		var admitted int64
		for _, units := range []int64{3, 3, 3, 3, 2, 1, 1, 11} {
			granted, err := book.take(subject, units).Units(units)
			if err != nil {
				tb.Error(err)
			}
			admitted += granted
		}
		if book.exactly(27, 11) && admitted != book.policy.Limit {
			tb.Errorf("%s window: %d units were admitted by requests that fill up a limit of %d", policy.Window.Kind, admitted,
				book.policy.Limit)
		}
		book.hold()
		fixture.oversized(policy)
	}
}

// oversized: a request for more than the limit is rejected, also if nothing is used yet, or only a unit.
func (f *fixture) oversized(policy quota.Policy) {
	f.Helper()
	const limit = 10
	book := f.book(withLimit(policy, limit))
	fresh := book.subject(0)
	used := book.subject(0)
	book.take(fresh, limit+1)
	book.take(used, 1)
	book.take(used, limit+1)
	book.hold()
}

// oddNames are subjects that are easily taken for one another, or for syntax.
var oddNames = []quota.Subject{
	"a", "A", "a:", ":a", "a:b", "a b", " a", "{a}", "{a}b", "a*", "a'b", `a"b`, `a\b`, "a%s", "a;--", "é", "e\u0301", "a/b", "a.b",
	"a:conformance", "a:used", "a:limit",
}

// checkSubjects: what one subject uses up is not missing from another.
func checkSubjects(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1)
	policy := anyKind(tb, meta, stores)
	const limit, offered = 2, 4
	book := fixture.book(withLimit(policy, limit))
	for i, name := range oddNames {
		subject := book.named(name, uint32(i), 0)
		admitted, _ := book.exhaust(subject, offered)
		if !book.within(fmt.Sprintf("subject %q after %d others were used up", name, i), admitted, offered) {
			break // and the others say the same
		}
	}
	book.hold()
}

// checkNextWindow: a window that follows one that was used up starts from zero.
// It is reached by moving the policy's anchor.
func checkNextWindow(tb testing.TB, meta *strategies.Meta, stores Stores) {
	tb.Helper()
	skipForeign(tb, meta)
	if meta.Reset != strategies.ResetsWindow {
		tb.Skip("does not reset")
	}
	if _, ok := servedKind(meta, stores, quota.Kind.Tumbling); !ok {
		tb.Skip("serves no windows that follow each other")
	}
	fixture := open(tb, meta, stores, 1)
	const limit, offered = 3, 6
	for _, policy := range served(meta, stores) {
		if !policy.Window.Kind.Tumbling() {
			continue
		}
		if meta.Form == strategies.Library { // its clock is its own: no anchor moves it
			if policy.Window.Kind == quota.Fixed {
				fixture.waitForNext(policy, limit, offered)
			}
			continue
		}
		book := fixture.book(withLimit(policy, limit))
		subject := book.subject(0)
		for i := range 4 {
			admitted, _ := book.exhaust(subject, offered)
			book.within(fmt.Sprintf("window %d", i), admitted, offered)
			book.policy = nextWindow(book.policy)
		}
	}
}

// libraryWindow is how long windows of libraries are. Tests of limiters in the test shorten
// it.
var libraryWindow = time.Second

// waitForNext is checkNextWindow on the wall clock, in windows of a second, the
// shortest that many libraries know. A slow machine may be served more than one
// window, never less.
func (f *fixture) waitForNext(policy quota.Policy, limit, offered int64) {
	f.Helper()
	policy.Limit = limit
	policy.Window.Length = libraryWindow
	policy.Window.Timeline = quota.Timeline{}
	if err := f.meta.ServesPolicy(&policy); err != nil {
		f.Logf("no window passes: %v", err)
		return
	}
	book := f.book(&policy)
	subject := book.subject(0)
	for i := range 2 {
		admitted, _ := book.exhaust(subject, offered)
		if least := book.least(offered); admitted < least {
			f.Errorf("fixed window %d: %d of %d units were admitted, not %d", i, admitted, offered, least)
		}
		if i == 0 {
			wait(2 * policy.Window.Length)
		}
	}
}

// checkRolling: units come back one window's length after they were admitted, or
// after the first of them was, or have flowed in by then.
func checkRolling(tb testing.TB, meta *strategies.Meta, stores Stores) {
	tb.Helper()
	skipForeign(tb, meta)
	var f *fixture
	for _, policy := range served(meta, stores) {
		if policy.Window.Kind < quota.Rolling {
			continue
		}
		if f == nil {
			f = openMoved(tb, meta, stores, 1)
		}
		f.returns(policy)
	}
	if f == nil {
		tb.Skip("serves no windows of a subject's own")
	}
}

// shortestReturn is the first length of windows that units come back after.
const shortestReturn = 100 * time.Millisecond

// longestReturn bounds it.
const longestReturn = 30 * time.Second

// returning are the units that come back.
const returning = 3

// returns uses up a subject's quota twice, one window's length apart. On a slow machine or
// store, or for a strategy of coarse time, it does so again in windows of twice the length. A leak is an error at once.
func (f *fixture) returns(policy quota.Policy) {
	f.Helper()
	if policy.Window.Kind == quota.Bucket {
		policy.Window.Refill = returning
	}
	short := policy
	second := policy
	short.Window.Length, second.Window.Length = shortestReturn, time.Second
	if err := f.meta.ServesPolicy(&short); err != nil && f.meta.ServesPolicy(&second) != nil {
		f.Logf("no window passes: %v", err)
		return
	}
	for policy.Window.Length = shortestReturn; ; policy.Window.Length *= 2 {
		slow, late := f.returnsOnce(policy)
		again := slow && policy.Window.Length < time.Minute || late != "" && policy.Window.Length < longestReturn
		switch {
		case f.Failed():
			return
		case again && f.moved:
		case again:
			f.Logf("windows of %v are too short here: %s", policy.Window.Length, late)
		case late != "":
			f.Error(late)
			return
		default:
			return
		}
	}
}

// returnsOnce reports whether the window was over before all requests were answered, which
// says nothing about the strategy, and what came back too late; "" is nothing.
func (f *fixture) returnsOnce(policy quota.Policy) (slow bool, late string) {
	f.Helper()
	const limit, offered = returning, 2 * returning
	book := f.book(withLimit(policy, limit))
	defer book.hold()
	subject := book.subject(0)
	least := book.least(offered)
	from := clock.Nano()
	// A slow machine may be served more than one window, never less.
	if admitted, _ := book.exhaust(subject, offered); admitted < least {
		f.Errorf("%s window: %d of %d units were admitted, not %d", policy.Window.Kind, admitted, offered, least)
	}
	if clock.Nano()-from > int64(policy.Window.Length) {
		return true, ""
	}
	f.pass(policy.Window.Length + 10*time.Millisecond)
	if admitted, _ := book.exhaust(subject, offered); admitted < least {
		late = fmt.Sprintf("%s window of %v, after its end: %d of %d units were admitted, not %d", policy.Window.Kind,
			policy.Window.Length, admitted, offered, least)
	}
	return false, late
}

// checkProvision: an operator's grant counts, and replaces what was there.
func checkProvision(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1)
	provisioner, ok := fixture.instances[0].(strategies.Provisioner)
	if !ok {
		tb.Skip("cannot be set up")
	}
	const limit, used, offered = 5, 2, 10
	for _, policy := range served(meta, stores) {
		book := fixture.book(withLimit(policy, limit))
		admitted, _ := book.exhaust(book.subject(used), offered)
		// The units used at the start take the place of admitted ones.
		book.within("with units used at the start, them included", used+admitted, used+offered)
		book.hold()
	}

	// More than any batch, the last of them used up.
	policy := anyKind(tb, meta, stores)
	b := fixture.book(withLimit(policy, limit))
	grants := make([]strategies.Grant, 2_345)
	for i := range grants {
		grants[i] = strategies.Grant{Subject: quota.Subject(fmt.Sprintf("granted-%d", i)), Limit: limit}
	}
	last := &grants[len(grants)-1]
	last.Used = limit
	if err := provisioner.Provision(b.ctx(), b.policy, grants); err != nil {
		tb.Fatalf("setting up %d subjects: %v", len(grants), err)
	}
	first, _ := b.exhaust(subject{b.subjects.Add(1), grants[0].Subject}, offered)
	b.within("the first of many", first, offered)
	if decision := b.take(subject{b.subjects.Add(1), last.Subject}, 1); decision.Admitted && b.exactly(offered, 1) {
		tb.Errorf("the last of %d subjects was set up without anything left, and is admitted", len(grants))
	}
	checkGrantedLimit(fixture, provisioner, policy)
}

// checkGrantedLimit: a limit of the subject's own is kept, or refused in so many
// words.
func checkGrantedLimit(f *fixture, provisioner strategies.Provisioner, policy quota.Policy) {
	book := f.book(withLimit(policy, 5))
	s := subject{book.subjects.Add(1), "generous"}
	const own, offered = 8, 16
	err := provisioner.Provision(book.ctx(), book.policy, []strategies.Grant{{Subject: s.name, Limit: own}})
	if err != nil {
		return
	}
	admitted, _ := book.exhaust(s, offered)
	larger := *book.policy
	larger.Limit = own
	book.policy = &larger
	book.within("a limit of the subject's own", admitted, offered)
}

// checkLimit: clauses that tolerate another limit in mid-run hold when it is lowered
// below what is used, and raised.
func checkLimit(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1)
	for _, policy := range representative(meta, stores) {
		if policy.Window.Kind == quota.Bucket {
			continue // its size cannot change
		}
		book := fixture.book(withLimit(policy, 8))
		subject := book.subject(0)
		for _, limit := range []int64{8, 4, 10, 5} {
			book.setLimit(subject, limit)
			book.exhaust(subject, 6)
		}
		book.hold(quota.FaultLimit)
	}
}

// setLimit gives the subject another limit, as an operator would.
func (b *book) setLimit(s subject, limit int64) {
	b.Helper()
	if limit == b.policy.Limit {
		return
	}
	change := oracle.LimitChange{From: clock.Nano() - b.epoch, Limit: limit}
	next := *b.policy
	next.Limit = limit
	for _, strategy := range b.instances {
		setter, ok := strategy.(strategies.LimitSetter)
		if !ok {
			continue
		}
		if err := setter.SetLimit(b.ctx(), &next, []quota.Subject{s.name}); err != nil {
			b.Fatalf("setting the limit of %q to %d: %v", s.name, limit, err)
		}
		break
	}
	change.To = clock.Nano() - b.epoch
	b.policy = &next
	b.changes = append(b.changes, change)
}
