package trouble

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Word says what happens.
type Word string

// The words that need to be told apart.
const (
	Away       Word = "away"        // a store cannot be reached
	Empty      Word = "empty"       // a store is away, and comes back without anything that it held
	Failover   Word = "failover"    // a master dies, and its replica takes its place
	Restarted  Word = "restarted"   // a server is killed and started again on its data; an instance loses its memory
	NodeKilled Word = "node-killed" // a master of a cluster dies, and its replica takes its place
	SlotMoved  Word = "slot-moved"  // keys of a cluster go to another master
	Evicting   Word = "evicting"    // a Redis drops keys
	Killed     Word = "killed"      // callers die
	Add        Word = "add"         // somebody else adds to counters
	Is         Word = "is"          // the limit is another one
	Paused     Word = "paused"      // instances stand still
	Ahead      Word = "clock"       // clocks are wrong
)

// MaxLatency is the most by which a round trip can be made longer, MaxClock by which a clock can be wrong, and
// maxAfter after how many commands a caller can be killed.
const (
	MaxLatency = time.Hour
	MaxClock   = 366 * 24 * time.Hour
	maxAfter   = 1000
)

// timing is when an event may happen.
type timing int

const (
	always     timing = iota
	during            // always, or in an interval
	anyMoment         // before the end
	laterThan0        // a moment after the beginning and before the end
	since             // always, or from such a moment on
)

// item is a word of the grammar with its value.
type item struct {
	name Word
	// place is "" for stores.
	place string
	kind  Kind
	when  timing
	// example is a text with the word.
	example string
	// value is nil if the word has none. It is optional for a replica that is behind.
	value    *value
	optional bool
	// part is set if the word is one of several that are given together.
	part bool
	// faults are what an outage is for strategies. A command of which the caller knows no answer may still take effect
	// when its store goes on, or may have before that was killed. What a caller does who has a script no more is no fault
	// of the store. Commands of several keys of a slot are refused while it moves.
	faults []quota.Fault
	breaks bool
}

// value reads what follows the equals sign, and writes it.
type value struct {
	read  func(what *What, text string) bool
	write func(what *What) (text string, zero bool)
}

// items are all words. The first one of a place is offered to those who name none.
var items = []item{
	{name: Away, when: during, example: "redis:away@0.3-0.6", faults: []quota.Fault{quota.FaultOutage}},
	{name: Empty, when: during, example: "redis:empty@0.3-0.6",
		faults: []quota.Fault{quota.FaultOutage, quota.FaultEviction}},
	{name: Failover, when: during, example: "redis:failover=20ms@0.5-0.52", value: behind, optional: true,
		faults: []quota.Fault{quota.FaultOutage, quota.FaultFailover}},
	broken("stopped", quota.FaultOutage, quota.FaultLostReply),
	broken(Restarted, quota.FaultOutage, quota.FaultLostReply),
	broken("flushed", quota.FaultEviction),
	broken("scripts-lost"),
	broken("full", quota.FaultOutage),
	broken(Evicting, quota.FaultEviction),
	broken("node-stopped", quota.FaultOutage, quota.FaultLostReply, quota.FaultFailover),
	broken(NodeKilled, quota.FaultOutage, quota.FaultLostReply, quota.FaultFailover, quota.FaultRetry),
	broken(SlotMoved, quota.FaultOutage),
	broken("locked", quota.FaultOutage),
	broken("commits-fail", quota.FaultOutage),
	broken("connections-taken", quota.FaultOutage, quota.FaultLostReply),

	condition("latency", "redis:latency=2ms,jitter=1ms", span(func(what *What) *time.Duration {
		return &what.Latency
	}, 0, MaxLatency)),
	condition("jitter", "redis:latency=2ms,jitter=1ms", span(func(what *What) *time.Duration {
		return &what.Jitter
	}, 0, MaxLatency)),
	condition("bandwidth", "redis:bandwidth=100kB", bandwidth),
	condition("loss", "redis:loss=0.01", share(func(what *What) *float64 { return &what.Loss })),
	condition("reply-loss", "redis:reply-loss=0.01", share(func(what *What) *float64 { return &what.ReplyLoss })),
	condition("cut", "redis/1:cut@0.3-0.6", nil),

	{name: Paused, place: Instances, kind: Pause, when: anyMoment, example: "instance/1:paused=300ms@0.5",
		value: span(forTime, 1, math.MaxInt64)},
	{name: Restarted, place: Instances, kind: Restart, when: anyMoment, example: "instance/1:restarted@0.5"},
	{name: Ahead, place: Instances, kind: Skew, when: since, example: "instance/1:clock=-2s@0.5",
		value: span(forTime, -MaxClock, MaxClock)},
	{name: Killed, place: Callers, kind: Kill, when: always, example: "callers:killed=0.01,after=2", value: share(
		func(what *What) *float64 { return &what.Share })},
	{name: "after", place: Callers, kind: Kill, when: always, example: "callers:killed=0.01,after=2", value: after,
		part: true},
	{name: Add, place: Keys, kind: Tamper, when: laterThan0, example: "keys/quota:*:add=100@0.5",
		value: units(math.MinInt64, math.MaxInt64)},
	{name: Is, place: Limit, kind: Change, when: laterThan0, example: "limit:is=40@0.5", value: units(1, quota.MaxLimit)},
}

