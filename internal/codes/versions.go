package codes

// The versions of the JSON forms of explorations and series.
const (
	ExplorationVersion = 2
	SeriesVersion      = 1
)
