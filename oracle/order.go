package oracle

import (
	"cmp"
	"slices"
)

// ordered returns the events by subject and call. It returns the slice it was
// given if that is in order already, and a copy otherwise.
func ordered(events []Event) []Event {
	if slices.IsSortedFunc(events, compare) {
		return events
	}
	out := slices.Clone(events)
	slices.SortFunc(out, compare)
	return out
}

// compare is a total order but for events that differ in nothing that matters.
// Most events differ in the first two.
func compare(a, b Event) int {
	if a.Subject != b.Subject {
		return cmp.Compare(a.Subject, b.Subject)
	}
	if a.Call != b.Call {
		return cmp.Compare(a.Call, b.Call)
	}
	return cmp.Or(
		cmp.Compare(a.Reply, b.Reply), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Outcome, b.Outcome),
		cmp.Compare(a.Units, b.Units), cmp.Compare(a.TakeCall, b.TakeCall), cmp.Compare(a.TakeReply, b.TakeReply),
	)
}
