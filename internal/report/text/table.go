package text

import (
	"io"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Table renders all that a file says: the answer, what was measured and on what, then
// of each setting correctness, speed, costs and declared guarantees, who was skipped,
// and everything that speaks against the figures.
func Table(w io.Writer, page layout.Page, file results.File) error {
	doc, err := Report(file)
	if err != nil {
		return err
	}
	return page.Write(w, doc)
}

// Report is the document that [Table] renders.
func Report(file results.File) (document.Document, error) {
	doc, decision, err := answered(&file)
	if err != nil {
		return nil, err
	}
	doc.Section(notRecommended(&file, true)...)
	doc.Section(decision.untested()...)
	if file.Sweep != nil {
		sweepSections(&doc, file, &decision)
	} else {
		sections(&doc, file)
	}
	return doc, nil
}

// Brief renders what a terminal has room for: the answer, who was skipped, and what takes
// figures back.
func Brief(w io.Writer, page layout.Page, file results.File) error {
	doc, decision, err := answered(&file)
	if err != nil {
		return err
	}
	doc.Section(notRecommended(&file, false)...)
	doc.Section(briefSkipped(page, file)...)
	if file.Ended != "" {
		doc.Section(document.Text("Rounds: " + format.Plain(file.Ended) + ".")...)
	}
	doc.Section(gravest(file.Summaries)...)
	doc.Section(decision.untested()...)
	return page.Write(w, doc)
}

// Verdicts are the lines of the table of what is known so far of each strategy, of a record that
// is not complete. A sweep has none.
func Verdicts(page layout.Page, file results.File) []string {
	if file.Sweep != nil {
		return nil
	}
	file.Summaries = file.Summarised()
	decision := Decide(&file, ranking.Of(file)...)
	return page.Section(decision.table())
}

// answered begins with what a record says for somebody who must choose: what to use and why, and one table of all.
func answered(file *results.File) (doc document.Document, decision Decision, err error) {
	file.Summaries = file.Summarised() // once for all sections
	decision, err = DecideSweep(file)
	if err != nil {
		return nil, decision, err
	}
	if file.Sweep == nil {
		decision = Decide(file, ranking.Of(*file)...)
	}
	doc.Section(entries(briefHead(*file))...)
	doc.Section(decision.advice()...)
	doc.Section(decision.table()...)
	return doc, decision, nil
}

func sections(doc *document.Document, file results.File) {
	doc.Section(entries(Head(file))...)
	for _, setting := range ranking.Of(file) {
		group := setting.Summaries()
		doc.Section(entries(Setting(file, group))...)
		doc.Section(correctness(file, group)...)
		doc.Section(speed(file, group)...)
		doc.Section(delay(group)...)
		doc.Section(exactCost(file, group)...)
		doc.Section(sampledCost(file, group)...)
		doc.Section(rolling(group)...)
		doc.Section(settlement(group)...)
		doc.Section(meters(group)...)
		doc.Section(stored(group)...)
		doc.Section(guarantees(group)...)
		doc.Section(promises(group)...)
	}
	doc.Section(skipped(file)...)
	doc.Section(validity(Findings(file.Summaries))...)
}
