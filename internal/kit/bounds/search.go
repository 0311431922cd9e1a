package bounds

// LeastClients is how many callers the least search has that a claim needs.
const LeastClients = 2

// The bounds of a search.
const (
	// DefaultAsks is enough for limits of a few units, and MaxAsks the actions of a script.
	DefaultAsks = 4
	MaxAsks     = 16
	// DefaultStates bounds a search that is not given a bound.
	DefaultStates = 200_000
	// DefaultPreemptions bounds the second part of a search that is not given a bound. Most
	// races need one or two.
	DefaultPreemptions = 2
	// DefaultSamples is how many random schedules say how often what was found is met.
	DefaultSamples = 1000
)

// Limits of what one exploration accepts: more would never end.
const (
	MaxClients = 16
	MaxTimes   = 16
	// MaxUnits bounds a subject's units: Lua and JavaScript count no further.
	MaxUnits = 1 << 53
	// MaxStates and MaxSchedules bound a search and an enumeration: each state is
	// held in memory, and each schedule is a run.
	MaxStates    = 20_000_000
	MaxSchedules = 1_000_000_000_000
)

// MaxSpread is the largest limit, in units, with which requests in different parts of a window are searched: it takes
// twice as many of them.
const MaxSpread = 5
