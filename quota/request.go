package quota

import (
	"fmt"
	"time"
)

// Subject is the holder of a quota: a user, a link, an address, an agent.
type Subject string

// Tier names the place where a decision was made or a count is kept. A strategy
// may use names of its own; these are the ones that built-in strategies use.
type Tier string

// The tiers of the built-in strategies.
const (
	TierProcess  Tier = "process"  // memory of the application's own process
	TierFilter   Tier = "bloom"    // in-process Bloom filter
	TierRedis    Tier = "redis"    // Redis
	TierPostgres Tier = "postgres" // PostgreSQL
	TierModel    Tier = "model"    // in-process stand-in for PostgreSQL
)

// Request asks for units of one subject's quota.
type Request struct {
	// ID is unique within a run. A retry of the same request carries the same ID.
	ID      uint64
	Subject Subject
	// Policy is shared and must not be changed.
	Policy *Policy
	// Units asked for, at least 1.
	Units int64
	// Settles is set if the caller has work to do that ends in a commit or a
	// refund, or in nothing if the caller is gone by then. Strategies that charge
	// after the work may wait for that.
	Settles bool
	// Life is how long the work of a request that settles may take, such as the life
	// of a pre-signed URL. What is neither committed nor refunded by then never will
	// be, and no caller holds its units any more. 0 is unlimited.
	Life time.Duration
	// Second is another quota that the same request is charged to, such as that of a route
	// next to that of a user. Its Policy is nil if there is none, and shared otherwise.
	Second struct {
		Subject Subject
		Policy  *Policy
	}
}

// String says what is asked for, e.g. `3 links for "alice"`.
func (r Request) String() string {
	unit := "units"
	if r.Policy != nil {
		unit = r.Policy.Unit
	}
	text := fmt.Sprintf("%d %s for %q", r.Units, unit, string(r.Subject))
	if r.Second.Policy != nil {
		text += fmt.Sprintf(" and %q", string(r.Second.Subject))
	}
	return text
}

// Decision is a strategy's answer.
type Decision struct {
	Admitted bool
	// Degraded is set if the decision was made without the store that should
	// have made it: failing open or failing closed.
	Degraded bool
	// BySecond is set if a request was rejected by its second quota, and its first one
	// had room.
	BySecond bool
	// Granted is how many units an admitted request gets, if that is fewer than it
	// asked for; 0 is all of them.
	Granted int64
	// Tier that decided.
	Tier Tier
	// Remaining units as the strategy believes them, or -1 if it does not know.
	Remaining int64
	// RetryAfter is how long a rejected caller should wait; 0 if unknown.
	RetryAfter time.Duration
	// Reservation of an admitted request, to commit or refund. Only strategies
	// that can do either fill it in. Its request has the units that were granted.
	Reservation Reservation
}

// String says what a caller is told, e.g. "admitted by redis, 3 remain".
func (d Decision) String() string {
	text := "rejected"
	if d.Admitted {
		text = "admitted"
	}
	if d.Granted > 0 {
		text += fmt.Sprintf(" with %d units", d.Granted)
	}
	if d.Tier != "" {
		text += " by " + string(d.Tier)
	}
	if d.BySecond {
		text += ", for its second quota"
	}
	if d.Degraded {
		text += ", without the store that should decide"
	}
	if d.Remaining >= 0 {
		text += fmt.Sprintf(", %d remain", d.Remaining)
	}
	if d.RetryAfter != 0 {
		text += ", retry after " + d.RetryAfter.String()
	}
	return text
}

// Units is how many units the decision grants to a request that asks for so many: 0
// if it is rejected. An error says that no strategy may grant so many.
func (d Decision) Units(asked int64) (int64, error) {
	switch {
	case d.Granted < 0 || d.Granted > asked || d.Granted > 0 && !d.Admitted:
		return 0, fmt.Errorf("%d units granted, admitted %v, to a request for %d", d.Granted, d.Admitted, asked)
	case !d.Admitted:
		return 0, nil
	case d.Granted > 0:
		return d.Granted, nil
	default:
		return asked, nil
	}
}

// Reservation is what an admitted request holds until it is committed or
// refunded.
type Reservation struct {
	Request Request
	// Window is the index of the window charged, as [Window.At] numbers it.
	Window int64
	// Committed is set by the caller once it has committed: a refund after that
	// deletes what was stored.
	Committed bool
}

// String says what is held, e.g. `a reservation of 3 links for "alice"`.
func (r Reservation) String() string { return "a reservation of " + r.Request.String() }

// Reading is what one tier believes a subject has consumed.
type Reading struct {
	Tier  Tier
	Units int64
	// Known is false if the tier has no record of the subject, which is not
	// the same as a record of 0.
	Known bool
	// PerInstance is set if the record is this instance's alone and each instance
	// keeps its own: then the readings of all instances add up to what the tier
	// believes. Otherwise every instance reads the same record.
	PerInstance bool
	// Lapsing are those of Units that end by themselves unless they are settled
	// before, as a reservation with a deadline does.
	Lapsing int64
}

// String says what the tier believes, e.g. "redis: 3 units".
func (r Reading) String() string {
	if !r.Known {
		return string(r.Tier) + ": no record"
	}
	text := fmt.Sprintf("%s: %d units", r.Tier, r.Units)
	if r.Lapsing > 0 {
		text += fmt.Sprintf(", of which %d lapse", r.Lapsing)
	}
	return text
}

// Counting says which units a strategy's counter contains when it works as it
// was built to, so that readings of it can be checked against the truth.
type Counting string

// The ways of counting.
const (
	CountsAdmitted Counting = "admitted" // admitted less given back
	CountsAttempts Counting = "attempts" // also the units of rejected requests
	CountsNothing  Counting = "nothing"  // keeps no count
)

// ErrorKind says what kept a request from being decided.
type ErrorKind string

// The kinds.
const (
	// ErrorContention: others changed the same data in the meantime, too often or at
	// the wrong moment, e.g. a conflict of versions or a lock that could not be had.
	ErrorContention ErrorKind = "contention"
	// ErrorTimeout: there was no answer in the time that the caller, the strategy, its
	// client or the store allows.
	ErrorTimeout ErrorKind = "time-out"
	// ErrorStore: the store was not there, or would not do what any client may ask of
	// it, e.g. a connection that was refused, a server that is read-only or full.
	ErrorStore ErrorKind = "store"
	// ErrorOther: all else, e.g. a mistake of the strategy or of this program.
	ErrorOther ErrorKind = "other"
)
