package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/quotabench/quotabench/internal/figures"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// Reference stands in a gate for the same figure of the reference loop.
const Reference = "reference"

// SearchFields are the names that [ParseSearchGate] takes: the properties, each with the
// units by which a schedule breaks it, or 1 if it has none; "steps" of the shortest
// schedule of all; and "counterexamples", how many properties break.
func SearchFields(properties []results.Property) []string {
	return append([]string{Counterexamples, Steps}, format.Strings(properties)...)
}

func searchField(s *results.Search, name string) (float64, error) {
	switch name {
	case Counterexamples:
		return float64(len(s.Findings)), nil
	case Steps:
		fewest := math.Inf(1) // no schedule is as short as none
		for i := range s.Findings {
			fewest = min(fewest, float64(len(s.Findings[i].Steps)))
		}
		return fewest, nil
	}
	if !slices.Contains(s.Properties, results.Property(name)) {
		return 0, fmt.Errorf("%s was not looked for", name)
	}
	f := s.Found(results.Property(name))
	if f == nil {
		return 0, nil
	}
	return max(1, float64(format.Magnitude(f.Units))), nil
}

// isTime reports whether a field is in nanoseconds: then its number may have a unit.
func isTime(field string) bool {
	f := figures.Lookup(field)
	return f != nil && f.Unit == figures.Nanoseconds
}

// hasReference reports whether the reference loop has the same figure.
func hasReference(field string) bool {
	return field == Throughput || figures.Lookup("bare."+field) != nil
}