// broken is something that is done to a started server.
func broken(name Word, faults ...quota.Fault) item {
	return item{name: name, when: during, example: "redis:" + string(name) + "@0.3-0.6", faults: faults, breaks: true}
}

// condition is one of a network.
func condition(name Word, example string, v *value) item {
	if v == nil {
		v = &value{
			read:  func(what *What, text string) bool { what.Cut = true; return text == "" },
			write: func(what *What) (string, bool) { return "", !what.Cut },
		}
	}
	return item{name: name, kind: Network, when: during, example: example, value: v, optional: name == "cut", part: true}
}

func forTime(what *What) *time.Duration { return &what.For }

// behind is at least a nanosecond if it is given.
var behind = span(forTime, 1, math.MaxInt64)

// span is a time between two bounds.
func span(of func(*What) *time.Duration, least, most time.Duration) *value {
	read := func(what *What, text string) bool {
		duration, err := time.ParseDuration(text)
		*of(what) = duration
		return err == nil && duration >= least && duration <= most
	}
	write := func(what *What) (string, bool) {
		text := strings.Replace(quota.LengthText(*of(what)), "µ", "u", 1) // as it can be typed
		return text, *of(what) == 0
	}
	return &value{read, write}
}

// decimal writes a number without an exponent, whose sign would be taken for that of an interval.
func decimal(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// share is a number from 0 to 1.
func share(of func(*What) *float64) *value {
	read := func(what *What, text string) bool {
		value, err := strconv.ParseFloat(text, 64)
		*of(what) = value
		return err == nil && value >= 0 && value <= 1
	}
	return &value{read, func(what *What) (string, bool) { return decimal(*of(what)), *of(what) == 0 }}
}

// units are a whole number other than 0.
func units(least, most int64) *value {
	read := func(what *What, text string) bool {
		n, err := strconv.ParseInt(text, 10, 64)
		what.Units = n
		return err == nil && n != 0 && n >= least && n <= most
	}
	return &value{read, func(what *What) (string, bool) { return strconv.FormatInt(what.Units, 10), what.Units == 0 }}
}

// after counts the commands of a caller that is killed. The first one need not be said.
var after = &value{
	read: func(what *What, text string) bool {
		n, err := strconv.Atoi(text)
		what.After = n
		return err == nil && n >= 1 && n <= maxAfter
	},
	write: func(what *What) (string, bool) {
		return strconv.Itoa(what.After), what.After == 1 || what.Word != Killed
	},
}

// bandwidth is a number of bytes per second.
var bandwidth = &value{
	read: func(what *What, text string) bool {
		value, err := strconv.ParseFloat(strings.TrimSuffix(scaled.Replace(text), "B"), 64)
		what.Bandwidth = value
		return err == nil && value >= 1 && value <= 1e12
	},
	write: func(what *What) (string, bool) {
		value := what.Bandwidth
		unit := "B"
		for _, larger := range []string{"kB", "MB", "GB"} {
			if value < 1000 || math.Mod(value, 1000) != 0 {
				break
			}
			value /= 1000
			unit = larger
		}
		return decimal(value) + unit, what.Bandwidth == 0
	},
}

var scaled = strings.NewReplacer("kB", "e3", "MB", "e6", "GB", "e9")

// place is the one of an event's words; "" for a store.
func (w Where) place() string {
	switch w.Name {
	case Instances, Callers, Keys, Limit:
		return w.Name
	}
	return ""
}

// itemOf is the word of an event; nil for a network.
func itemOf(event *Event) *item {
	if event.What.Word == "" {
		return nil
	}
	return find(event.Where.place(), event.What.Word)
}

// find returns the word of a place, or nil.
func find(place string, name Word) *item {
	for i := range items {
		if items[i].place == place && items[i].name == name {
			return &items[i]
		}
	}
	return nil
}

// Examples are texts of all that can happen.
func Examples() (out []string) {
	for _, item := range items {
		if len(out) == 0 || out[len(out)-1] != item.example {
			out = append(out, item.example)
		}
	}
	return out
}
