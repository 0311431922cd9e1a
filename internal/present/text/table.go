package text

import (
	"bufio"
	"fmt"
	"io"

	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Table renders all that a file says: the answer, what was measured and on what, then
// of each setting correctness, speed, costs and declared guarantees, who was skipped,
// and everything that speaks against the figures. The file of a sweep is that of [Sweep].
func Table(w io.Writer, page layout.Page, f results.File) error {
	if f.Sweep != nil {
		return Sweep(w, page, f)
	}
	f.Summaries = f.Summarised() // once for all sections
	return write(w, func(section func([]string)) {
		answered(page, f, section, nil)
		sections(page, f, section)
	})
}

// Brief renders what a terminal has room for: the answer, who was skipped, and what takes
// figures back.
func Brief(w io.Writer, page layout.Page, f results.File) error {
	if f.Sweep != nil {
		return Sweep(w, page, f)
	}
	f.Summaries = f.Summarised() // once for all sections
	return write(w, func(section func([]string)) {
		answered(page, f, section, func() {
			section(briefSkipped(page, f))
			if f.Ended != "" {
				section(page.Paragraph("", "Rounds: "+format.Plain(f.Ended)+"."))
			}
			section(gravestLines(page, f.Summaries))
		})
	})
}

// answered renders what a record says for somebody who must choose: the strategy to use and
// why, one table of all, what between adds, and what was not tested.
func answered(page layout.Page, f results.File, section func([]string), between func()) {
	settings := answer.Of(f).Settings
	section(entryLines(page, briefHead(f)))
	if len(settings) == 0 {
		section([]string{"No strategy was run."})
	}
	section(adviceLines(page, f, settings))
	section(verdictLines(page, f, settings))
	if between != nil {
		between()
	}
	section(untestedLines(page, settings))
}

func sections(page layout.Page, f results.File, section func([]string)) {
	section(entryLines(page, Head(f)))
	for _, group := range groupsOf(f) {
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
	}
	section(skippedLines(page, f))
	section(findingLines(page, Findings(f.Summaries)))
}

// groupsOf are the strategies of each setting, in the order of the answer.
func groupsOf(f results.File) (out [][]results.Summary) {
	for _, s := range answer.Of(f).Settings {
		out = append(out, s.Summaries())
	}
	return out
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
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
