package codes

// StoreRestarted is the code of the finding that a store died in mid-run, or that another
// server took its place, and nobody had asked for it.
const StoreRestarted = "store-restarted"

// NeverCrossed is the code of the finding that no subject was asked for more than its limit.
const NeverCrossed = "limit-never-crossed"

// ClocksDiffer is the code of the note that explains verdicts of strategies that go by the instances' clocks.
const ClocksDiffer = "clocks-differ"

// SeveralRegions stands among faults for regions that each count in a store of their own: what
// is declared is about one store.
const SeveralRegions = "several regions"

// HistoryNotKept is the code of the finding that a history could not be kept.
const HistoryNotKept = "history-not-kept"

// The findings of a strategy that panicked, and of a call that did not return.
const (
	Panicked = "strategy-panicked"
	Hung     = "did-not-return"
)

// What a finding takes back or marks. No finding withholds a timing: what other programs
// did to a round is in its figures, which are marked.
const (
	DiscardsCorrectness = "correctness"
	// DiscardsRound: the round did not happen as planned, and is left out of the timings of
	// all strategies.
	DiscardsRound = "round"
	// Disturbs marks the timings: the machine or a store was not quiet.
	Disturbs = "disturbed"
	// DisturbsTimings marks the timings of the strategy for another reason.
	DisturbsTimings = "timings"
	// DisturbsResponse marks the response times of an open loop alone.
	DisturbsResponse = "response"
	DiscardsNothing  = "note"
)

// NotDrawn begins what is said of plots that could not be drawn.
const NotDrawn = "not drawn: "
