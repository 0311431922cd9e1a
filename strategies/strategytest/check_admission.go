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
func checkSequential(tb testing.TB, m *strategies.Meta, stores Stores) {
	f := open(tb, m, stores, 1)
	const limit, offered = 7, 14
	for _, p := range served(m, stores) {
		b := f.book(withLimit(p, limit))
		s := b.subject(0)
		var admitted int64
		for i := range int64(offered) {
			d := b.take(s, 1)
			if d.Admitted {
				admitted++
			}
			if want := max(0, limit-admitted); b.exactly(offered, 1) && d.Remaining >= 0 && d.Remaining != want {
				tb.Errorf("%s window: %d remain after request %d, says the decision; it is %d", p.Window.Kind, d.Remaining, i+1, want)
			}
		}
		b.within("one caller", admitted, offered)
		b.hold()
	}
}

// checkPerProcess: if each instance counts for itself, what one has admitted leaves
// the other its whole limit; if they share a count without a store, it leaves nothing.
func checkPerProcess(tb testing.TB, m *strategies.Meta, stores Stores) {
	if !m.PerProcess && len(m.Needs) > 0 {
		tb.Skip("it counts in a store")
	}
	f := open(tb, m, stores, 2)
	const limit = 7
	for _, p := range served(m, stores) {
		b := f.book(withLimit(p, limit))
		s := b.subject(0)
		b.exhaust(s, limit)
		for i := range limit {
			d, err := b.try(b.ctx(), 1, s, 1)
			if err != nil {
				tb.Fatal(err)
			}
			if d.Admitted && !m.PerProcess && exact(m, &p, 2) {
				tb.Errorf("%s window: the second instance admits a request after the first has admitted the whole limit of %d: "+
					"each counts for itself. Set PerProcess in its Meta, and see quota.PerInstance for what it can promise",
					p.Window.Kind, limit)
				return
			}
			if !d.Admitted && m.PerProcess {
				tb.Errorf("%s window: the second instance rejects request %d of a limit of %d, after the first has admitted as "+
					"many: PerProcess is set, but they share a count", p.Window.Kind, i+1, limit)
				break
			}
		}
	}
}

// checkCosts: requests of several units that do not add up to the limit, then
// smaller ones that fit into what is left.
func checkCosts(tb testing.TB, m *strategies.Meta, stores Stores) {
	f := open(tb, m, stores, 1)
	for _, p := range served(m, stores) {
		if !m.ServesUnits(&p, 11) {
			continue
		}
		b := f.book(withLimit(p, 10))
		s := b.subject(0)
		var admitted int64
		for _, units := range []int64{3, 3, 3, 3, 2, 1, 1, 11} {
			granted, err := b.take(s, units).Units(units)
			if err != nil {
				tb.Error(err)
			}
			admitted += granted
		}
		if b.exactly(27, 11) && admitted != b.policy.Limit {
			tb.Errorf("%s window: %d units were admitted by requests that fill up a limit of %d", p.Window.Kind, admitted, b.policy.Limit)
		}
		b.hold()
	}
}

// oddNames are subjects that are easily taken for one another, or for syntax.
var oddNames = []quota.Subject{
	"a", "A", "a:", ":a", "a:b", "a b", " a", "{a}", "{a}b", "a*", "a'b", `a"b`, `a\b`, "a%s", "a;--", "é", "e\u0301", "a/b", "a.b",
	"a:conformance", "a:used", "a:limit",
}

// checkSubjects: what one subject uses up is not missing from another.
func checkSubjects(tb testing.TB, m *strategies.Meta, stores Stores) {
	f := open(tb, m, stores, 1)
	p := anyKind(tb, m, stores)
	const limit, offered = 2, 4
	b := f.book(withLimit(p, limit))
	for i, name := range oddNames {
		s := b.named(name, uint32(i), 0)
		admitted, _ := b.exhaust(s, offered)
		b.within(fmt.Sprintf("subject %q after %d others were used up", name, i), admitted, offered)
	}
	b.hold()
}

// checkNextWindow: a window that follows one that was used up starts from zero.
// It is reached by moving the policy's anchor.
func checkNextWindow(tb testing.TB, m *strategies.Meta, stores Stores) {
	tb.Helper()
	skipForeign(tb, m)
	if m.Reset != strategies.ResetsWindow {
		tb.Skip("does not reset")
	}
	if _, ok := servedKind(m, stores, quota.Kind.Tumbling); !ok {
		tb.Skip("serves no windows that follow each other")
	}
	f := open(tb, m, stores, 1)
	const limit, offered = 3, 6
	for _, p := range served(m, stores) {
		if !p.Window.Kind.Tumbling() {
			continue
		}
		if m.Form == strategies.Library { // its clock is its own: no anchor moves it
			if p.Window.Kind == quota.Fixed {
				f.waitForNext(p, limit, offered)
			}
			continue
		}
		b := f.book(withLimit(p, limit))
		s := b.subject(0)
		for i := range 4 {
			admitted, _ := b.exhaust(s, offered)
			b.within(fmt.Sprintf("window %d", i), admitted, offered)
			b.policy = nextWindow(b.policy)
		}
	}
}

// libraryWindow is how long windows of libraries are. Tests of limiters in the test shorten
// it.
var libraryWindow = time.Second

