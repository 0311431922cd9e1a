package text

import (
	"bufio"
	"fmt"
	"io"

	"github.com/quotabench/quotabench/internal/answer"
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
		section(answerLines(page, f))
		sections(page, f, section)
	})
}

// Verbose renders the same for a terminal, where the answer comes last.
func Verbose(w io.Writer, page layout.Page, f results.File) error {
	if f.Sweep != nil {
		return Sweep(w, page, f)
	}
	f.Summaries = f.Summarised() // once for all sections
	return write(w, func(section func([]string)) {
		sections(page, f, section)
		section(answerLines(page, f))
	})
}

func sections(page layout.Page, f results.File, section func([]string)) {
	section(entryLines(page, Head(f)))
	for _, group := range groupsOf(f) {
		section(entryLines(page, Setting(f, group)))
		section(correctnessLines(page, f, group, true))
		section(speedLines(page, f, group, true))
		section(delayLines(page, group))
		section(exactCostLines(page, f, group))
		section(sampledCostLines(page, f, group))
		section(rollingLines(page, group))
		section(settlementLines(page, group))
		section(meterLines(page, group))
		section(storedLines(page, group))
		section(guaranteeLines(page, group))
	}
	if len(f.Summaries) == 0 {
		section([]string{"No strategy was run."})
	}
	section(skippedLines(page, f))
	section(findingLines(page, Findings(f.Summaries)))
}

// Brief renders what a terminal has room for: correctness and speed of each setting,
// what takes figures back, and the answer, which comes last and so is seen first.
func Brief(w io.Writer, page layout.Page, f results.File) error {
	if f.Sweep != nil {
		return Sweep(w, page, f)
	}
	f.Summaries = f.Summarised() // once for all sections
	return write(w, func(section func([]string)) {
		section(entryLines(page, briefHead(f)))
		for _, group := range groupsOf(f) {
			section(correctnessLines(page, f, group, false))
			section(speedLines(page, f, group, false))
		}
		if len(f.Summaries) == 0 {
			section([]string{"No strategy was run."})
		}
		section(briefSkipped(page, f))
		section(gravestLines(page, f.Summaries))
		section(answerLines(page, f))
	})
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
