package ranking

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// knownTable has a line for each finding of the committed searches that the answer names: strategy, faults with commas
// between them or "-", what is broken, and the steps of the schedule. A test writes it: go test . -run TestKnownFaults
// -update.
//
//go:embed known.tsv
var knownTable string

// Known is a finding of the committed searches: what they broke of a strategy with its default options.
type Known struct {
	// Faults that the schedule has; nil if it needs none.
	Faults []string
	// Broken is what is broken, e.g. "a leak".
	Broken string
	// Steps of the shortest schedule.
	Steps int64
}

// String is e.g. "a leak (12 steps)".
func (k Known) String() string {
	return fmt.Sprintf("%s (%s)", k.Broken, format.Plural(k.Steps, "step", "steps"))
}

// known are the findings by strategy.
var known = sync.OnceValue(func() map[string][]Known {
	findings := map[string][]Known{}
	for line := range strings.Lines(knownTable) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		steps, err := strconv.ParseInt(cells[3], 10, 64)
		if err != nil {
			panic("known.tsv: " + err.Error())
		}
		finding := Known{Broken: cells[2], Steps: steps}
		if cells[1] != "-" {
			finding.Faults = strings.Split(cells[1], ",")
		}
		findings[cells[0]] = append(findings[cells[0]], finding)
	}
	return findings
})

// adapted is the form of limiters that others wrote. One of them may have a name of ours.
const adapted = "library"

// searchedInstances is how many instances the committed searches have. What counts per process is right on one.
const searchedInstances = 2

// knownOf are the findings of a strategy with its default options. Only these were searched, and their label is the
// name.
func knownOf(summary *results.Summary) []Known {
	if summary.Form == adapted || summary.Params.Instances < searchedInstances {
		return nil
	}
	return known()[summary.Label]
}

// knownText says what searches found, a finding a text, e.g. "with crash, a search found a key that never expires (3
// steps)".
func knownText(findings []Known) (texts []string) {
	for _, finding := range findings {
		with := "without any fault"
		if finding.Faults != nil {
			with = "with " + strings.Join(finding.Faults, " and ")
		}
		texts = append(texts, with+", a search found "+finding.String())
	}
	return texts
}

// WithoutFault is what searches found of the strategy with its default options and without any fault, e.g.
// "a leak (12 steps)"; empty for nothing.
func (s *Strategy) WithoutFault() string {
	for _, finding := range s.Known {
		if finding.Faults == nil {
			return finding.String()
		}
	}
	return ""
}
