package text

import (
	"strings"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/compare"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// tones are how words that judge are marked on a terminal.
var tones = map[string]layout.Tone{
	string(answer.Enforces): layout.Good, string(answer.Bounded): layout.Caution, string(answer.Loose): layout.Caution,
	string(answer.Fails):    layout.Bad,
	string(answer.Unusable): layout.Bad, string(answer.Baseline): layout.Faint,
	answer.Enforces.Verdict(): layout.Good, answer.Bounded.Verdict(): layout.Caution, answer.Undecided.Verdict(): layout.Caution,
	answer.Fails.Verdict(): layout.Bad, answer.Unusable.Verdict(): layout.Bad, answer.Baseline.Verdict(): layout.Faint,
	strings.ToUpper(results.Broken): layout.Bad, results.Undecided: layout.Caution, "invalid": layout.Bad,
	string(compare.Worse): layout.Bad, string(compare.Better): layout.Good,
	string(compare.Inconclusive): layout.Caution, string(compare.Discarded): layout.Caution,
}

// guaranteeTone marks a broken guarantee.
func guaranteeTone(cell string) layout.Tone {
	if strings.Contains(cell, Verdict(results.Broken)) {
		return layout.Bad
	}
	return layout.Plain
}

// ToneOf is how a cell is marked that consists of a word that judges.
func ToneOf(cell string) layout.Tone { return tones[cell] }