// waitForNext is checkNextWindow on the wall clock, in windows of a second, the
// shortest that many libraries know. A slow machine may be served more than one
// window, never less.
func (f *fixture) waitForNext(p quota.Policy, limit, offered int64) {
	f.Helper()
	p.Limit = limit
	p.Window.Length = libraryWindow
	p.Window.Timeline = quota.Timeline{}
	if err := f.meta.ServesPolicy(&p); err != nil {
		f.Logf("no window passes: %v", err)
		return
	}
	b := f.book(&p)
	s := b.subject(0)
	for i := range 2 {
		admitted, _ := b.exhaust(s, offered)
		if least := b.least(offered); admitted < least {
			f.Errorf("fixed window %d: %d of %d units were admitted, not %d", i, admitted, offered, least)
		}
		if i == 0 {
			wait(2 * p.Window.Length)
		}
	}
}

// checkRolling: units come back one window's length after they were admitted, or
// after the first of them was, or have flowed in by then.
func checkRolling(tb testing.TB, m *strategies.Meta, stores Stores) {
	tb.Helper()
	skipForeign(tb, m)
	var f *fixture
	for _, p := range served(m, stores) {
		if p.Window.Kind < quota.Rolling {
			continue
		}
		if f == nil {
			f = open(tb, m, stores, 1)
		}
		f.returns(p)
	}
	if f == nil {
		tb.Skip("serves no windows of a subject's own")
	}
}

// shortestReturn is the first length of windows that units come back after.
const shortestReturn = 100 * time.Millisecond

// longestReturn is the last one. Tests of wrong strategies, which fail at any length,
// shorten it.
var longestReturn = 30 * time.Second

// returning are the units that come back.
const returning = 3

// returns uses up a subject's quota twice, one window's length apart. On a slow machine or
// store it does so again in windows of twice the length. A leak is an error at once.
func (f *fixture) returns(p quota.Policy) {
	f.Helper()
	if p.Window.Kind == quota.Bucket {
		p.Window.Refill = returning
	}
	short := p
	second := p
	short.Window.Length, second.Window.Length = shortestReturn, time.Second
	if err := f.meta.ServesPolicy(&short); err != nil && f.meta.ServesPolicy(&second) != nil {
		f.Logf("no window passes: %v", err)
		return
	}
	for p.Window.Length = shortestReturn; ; p.Window.Length *= 2 {
		slow, late := f.returnsOnce(p)
		again := slow && p.Window.Length < time.Minute || late != "" && p.Window.Length < longestReturn
		switch {
		case f.Failed():
			return
		case again:
			f.Logf("windows of %v are too short here: %s", p.Window.Length, late)
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
func (f *fixture) returnsOnce(p quota.Policy) (slow bool, late string) {
	f.Helper()
	const limit, offered = returning, 2 * returning
	b := f.book(withLimit(p, limit))
	defer b.hold()
	s := b.subject(0)
	least := b.least(offered)
	from := clock.Nano()
	// A slow machine may be served more than one window, never less.
	if admitted, _ := b.exhaust(s, offered); admitted < least {
		f.Errorf("%s window: %d of %d units were admitted, not %d", p.Window.Kind, admitted, offered, least)
	}
	if clock.Nano()-from > int64(p.Window.Length) {
		return true, ""
	}
	wait(p.Window.Length + 10*time.Millisecond)
	if admitted, _ := b.exhaust(s, offered); admitted < least {
		late = fmt.Sprintf("%s window of %v, after its end: %d of %d units were admitted, not %d", p.Window.Kind,
			p.Window.Length, admitted, offered, least)
	}
	return false, late
}

// checkProvision: an operator's grant counts, and replaces what was there.
func checkProvision(tb testing.TB, m *strategies.Meta, stores Stores) {
	f := open(tb, m, stores, 1)
	p, ok := f.instances[0].(strategies.Provisioner)
	if !ok {
		tb.Skip("cannot be set up")
	}
	const limit, used, offered = 5, 2, 10
	for _, policy := range served(m, stores) {
		b := f.book(withLimit(policy, limit))
		admitted, _ := b.exhaust(b.subject(used), offered)
		// The units used at the start take the place of admitted ones.
		b.within("with units used at the start, them included", used+admitted, used+offered)
		b.hold()
	}

	// More than any batch, the last of them used up.
	policy := anyKind(tb, m, stores)
	b := f.book(withLimit(policy, limit))
	grants := make([]strategies.Grant, 2_345)
	for i := range grants {
		grants[i] = strategies.Grant{Subject: quota.Subject(fmt.Sprintf("granted-%d", i)), Limit: limit}
	}
	last := &grants[len(grants)-1]
	last.Used = limit
	if err := p.Provision(b.ctx(), b.policy, grants); err != nil {
		tb.Fatalf("setting up %d subjects: %v", len(grants), err)
	}
	first, _ := b.exhaust(subject{b.subjects.Add(1), grants[0].Subject}, offered)
	b.within("the first of many", first, offered)
	if d := b.take(subject{b.subjects.Add(1), last.Subject}, 1); d.Admitted && b.exactly(offered, 1) {
		tb.Errorf("the last of %d subjects was set up without anything left, and is admitted", len(grants))
	}
	checkGrantedLimit(f, p, policy)
}

// checkGrantedLimit: a limit of the subject's own is kept, or refused in so many
// words.
func checkGrantedLimit(f *fixture, p strategies.Provisioner, policy quota.Policy) {
	b := f.book(withLimit(policy, 5))
	s := subject{b.subjects.Add(1), "generous"}
	const own, offered = 8, 16
	err := p.Provision(b.ctx(), b.policy, []strategies.Grant{{Subject: s.name, Limit: own}})
	if err != nil {
		return
	}
	admitted, _ := b.exhaust(s, offered)
	larger := *b.policy
	larger.Limit = own
	b.policy = &larger
	b.within("a limit of the subject's own", admitted, offered)
}

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
	b.policy = &next
	b.changes = append(b.changes, c)
}
