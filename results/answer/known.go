package answer

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/results"
)

// knownFaults has a line for each strategy that a committed search broke: its name, a tab,
// and the worst that was found, in words. TestKnownFaults writes it.
//
//go:embed known.txt
var knownFaults string

var known = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(knownFaults) {
		name, words, _ := strings.Cut(strings.TrimSpace(line), "\t")
		all[name] = words
	}
	return all
})

// knownOf is what searches found of a strategy with its default options, which alone have
// been searched, e.g. "known: without a fault a leak (12 steps)".
func knownOf(s *results.Summary) []string {
	words, ok := known()[s.Strategy]
	if !ok || s.Label != s.Strategy {
		return nil
	}
	return []string{"known: " + words}
}
