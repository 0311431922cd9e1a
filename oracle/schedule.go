package oracle

import "slices"

// schedule is the table of weighted interval scheduling (Kleinberg and Tardos,
// Algorithm Design, section 6.1): of intervals that come in the order of their ends,
// it finds those with the largest sum of weights of which no two overlap. Here an
// interval is a stretch of time, and its weight is its excess.
//
// An interval has a place only if it raises the sum. So totals grow along the
// table, and of several choices with the same sum the one that ends first is kept.
type schedule[S any] []choice[S]

// choice is an interval and the largest sum if it is the last one chosen.
type choice[S any] struct {
	interval S
	total    int64 // the sum of weights, this one included
	before   int   // choices that end before this one begins
}

// total is the largest sum among the first choices.
func (s schedule[S]) total(choices int) int64 {
	if choices == 0 {
		return 0
	}
	return s[choices-1].total
}

// chosen are the intervals of the largest sum, by time.
func (s schedule[S]) chosen() (intervals []S) {
	for n := len(s); n > 0; n = s[n-1].before {
		intervals = append(intervals, s[n-1].interval)
	}
	slices.Reverse(intervals)
	return intervals
}
