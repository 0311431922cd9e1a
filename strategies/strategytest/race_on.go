//go:build race

package strategytest

// crossingsPart divides how often callers cross. The race detector makes a crossing many times as slow, and
// does not need the moment to be met: it reports memory that two callers share unguarded whenever they come.
var crossingsPart = 50
