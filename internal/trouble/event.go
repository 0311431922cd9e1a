// Package trouble says what goes wrong in a run on purpose, or changes in it: where, what and when. Plans and records
// have the same events. An event is written as WHERE:WHAT@WHEN, e.g. "redis:away@0.3-0.6".
package trouble

import (
	"cmp"
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Event is one thing that goes wrong in a run, or changes in it.
type Event struct {
	Where Where
	What  What
	When  When
}

// Where is the part of the system that an event is for.
type Where struct {
	// Name is that of a store, such as "redis" or "postgres.2", or one of [Instances], [Callers], [Keys] and [Limit].
	Name string
	// Instance is the only one that the event is for, counted from 0, or [All]. The network of a store is one per
	// instance.
	Instance int
	// Pattern is that of the [Keys], without the prefix of the run.
	Pattern string
}

// All is [Where.Instance] of an event that is for every instance.
const All = -1

// The places of events that are for no store.
const (
	Instances = "instances"
	Callers   = "callers"
	Keys      = "keys"
	Limit     = "limit"
)

// Has reports whether the event is for an instance.
func (w Where) Has(instance int) bool { return w.Instance == All || w.Instance == instance }

// What happens.
type What struct {
	// Word says it; "" is for the [Conditions] of a network.
	Word Word
	// For is how long instances are [Paused], how far their [Clock] is ahead, and how far a replica is behind its master
	// before a [Failover]; 0 leaves the latter to the servers.
	For time.Duration
	// Units are those of [Add] and [Is].
	Units int64
	// Share of the callers is [Killed], each after so many of its commands to a Redis.
	Share float64
	After int
	// Conditions of a network.
	Conditions
}

// Conditions are what is wrong with the network between instances and a store.
type Conditions struct {
	// Latency is added to each round trip, and Jitter is added to it or taken off, evenly distributed.
	Latency, Jitter time.Duration
	// Bandwidth is that of one instance, each way, in bytes per second; 0 is no bound.
	Bandwidth float64
	// Loss and ReplyLoss are shares of the requests, 0 to 1, that end in a connection that is reset: before the request
	// has reached the store, or when the first bytes of its reply come.
	Loss, ReplyLoss float64
	// Cut holds back all that is sent either way until it ends, at the end of the duration at the latest. Nobody is told.
	Cut bool
}

// Delay is by how much a round trip is longer. Draw is a random number from 0 to below 1.
func (c *Conditions) Delay(draw float64) time.Duration {
	return c.Latency + time.Duration((2*draw-1)*float64(c.Jitter))
}

// When an event lasts, in shares of the duration: 0 to 1. One of a single moment has two equal ones.
type When struct{ From, To float64 }

// Always is from the beginning to the end.
var Always = When{0, 1}

// Within is when the event begins and ends in a run of that length, since the run's beginning.
func (w When) Within(length time.Duration) (from, to time.Duration) {
	return time.Duration(w.From * float64(length)), time.Duration(w.To * float64(length))
}

// In reports whether the event lasts at that time since the beginning of a run of that length. One that lasts until 1
// lasts until the run has ended.
func (w When) In(since, length time.Duration) bool {
	from, to := w.Within(length)
	return since >= from && (since < to || w.To == 1)
}

// Faults are what happens to strategies in the outage of a store or by its network. There are none if requests only
// take longer.
func (e *Event) Faults() (out []quota.Fault) {
	if e.Kind() != Network {
		return itemOf(e).faults
	}
	// What is held back by a cut may take effect after its caller has given up.
	if e.What.Loss > 0 || e.What.Cut {
		out = append(out, quota.FaultOutage)
	}
	if e.What.ReplyLoss > 0 || e.What.Cut {
		out = append(out, quota.FaultLostReply)
	}
	return out
}

// Kind groups events that are carried out alike.
type Kind int

// The kinds of events.
const (
	Outage  Kind = iota // of a store, which is taken away or broken
	Network             // the one to a store is worse
	Kill                // callers die within their decisions
	Tamper              // somebody else adds to counters
	Change              // all subjects get another limit
	Pause               // instances stand still
	Restart             // instances lose their memory and the calls within them
	Skew                // clocks are wrong
)

// Kind of the event.
func (e *Event) Kind() Kind {
	if item := itemOf(e); item != nil {
		return item.kind
	}
	return Network
}

// Away is the event of the same store that is merely away at the same time.
func (e Event) Away() Event {
	e.What = What{Word: Away}
	return e
}

// Breaks reports whether something is done to a server that the program has started, instead of taking the store away.
func (e *Event) Breaks() bool {
	item := itemOf(e)
	return item != nil && item.breaks
}

// List is all that goes wrong in a run.
type List []Event

// Of returns the events of some kinds.
func (l List) Of(kinds ...Kind) (out List) {
	for i := range l {
		if slices.Contains(kinds, l[i].Kind()) {
			out = append(out, l[i])
		}
	}
	return out
}

// Without returns the events of all other kinds.
func (l List) Without(kinds ...Kind) List {
	return slices.DeleteFunc(slices.Clone(l), func(event Event) bool { return slices.Contains(kinds, event.Kind()) })
}

// InTime returns the events in the order of their beginnings.
func (l List) InTime() List {
	sorted := slices.Clone(l)
	slices.SortStableFunc(sorted, func(a, b Event) int { return cmp.Compare(a.When.From, b.When.From) })
	return sorted
}

// Has reports whether the word is among what happens.
func (l List) Has(word Word) bool {
	return slices.ContainsFunc(l, func(event Event) bool { return event.What.Word == word })
}

// Strings returns the texts of the events.
func (l List) Strings() (out []string) {
	for _, event := range l {
		out = append(out, event.String())
	}
	return out
}

// Clock is how far an instance's clock is ahead, and since when, from the start on; 0 is always.
type Clock struct{ Ahead, From time.Duration }

// Clocks returns those of so many instances in a run of that length; nil if the list has no clock.
func (l List) Clocks(instances int, length time.Duration) (out []Clock) {
	for _, event := range l.Of(Skew) {
		if out == nil {
			out = make([]Clock, instances)
		}
		clock := Clock{Ahead: event.What.For}
		if event.When != Always {
			clock.From, _ = event.When.Within(length)
		}
		for i := range out {
			if event.Where.Has(i) {
				out[i] = clock
			}
		}
	}
	return out
}

// ClockAhead is the event of an instance whose clock is always wrong.
func ClockAhead(instance int, duration time.Duration) Event {
	return Event{Where: Where{Name: Instances, Instance: instance}, What: What{Word: Ahead, For: duration}, When: Always}
}
