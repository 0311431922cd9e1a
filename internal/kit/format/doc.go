// Package format renders single figures for people: durations, counts, shares and
// units, the same in tables and in plots.
package format
