//go:build !race

package main

// raceEnabled is set in builds with the race detector.
const raceEnabled = false
