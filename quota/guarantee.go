package quota

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Fault is something that goes wrong around a strategy.
type Fault string

// The faults.
const (
	FaultCrash     Fault = "crash"      // a caller dies after any of its store commands
	FaultLostReply Fault = "lost-reply" // a command took effect, and its connection ends before the reply
	FaultRetry     Fault = "retry"      // a client library repeats a command, and takes the second reply
	FaultClock     Fault = "clock"      // a deadline or a window passes at any moment, or a clock is wrong
	FaultEviction  Fault = "eviction"   // a store drops a key
	FaultOutage    Fault = "outage"     // a store cannot be reached
	FaultLimit     Fault = "limit"      // the limit is raised or lowered in mid-run
	FaultFailover  Fault = "failover"   // a store's replica takes its place, without the last writes
)

// Faults returns all faults that a clause may tolerate. A search injects neither a changed limit nor a failover, and
// services have further ones.
func Faults() []Fault {
	return []Fault{FaultCrash, FaultLostReply, FaultRetry, FaultClock, FaultEviction, FaultOutage, FaultLimit,
		FaultFailover}
}

// Property is what a clause is about.
type Property string

// The properties.
const (
	// PropertyLeak bounds units admitted over the limit.
	PropertyLeak Property = "leak"
	// PropertyFalseReject bounds units rejected although there was room.
	PropertyFalseReject Property = "false-reject"
)

// Params are what a clause's bound is evaluated with. They are measured in the
// run, not assumed.
type Params struct {
	Limit   int64 // units
	MaxCost int64 // units of the largest request
	// Deciding is the most requests of one subject that were being decided at the same time.
	Deciding int64
	// InFlight is the most requests of one subject in flight at the same time: those that were being decided, and
	// those whose work was under way, which were admitted and neither committed nor given back yet. What a strategy
	// that charges after the work has not counted is theirs.
	InFlight  int64
	Instances int64
	// Offered is the largest number of units asked of one subject in one window.
	Offered int64
	// SyncPeriod is the longest time from the start of a successful round of a job to the end
	// of the next one.
	SyncPeriod time.Duration
	// Unsynced is the most units that one subject was admitted within two SyncPeriods and the
	// longest of its requests: instances that tell a store what they admitted, and hear what
	// others did, in each round know of all others. 0 is not known.
	Unsynced int64
	// Skew is the largest difference between two instances' clocks.
	Skew time.Duration
	// Pause is for how long calls or rounds of jobs were held up at most, as a process is that
	// stands still, in a search or a simulation. In a measured run it is 0.
	Pause time.Duration
	// Policy in force, with the limit in force. It is shared and must not be changed.
	Policy *Policy
	// Options of the strategy, complete.
	Options Options
}

// Clause is one promise of a strategy: for policies of these kinds, judged in
// that clock and whatever tolerated faults happen, the property stays within
// the bound in every window of every subject.
type Clause struct {
	Property Property
	// Kinds of windows as judged, which may differ from those enforced: a fixed
	// window can promise something about the rolling one. Empty means all that
	// the strategy serves.
	Kinds []Kind
	// Clock decides which window a request belongs to: "instance", "redis" or
	// "postgres". Empty means the instance's.
	Clock string
	// Tolerates lists the faults under which the clause still holds.
	Tolerates []Fault
	// Formula is the bound for people, e.g. "L + (in flight - 1) x largest cost".
	Formula string
	// Condition is when the formula holds, e.g. "while no sync round has run"; empty if it always does.
	Condition string
	// Bound is the largest number of units by which one subject and window may
	// break the property: units over the limit, or units wrongly rejected.
	Bound func(Params) int64
	// Source names the design record that promises it, e.g. "ADR-RM-3"; empty for a strategy's own clause.
	Source string
	// Says is how the design record puts it, e.g. "the script reserves atomically".
	Says string
}

// From is the clause as a promise of a design record; see [Clause.Source] and [Clause.Says].
func (c Clause) From(source, says string) Clause {
	c.Source = source
	c.Says = says
	return c
}

// Under is the clause with a formula that holds under a condition; see [Clause.Condition].
func (c Clause) Under(condition string) Clause {
	c.Condition = condition
	return c
}

// AtMost is the formula with its condition.
func (c Clause) AtMost() string { return strings.TrimSpace(c.Formula + " " + c.Condition) }

// Claimed is the source with what it says.
func (c Clause) Claimed() string {
	if c.Says == "" {
		return c.Source
	}
	return c.Source + ": " + c.Says
}

// Applies reports whether the clause speaks about windows of kind k.
func (c Clause) Applies(k Kind) bool {
	return len(c.Kinds) == 0 || slices.Contains(c.Kinds, k)
}

// ByStore reports whether a store's clock decides which window a request belongs to.
func (c Clause) ByStore() bool { return c.Clock != "" && c.Clock != "instance" }

// Validate reports what a clause lacks.
func (c Clause) Validate() error {
	if c.Property == "" {
		return errors.New("a clause names no property")
	}
	if c.Formula == "" || c.Bound == nil {
		return fmt.Errorf("the %s clause has no bound or no formula", c.Property)
	}
	return nil
}

// Unbounded is a bound that nothing breaks. Only false-reject clauses may have it; a
// leak clause whose bound is [Params.Offered] is recorded with it.
const Unbounded = math.MaxInt64

// MayReject is the clause of a strategy that may reject requests that would fit
// into the limit, as a strict token bucket does, and bounds that by nothing.
func MayReject(tolerates ...Fault) Clause {
	return Clause{
		Property: PropertyFalseReject, Tolerates: tolerates,
		Formula: "any", Bound: func(Params) int64 { return Unbounded },
	}
}

// Exactly is the clause of a strategy that never admits a unit over the limit,
// under the given faults.
func Exactly(tolerates ...Fault) Clause {
	return Clause{
		Property: PropertyLeak, Tolerates: tolerates,
		Formula: "L", Bound: func(Params) int64 { return 0 },
	}
}

// PerInstance are the clauses of a limiter in memory that keeps the limit in each instance of
// the application, under the given faults, and so admits several limits if there are several
// instances. Windows that begin with a first request begin at other moments in each, and two
// of an instance may touch one of the policy's. Each instance's bucket refills for itself, so
// the excess of several grows with time.
func PerInstance(tolerates ...Fault) []Clause {
	clause := func(formula string, several func(params Params) int64, kinds ...Kind) Clause {
		return Clause{Property: PropertyLeak, Tolerates: tolerates, Kinds: kinds, Formula: formula,
			Bound: func(params Params) int64 {
				if params.Instances < 2 {
					return 0
				}
				return several(params)
			}}
	}
	return []Clause{
		clause("L x instances", func(params Params) int64 { return (params.Instances - 1) * params.Limit },
			Fixed, Rolling, CalendarHour, CalendarDay, CalendarMonth, Standing),
		clause("2 L x instances, or L on one instance", func(params Params) int64 {
			return (2*params.Instances - 1) * params.Limit
		}, FirstRequest),
		clause("what is asked, or L on one instance", func(params Params) int64 { return params.Offered }, Bucket),
	}
}

// Weighted is the clause of a counter that weighs the window before by the share of it
// that a rolling window would still hold: fewer than twice the limit in every rolling
// window. It is reached if the window before was used up at its very end, and this
// one is used up at its own.
func Weighted(tolerates ...Fault) Clause {
	return Clause{
		Property: PropertyLeak, Kinds: []Kind{Rolling}, Tolerates: tolerates,
		Formula: "2 L - 1", Bound: func(params Params) int64 { return max(0, params.Limit-1) },
	}
}
