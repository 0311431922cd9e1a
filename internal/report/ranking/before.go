package ranking

import (
	"cmp"
	"slices"
	"strings"
)

// Prospect is a strategy of which no figure is known yet.
type Prospect struct {
	// Label is how the command line takes the strategy.
	Label string
	// PerProcess is set if each instance of the application counts for itself.
	PerProcess bool
	// WellKnown is set if people would try it: a design record describes it, or it is a well-known way.
	WellKnown bool
	// Stores that it needs.
	Stores int
	// Searched is set if searches looked at all that they were to look at, and found nothing that speaks against it.
	Searched bool
	// Bounded is set if it was seen to admit more than the limit within what it declares.
	Bounded bool
	// Declares is the strictest bound on its leak that it declares, in units; [quota.Unbounded] for none.
	Declares int64
}

// SortProspects puts those first that are to be measured if not all can be: as [Sort] does, what enforces the limit
// comes before what does within a bound. Among those, what declares that nothing leaks comes first, then what a design
// record describes or is well known, then what needs fewer stores.
func SortProspects(all []Prospect) {
	slices.SortStableFunc(all, func(a, b Prospect) int {
		return cmp.Or(
			falseFirst(a.Bounded, b.Bounded),
			falseFirst(a.PerProcess, b.PerProcess),
			falseFirst(!a.Searched, !b.Searched),
			falseFirst(a.Declares > 0, b.Declares > 0),
			falseFirst(!a.WellKnown, !b.WellKnown),
			cmp.Compare(a.Stores, b.Stores),
			strings.Compare(a.Label, b.Label),
		)
	})
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
