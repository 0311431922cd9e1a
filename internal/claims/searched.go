package claims

import (
	"math"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// Steps of the shortest schedule that a search found.
const Steps results.Property = "steps"

// found is what a search says of a property: 0 if no schedule breaks it, else the units of the one that was found,
// or 1. A schedule that was not tried may break it by more.
func found(s *results.Search, p results.Property) any {
	if len(s.Withheld) > 0 {
		return missing{why: s.Withheld[0].Detail}
	}
	least := between(0, math.Inf(1))
	for i := range s.Findings {
		f := &s.Findings[i]
		switch {
		case p == Steps && (i == 0 || float64(len(f.Steps)) < least.Hi):
			least = exactly(float64(len(f.Steps)))
		case p == f.Property:
			return between(float64(max(1, format.Magnitude(f.Units))), math.Inf(1))
		}
	}
	switch {
	case p == Steps && len(s.Findings) > 0:
		return least
	case p == Steps:
		return absent("the search found no schedule")
	case !slices.Contains(s.Properties, p):
		return absent("the search did not look for %s", p)
	case len(s.Unmet) > 0:
		return absent("no schedule had a fault that was asked for: %s", strings.Join(format.Strings(s.Unmet), ", "))
	case p == results.FalseRejectProperty && s.AllowedBy != "":
		return between(float64(max(1, s.AllowedUnits)), math.Inf(1))
	case s.Capped != "":
		return absent("the search did not end (%s), and found none so far", s.Capped)
	}
	return exactly(0)
}

func isSearch(v any) bool {
	o, ok := v.(object)
	if !ok {
		return false
	}
	_, ok = o.Interface().(*results.Search)
	return ok
}

// overSearches is what all searches of a strategy found together: the shortest schedule, the most units, or none if all say so.
func overSearches(list []any, name string) any {
	var out any
	for _, v := range list {
		n, told := v.(Number)
		switch old, found := out.(Number); {
		case !told && found && old.Hi > 0, told && n.Hi == 0 && out != nil: // what was found stands, and what is not known, too
		case !told, !found || old.Hi == 0, name == string(Steps) && n.Lo < old.Lo, name != string(Steps) && n.Lo > old.Lo:
			out = v
		}
	}
	return out
}
