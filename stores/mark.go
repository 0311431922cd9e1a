package stores

import "context"

// Marker is a store in which a run can leave a mark beside what a strategy keeps, so
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
	// There is whether the mark is still there, and where the store can tell so the
	// tables that were beside it.
	There bool
	// Incarnation is as in [Stats]; "" where the store does not tell.
	Incarnation string
	// Errors are commands answered with an error since the server's start, by its first
	// word, e.g. "OOM"; nil where the server does not count them.
	Errors map[string]int64
}
