package plot

import (
	"slices"
	"strings"

	"github.com/quotabench/quotabench/results"
)

// captions collect who is missing from a plot, by what is missing and why.
type captions struct{ entries []captionEntry }

// NotMeasurable is why a drawing of timings is missing if the machine was disturbed in too
// many rounds.
const NotMeasurable = "timings are not measurable here, and the findings of the audit say why"

type captionEntry struct {
	what, why string
	who       []string
}

func (c *captions) add(what, label, why string) {
	i := slices.IndexFunc(c.entries, func(e captionEntry) bool { return e.what == what && e.why == why })
	if i < 0 {
		i = len(c.entries)
		c.entries = append(c.entries, captionEntry{what: what, why: why})
	}
	c.entries[i].who = append(c.entries[i].who, label)
}

// text is a sentence for each.
func (c *captions) text() string {
	var out []string
	for _, e := range c.entries {
		out = append(out, e.what+" ("+e.why+"): "+strings.Join(e.who, ", ")+".")
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
