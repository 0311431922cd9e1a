package oracle

import "slices"

// ordered returns the events by subject and call. It returns the slice it was
// given where that is in order already, and a copy otherwise.
func ordered(events []Event) []Event {
	if slices.IsSortedFunc(events, compare) {
		return events
	}
	out := make([]Event, len(events))
	var top uint32
	for i := range events {
		top = max(top, events[i].Subject)
	}
	if int64(top) > 4*int64(len(events))+1024 { // numbers too sparse to count
		copy(out, events)
		slices.SortFunc(out, compare)
		return out
	}
	next := make([]int, int(top)+2)
	for i := range events {
		next[events[i].Subject+1]++
	}
	for i := 1; i < len(next); i++ {
		next[i] += next[i-1]
	}
	from := slices.Clone(next)
	for i := range events {
		s := events[i].Subject
		out[next[s]] = events[i]
		next[s]++
	}
	for s := 0; s <= int(top); s++ {
		if part := out[from[s]:from[s+1]]; !slices.IsSortedFunc(part, compare) {
			slices.SortFunc(part, compare)
		}
	}
	return out
}

// compare is a total order but for events that differ in nothing that matters.
func compare(a, b Event) int {
	switch {
	case a.Subject != b.Subject:
		return sign(int64(a.Subject) - int64(b.Subject))
	case a.Call != b.Call:
		return sign(a.Call - b.Call)
	case a.Reply != b.Reply:
		return sign(a.Reply - b.Reply)
	case a.Kind != b.Kind:
		return sign(int64(a.Kind) - int64(b.Kind))
	case a.Outcome != b.Outcome:
		return sign(int64(a.Outcome) - int64(b.Outcome))
	case a.Units != b.Units:
		return sign(a.Units - b.Units)
	case a.TakeCall != b.TakeCall:
		return sign(a.TakeCall - b.TakeCall)
	default:
		return sign(a.TakeReply - b.TakeReply)
	}
}

func sign(d int64) int {
	switch {
	case d < 0:
		return -1
	case d > 0:
		return 1
	default:
		return 0
	}
}
