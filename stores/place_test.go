package stores

import "testing"

type unplaced struct{ Store }

// TestPlaceOf takes a store that says nothing about where it runs for a remote one.
func TestPlaceOf(t *testing.T) {
	if got := PlaceOf(unplaced{}); got != Elsewhere {
		t.Errorf("a store that does not say is %q", got)
	}
}
