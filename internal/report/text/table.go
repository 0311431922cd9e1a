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
func Table(w io.Writer, page layout.Page, file results.File) error {
	return answered(w, page, &file, func(decision *Decision, section func([]string)) {
		section(leftOutLines(page, &file, true))
		section(decision.untestedLines(page))
		if file.Sweep != nil {
			sweepSections(page, file, decision, section)
			return
		}
		sections(page, file, section)
	})
}

// Brief renders what a terminal has room for: the answer, who was skipped, and what takes
// figures back.
func Brief(w io.Writer, page layout.Page, file results.File) error {
	return answered(w, page, &file, func(decision *Decision, section func([]string)) {
		section(leftOutLines(page, &file, false))
		section(briefSkipped(page, file))
		if file.Ended != "" {
			section(page.Paragraph("", "Rounds: "+format.Plain(file.Ended)+"."))
		}
		section(gravestLines(page, file.Summaries))
		section(decision.untestedLines(page))
	})
}

// Verdicts are the lines of the table of what is known so far of each strategy, of a record that
// is not complete. A sweep has none.
func Verdicts(page layout.Page, file results.File) []string {
	if file.Sweep != nil {
		return nil
	}
	file.Summaries = file.Summarised()
	decision := Decide(&file, ranking.Of(file)...)
	return decision.tableLines(page)
}

// answered renders what a record says for somebody who must choose: what to use and why, one
// table of all, and then the rest.
func answered(w io.Writer, page layout.Page, file *results.File,
	rest func(decision *Decision, section func([]string))) error {
	file.Summaries = file.Summarised() // once for all sections
	d, err := DecideSweep(file)
	if err != nil {
		return err
	}
	if file.Sweep == nil {
		d = Decide(file, ranking.Of(*file)...)
	}
	return write(w, func(section func([]string)) {
		section(entryLines(page, briefHead(*file)))
		section(d.adviceLines(page))
		section(d.tableLines(page))
		rest(&d, section)
	})
}

func sections(page layout.Page, file results.File, section func([]string)) {
	section(entryLines(page, Head(file)))
	for _, setting := range ranking.Of(file) {
		group := setting.Summaries()
		section(entryLines(page, Setting(file, group)))
		section(correctnessLines(page, file, group))
		section(speedLines(page, file, group))
		section(delayLines(page, group))
		section(exactCostLines(page, file, group))
		section(sampledCostLines(page, file, group))
		section(rollingLines(page, group))
		section(settlementLines(page, group))
		section(meterLines(page, group))
		section(storedLines(page, group))
		section(guaranteeLines(page, group))
		section(promiseLines(page, group))
	}
	section(skippedLines(page, file))
	section(findingLines(page, Findings(file.Summaries)))
}

// write passes on what body makes, an empty line between sections.
func write(w io.Writer, body func(section func([]string))) error {
	writer := bufio.NewWriter(w)
	first := true
	body(func(lines []string) {
		if len(lines) == 0 {
			return
		}
		if !first {
			_ = writer.WriteByte('\n') // an error sticks to the writer and comes out of Flush
		}
		first = false
		for _, text := range lines {
			_, _ = writer.WriteString(text + "\n")
		}
	})
	return format.Wrapf(writer.Flush(), "write table")
}
