// Package compare compares two records of one kind, and checks conditions on one
// record, as the commands compare and run do. Rules: docs/comparing.md.
package compare

import (
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
)

// Side is one of the two records that are compared.
type Side = compare.Side

// Options say how strictly two records are compared.
type Options = compare.Options

// Tolerance is by how much an exact figure may become worse.
type Tolerance = compare.Tolerance

// Comparison is what was found. Package render has its formats.
type Comparison = compare.Comparison

// Row is one figure of one strategy on both sides, or a condition. Its method Fails says
// whether it fails.
type Row = compare.Row

// Gate is a condition that must hold, such as "leak<=0".
type Gate = compare.Gate

// Compare compares head with base.
func Compare(base, head Side, options Options) (*Comparison, error) {
	return compare.Compare(base, head, options)
}

// ParseRunGate reads a condition on runs, such as "p99/reference<=1.2".
func ParseRunGate(text string) (Gate, error) { return compare.ParseRunGate(text) }

// Check checks conditions on all strategies of a file.
func Check(file *results.File, gates []Gate) []Row { return compare.Check(file, gates) }

// ParseSearchGate reads a condition on a search for these properties.
func ParseSearchGate(text string, properties []results.Property) (Gate, error) {
	return compare.ParseSearchGate(text, properties)
}

// CheckSearches checks conditions on all searches.
func CheckSearches(exploration *results.Exploration, gates []Gate) []Row {
	return compare.CheckSearches(exploration, gates)
}
