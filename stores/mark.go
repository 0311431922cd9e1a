package stores

import "context"

// Marker is a store in which a run can leave a mark beside what a strategy keeps, so
// that it notices when the store loses what it holds. The mark goes with the scope: what
// wipes that wipes it, too.
type Marker interface {
	// Mark leaves the mark in a scope that was prepared.
	Mark(ctx context.Context, scope Scope) error
	// Marked reports whether it is still there. An error means that the store does not
	// answer, or not as it should.
	Marked(ctx context.Context, scope Scope) (bool, error)
	// Unmark removes it.
	Unmark(ctx context.Context, scope Scope) error
}
