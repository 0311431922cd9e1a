package text

import (
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text/layout"
)

// marks collects the explanations that a table turns out to need.
type marks map[string]bool

const (
	markStruck    = "! discarded by the audit, see MEASUREMENT VALIDITY"
	markWaited    = "w could be waiting for a core and not the strategy, see MEASUREMENT VALIDITY"
	markMerged    = "~ of all rounds together: one round has too few samples for an interval"
	markMax       = "≥ the largest value seen: too few samples for the percentile"
	markEvents    = "stalls: unreliable, dominated by fewer than 5 stalls"
	markRange     = "> longer than the histogram can tell"
	markSaturated = "saturated: cannot keep up with this rate, requests wait longer and longer"
	markModel     = "m statements to the in-process model, not to PostgreSQL"
)

// Percentile is a percentile as tables show it, and what its marks mean; counts says
// whether the timings that it is of do.
func Percentile(counts bool, p results.Percentile) (cell string, notes []string) {
	legend := marks{}
	cell = legend.percentile(counts, p)
	return cell, legend.explained()
}

func (m marks) percentile(counts bool, p results.Percentile) string {
	if p.Status == results.NoSamples {
		return "-"
	}
	if p.Status == results.EventDriven {
		m[markEvents] = true
		return "stalls"
	}
	text := format.NS(p.Value)
	switch {
	case p.Value >= float64(results.MaxDuration):
		m[markRange] = true
		text = "> 1 h"
	case p.Status == results.Merged:
		m[markMerged] = true
		text = "~" + text
	case !p.Shown():
		m[markMax] = true
		text = "≥" + text
	}
	if counts && p.Struck {
		m[markWaited] = true
		return text + "w"
	}
	return m.timing(counts, text)
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
	return []string{m.percentile(true, p.P50), m.percentile(true, p.P99)}
}

func (m marks) timing(counts bool, text string) string {
	if counts {
		return text
	}
	m[markStruck] = true
	return text + "!"
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
	for _, k := range []string{markStruck, markWaited, markMerged, markMax, markEvents, markRange, markSaturated, markModel} {
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
