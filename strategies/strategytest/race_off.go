//go:build !race

package strategytest

// crossingsPart divides how often callers cross.
const crossingsPart = 1
