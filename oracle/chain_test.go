package oracle

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// A leak that no single window shows, since each pair of requests fits: the second one has to be admitted 20 ns after
// the first, and the third 20 ns after that, but has had its reply by then.
func TestChainOfRequests(t *testing.T) {
	taken := func(call, reply int64) Event { return Event{Call: call, Reply: reply, Units: 1} }
	chain := []Event{taken(6, 14), taken(24, 27), taken(40, 44)}
	later := []Event{taken(6, 14), taken(24, 27), taken(40, 46)}
	twice := append(append([]Event(nil), chain...), taken(106, 114), taken(124, 127), taken(140, 144))
	rejected := append([]Event(nil), chain...)
	rejected[1].Outcome = Rejected
	two := []Event{taken(6, 14), taken(7, 14), taken(24, 27), taken(24, 27), taken(40, 44)}
	for name, c := range map[string]struct {
		events             []Event
		limit              int64
		leak, worst, least int64
	}{
		"chain":            {chain, 1, 1, 1, 1},
		"with time enough": {later, 1, 0, 0, 0},
		"twice":            {twice, 1, 2, 1, 2},
		"one is rejected":  {rejected, 1, 0, 0, 0},
		"room for two":     {chain, 2, 0, 0, 0},
		"two at a time":    {two, 2, 1, 1, 1},
	} {
		v := Judge(Config{Window: quota.Window{Kind: quota.Rolling, Length: 20 * time.Nanosecond}, Limit: c.limit,
			Epoch: time.Unix(7, 0)}, c.events)
		if v.LeakUnits != c.leak || v.LeakWorst != c.worst || v.LeakPossible < c.leak || v.LeakedRequests != c.leak ||
			v.OverOffered < c.leak {
			t.Errorf("%s: %d units leak, %d in the worst window, by %d requests, want %d and %d: %+v", name, v.LeakUnits,
				v.LeakWorst, v.LeakedRequests, c.leak, c.worst, v)
		}
	}
}

// For requests of one unit that come strictly one after the other, the certain leak is the fewest units that have to
// go.
func TestChainsAreExact(t *testing.T) {
	testenv.Sequential(t)
	const length = 2 * 8
	r := seeded(28)
	chained := 0
	for range 1500 {
		var ops []operation
		for at, n := r.Int64N(4), 3+r.IntN(2); len(ops) < n; at += r.Int64N(5) {
			o := operation{of: -1}
			o.Units = 1
			o.Call = at
			o.Reply = at + r.Int64N(5)
			at = o.Reply + 1
			ops = append(ops, o)
		}
		limit := 1 + r.Int64N(2)
		stays := make([]stay, len(ops))
		for i, o := range ops {
			stays[i] = stay{o.Call, o.Reply, o.Units}
		}
		least := int64(1 << 60)
		placements(stays, func(at []int64) {
			removed, _ := greedy(ops, at, limit, 0, length)
			least = min(least, removed)
		})
		cfg := Config{Window: quota.Window{Kind: quota.Rolling, Length: length / 2}, Limit: limit, Epoch: time.Unix(7, 0)}
		v := Judge(cfg, events(ops))
		if v.LeakUnits != least {
			t.Fatalf("limit %d: %d units leak, should be %d%s", limit, v.LeakUnits, least, explain(ops))
		}
		windows, _ := rollingLimit{length: length / 2, limit: limit}.leak(lowOf(stays, length/2))
		if excesses(windows) < least {
			chained++
		}
	}
	if chained < 10 {
		t.Errorf("%d of 1500 histories leak by chains alone", chained)
	}
}

// lowOf is what must lie in the window behind each moment.
func lowOf(stays []stay, length int64) *curve {
	var c curve
	c.reset(0)
	for _, s := range stays {
		c.addCertainStay(s.call, s.reply, s.units, length)
	}
	c.build()
	return &c
}
