package text

import (
	"bufio"
	"io"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Table renders all that a file says: the answer, what was measured and on what, then
// of each setting correctness, speed, costs and declared guarantees, who was skipped,
// and everything that speaks against the figures.
func Table(w io.Writer, page layout.Page, f results.File) error {
	return answered(w, page, &f, func(d *Decision, section func([]string)) {
		section(leftOutLines(page, &f, true))
		section(d.untestedLines(page))
		if f.Sweep != nil {
			sweepSections(page, f, d, section)
			return
		}
		sections(page, f, section)
	})
}

// Brief renders what a terminal has room for: the answer, who was skipped, and what takes
// figures back.
func Brief(w io.Writer, page layout.Page, f results.File) error {
	return answered(w, page, &f, func(d *Decision, section func([]string)) {
		section(leftOutLines(page, &f, false))
		section(briefSkipped(page, f))
		if f.Ended != "" {
			section(page.Paragraph("", "Rounds: "+format.Plain(f.Ended)+"."))
		}
		section(gravestLines(page, f.Summaries))
		section(d.untestedLines(page))
	})
}

// Verdicts are the lines of the table of what is known so far of each strategy, of a record that
// is not complete. A sweep has none.
func Verdicts(page layout.Page, f results.File) []string {
	if f.Sweep != nil {
		return nil
	}
	f.Summaries = f.Summarised()
	d := Decide(&f, ranking.Of(f)...)
	return d.tableLines(page)
}

// answered renders what a record says for somebody who must choose: what to use and why, one
// table of all, and then the rest.
func answered(w io.Writer, page layout.Page, f *results.File, rest func(d *Decision, section func([]string))) error {
	f.Summaries = f.Summarised() // once for all sections
	d, err := DecideSweep(f)
	if err != nil {
		return err
	}
	if f.Sweep == nil {
		d = Decide(f, ranking.Of(*f)...)
	}
	return write(w, func(section func([]string)) {
		section(entryLines(page, briefHead(*f)))
		section(d.adviceLines(page))
		section(d.tableLines(page))
		rest(&d, section)
	})
}

func sections(page layout.Page, f results.File, section func([]string)) {
	section(entryLines(page, Head(f)))
	for _, s := range ranking.Of(f) {
		group := s.Summaries()
		section(entryLines(page, Setting(f, group)))
		section(correctnessLines(page, f, group))
		section(speedLines(page, f, group))
		section(delayLines(page, group))
		section(exactCostLines(page, f, group))
		section(sampledCostLines(page, f, group))
		section(rollingLines(page, group))
		section(settlementLines(page, group))
		section(meterLines(page, group))
		section(storedLines(page, group))
		section(guaranteeLines(page, group))
		section(promiseLines(page, group))
	}
	section(skippedLines(page, f))
	section(findingLines(page, Findings(f.Summaries)))
}

// write passes on what body makes, an empty line between sections.
func write(w io.Writer, body func(section func([]string))) error {
	b := bufio.NewWriter(w)
	first := true
	body(func(lines []string) {
		if len(lines) == 0 {
			return
		}
		if !first {
			_ = b.WriteByte('\n') // an error sticks to the writer and comes out of Flush
		}
		first = false
		for _, l := range lines {
			_, _ = b.WriteString(l + "\n")
		}
	})
	return format.Wrapf(b.Flush(), "write table")
}
