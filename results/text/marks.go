package text

import (
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text/layout"
)

// marks collects the explanations that a table turns out to need.
type marks map[string]bool

const (
	markNone      = "n/m not measurable here, see MEASUREMENT VALIDITY"
	markWaited    = "w could be waiting for a core in most rounds, see MEASUREMENT VALIDITY"
	markMax       = "≥ the largest value seen: too few samples for the percentile"
	markEvents    = "stalls: unreliable, dominated by fewer than 5 stalls"
	markRange     = "> longer than the histogram can tell"
	markSaturated = "saturated: cannot keep up with this rate, requests wait longer and longer"
	markModel     = "m statements to the in-process model, not to PostgreSQL"
)

// Percentile is a percentile as tables show it, and what its marks mean.
func Percentile(p results.Percentile) (cell string, notes []string) {
	legend := marks{}
	cell = legend.percentile(p)
	return cell, legend.explained()
}

func (m marks) percentile(p results.Percentile) string {
	switch p.Status {
	case results.NoSamples:
		return "-"
	case results.NotMeasurable:
		return m.timing(false, "")
	case results.EventDriven:
		m[markEvents] = true
		return "stalls"
	}
	text := format.NS(p.Value)
	switch {
	case p.Value >= float64(results.MaxDuration):
		m[markRange] = true
		text = "> 1 h"
	case !p.Shown():
		m[markMax] = true
		text = "≥" + text
	}
	if 2*p.Waited > p.Rounds {
		m[markWaited] = true
		return text + "w"
	}
	return text
}

// saturated stands where a strategy cannot keep up with the rate: its response time
// is that of a queue, and grows for as long as the run lasts.
func (m marks) saturated() string {
	m[markSaturated] = true
	return "saturated"
}

// reference renders p50 and p99 of the bare client.
func (m marks) reference(p *results.Percentiles) []string {
	if p == nil {
		return []string{"-", "-"}
	}
	return []string{m.percentile(p.P50), m.percentile(p.P99)}
}

func (m marks) timing(counts bool, text string) string {
	if counts {
		return text
	}
	m[markNone] = true
	return "n/m"
}

// sql renders statements per decision, and marks those that went to the model.
func (m marks) sql(sql, model float64, format func(float64) string) string {
	if sql == 0 && model > 0 {
		m[markModel] = true
		return format(model) + "m"
	}
	return format(sql)
}

// lines renders the explanations in a fixed order, after what always holds.
func (m marks) lines(page layout.Page, always string) []string {
	return noteLines(page, format.Join("; ", append([]string{always}, m.explained()...)...))
}

// explained are the explanations in a fixed order.
func (m marks) explained() (out []string) {
	for _, k := range []string{markNone, markWaited, markMax, markEvents, markRange, markSaturated, markModel} {
		if m[k] {
			out = append(out, k)
		}
	}
	return out
}

// noteLines renders what is said below a table.
func noteLines(page layout.Page, text string) []string {
	if text == "" {
		return nil
	}
	return page.Paragraph("  ", text)
}
