//go:build !race

package strategytest

// crossingsPart divides how often callers cross.
var crossingsPart = 1
