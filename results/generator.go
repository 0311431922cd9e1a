package results

import (
	"fmt"
	"slices"
	"strings"
)

// HistoryName is the name of the file that keeps the run's history, without the directory:
// the strategy's label and the round.
func (r *Run) HistoryName() string {
	safe := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("-_.=", c):
			return c
		}
		return '_'
	}, r.Params.Label)
	return fmt.Sprintf("%s-%d.history", safe, r.Repetition)
}

// codePart is the finding that a run has one generator's part of the requests.
const codePart = "generator-part"

// Part adds the finding that the run is one generator's part, whose leak and false rejects
// say nothing without the others'.
func (a *Audit) Part(of string) {
	a.Discard(codePart, DiscardsCorrectness, "generator "+of+" has a part of the requests: quotabench merge judges all together")
}

// Sound reports whether nothing takes the correctness figures back, but that they may be
// of one generator's part.
func (a *Audit) Sound() bool {
	return !slices.ContainsFunc(a.Reasons, func(r Reason) bool {
		return r.Discards == DiscardsCorrectness && r.Code != codePart
	})
}
