package stores

import (
	"cmp"
	"context"
	"fmt"
)

// Keeper is a [Store] on a server that others use too, and that knows which process
// keeps what there: each scope has a lease that its process renews for as long as it
// lives. So what a killed process left can be told from what a living one holds, on
// this machine and on others.
type Keeper interface {
	Store
	// Lease enters the scope as this process', until Wipe removes it. Prepare does so
	// by itself. A scope that another living process holds is an error.
	Lease(ctx context.Context, scope Scope) error
	// Holdings lists what processes keep. thorough also finds what has no lease, which
	// may take as long as looking at every key of the server.
	Holdings(ctx context.Context, thorough bool) ([]Holding, error)
	// Discard removes a holding, and says how many things it removed (see [Amount]). One that
	// has changed since it was listed is left alone: it removes 0.
	Discard(ctx context.Context, holding Holding) (removed int64, err error)
}

// Holding is what one process keeps of one scope.
type Holding struct {
	// Scope is what it is named after.
	Scope Scope
	// Name is its name on the server: the keys' prefix, or the schema, or what the
	// names of nodes and streams begin with.
	Name string
	// State says whether anyone uses it.
	State HoldingState
	// Owner names the process for people; empty if it is unknown.
	Owner string
	// Keys that it has; 0 if it has none or if they are not counted.
	Keys int64
	// Entry is the lease as the server has it.
	Entry string
}

// HoldingState says whether a process uses a holding.
type HoldingState string

// The states.
const (
	// HeldLive belongs to a process that lives, as far as can be known.
	HeldLive HoldingState = "in use"
	// HeldDead belongs to a process that ended without removing it.
	HeldDead HoldingState = "left"
	// HeldUnknown has no lease: what made it is older than leases, or no quotabench.
	HeldUnknown HoldingState = "unknown"
)

// Lease enters the scope with a store that keeps leases, and does nothing otherwise.
func Lease(ctx context.Context, store Store, scope Scope) error {
	if k, ok := store.(Keeper); ok && !store.Owned() {
		return k.Lease(ctx, scope)
	}
	return nil
}

// RemoveDead removes what processes that ended without doing so left in the store.
// It says what it removed, in one line without the store's name; "" if there was
// nothing. What living processes hold, and what has no lease, stays.
func RemoveDead(ctx context.Context, store Store) (string, error) {
	k, ok := store.(Keeper)
	if !ok || store.Owned() {
		return "", nil
	}
	held, err := k.Holdings(ctx, false)
	if err != nil {
		return "", err
	}
	var removed int64
	owners := map[string]bool{}
	last := ""
	for _, holding := range held {
		if holding.State != HeldDead {
			continue
		}
		n, err := k.Discard(ctx, holding)
		if err != nil {
			return "", err
		}
		removed += n
		owners[holding.Owner] = true
		last = holding.Owner
	}
	switch len(owners) {
	case 0:
		return "", nil
	case 1:
		return fmt.Sprintf("removed %s that a run left which had ended without doing so (%s)",
			Amount(store.Driver(), removed), last), nil
	}
	return fmt.Sprintf("removed %s that %d runs left which had ended without doing so (%s, and others)",
		Amount(store.Driver(), removed), len(owners), last), nil
}

// Amount is a number of what stores of a driver keep, for people, e.g. "1 key", "2
// schemas".
func Amount(driver string, n int64) string {
	what := "key"
	if d, ok := drivers[driver]; ok {
		what = cmp.Or(d.Noun, what)
	}
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Marker is a store in which a run can leave a mark next to what a strategy keeps, so
// that it notices when the store loses what it holds. The mark goes with the scope: what
// wipes that wipes it, too. A replica has no mark of its own, and is asked for its other
// signs alone.
type Marker interface {
	// Mark leaves the mark in a scope that was prepared.
	Mark(ctx context.Context, scope Scope) error
	// Marked writes to the mark, and reports what the store shows of itself. An error
	// means that the store does not answer, or not as it should.
	Marked(ctx context.Context, scope Scope) (Sign, error)
	// Unmark removes it.
	Unmark(ctx context.Context, scope Scope) error
}

// Sign is what a store shows of itself in the middle of a run.
type Sign struct {
	// There is whether the mark is still there, and, if the store can tell, the
	// tables that were next to it.
	There bool
	// Incarnation is as in [Stats]; "" if the store does not tell.
	Incarnation string
	// Errors are commands answered with an error since the server's start, by its first
	// word, e.g. "OOM"; nil if the server does not count them.
	Errors map[string]int64
}
