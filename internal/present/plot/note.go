package plot

import (
	"strings"

	"github.com/quotabench/quotabench/internal/groups"
	"github.com/quotabench/quotabench/results"
)

// captions collect who is missing from a plot, by what is missing and why.
type captions struct{ groups.By[missing, string] }

// NotMeasurable is why a drawing of timings is missing if the machine was disturbed in too
// many rounds.
const NotMeasurable = "timings are not measurable here, and the findings of the audit say why"

type missing struct{ what, why string }

func (c *captions) add(what, label, why string) { c.Add(missing{what, why}, label) }

// text is a sentence for each.
func (c *captions) text() string {
	var out []string
	for _, m := range c.Keys {
		out = append(out, m.what+" ("+m.why+"): "+strings.Join(c.Of[m], ", ")+".")
	}
	return strings.Join(out, " ")
}

// why says for people what keeps a percentile from being shown.
func why(p results.Percentile) string {
	if p.Status == results.EventDriven {
		return "dominated by fewer than 5 stalls"
	}
	return string(p.Status)
}

// without says why no strategy has a figure.
func without(all []series, otherwise string) string {
	for _, s := range all {
		if s.Latency().P99.Status == results.NotMeasurable {
			return NotMeasurable
		}
	}
	return otherwise
}
