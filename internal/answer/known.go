package answer

import (
	_ "embed"
	"strings"

	"github.com/quotabench/quotabench/results"
)

// knownFaults has a line for each strategy that a committed search broke: its name, a tab,
// and the worst that was found, in words. TestKnownFaults writes it.
//
//go:embed known.txt
var knownFaults string

// adapted is the form of limiters that others wrote. One of them may have a name of ours.
const adapted = "library"

// knownOf is what searches found of a strategy with its default options, which alone have
// been searched and whose label is its name, e.g. "known: without a fault a leak (12 steps)".
func knownOf(s *results.Summary) []string {
	_, found, ok := strings.Cut("\n"+knownFaults, "\n"+s.Label+"\t")
	if !ok || s.Form == adapted {
		return nil
	}
	words, _, _ := strings.Cut(found, "\n")
	return []string{"known: " + words}
}

// WithoutFault is what searches found of the strategy with its default options and without any
// fault, e.g. "a leak (12 steps)"; empty for nothing.
func (s *Strategy) WithoutFault() string {
	for _, c := range s.Conditions {
		if found, ok := strings.CutPrefix(c, "known: without a fault "); ok {
			found, _, _ = strings.Cut(found, "; under ")
			return found
		}
	}
	return ""
}
