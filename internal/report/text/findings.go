package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/results"
)

// finding is what the audit says of one or more strategies.
type finding struct {
	results.Reason
	loop string // in which it was found, if strategies ran in two
	who  []concern
	// differs is set if the details are not the same for all of them.
	differs bool
}

// concern is a strategy with a finding in some of its rounds.
type concern struct {
	label     string
	n, rounds int
}

// findingsOf gathers what the audit found in one loop. Strategies that share a
// finding share its entry.
func findingsOf(loop string, summaries []*results.Summary) []finding {
	var all []finding
	for _, summary := range summaries {
		for _, reason := range slices.Concat(summary.Audit.Reasons, remarks(summary)) {
			same := func(x finding) bool { return x.Code == reason.Code && x.Discards == reason.Discards }
			of, _ := collect.In(&all, finding{Reason: reason, loop: loop}, same)
			of.differs = of.differs || of.Detail != reason.Detail
			n := summary.Rounds
			if k, ok := summary.Occurrences[reason.Code]; ok {
				n = k
			}
			of.who = append(of.who, concern{summary.Label, n, summary.Rounds})
		}
	}
	return all
}

// Finding is what the audit found, and of which strategies.
type Finding struct {
	// Reason has an example as its detail if strategies differ in it, and a stack if the finding is of one strategy.
	results.Reason
	// Of names the strategies, and the loop if they ran in two.
	Of string
}

// Findings are what the audit found, the gravest first.
func Findings(summaries []results.Summary) (out []Finding) {
	var first, paced []*results.Summary
	for i := range summaries {
		first = append(first, &summaries[i])
		if summary := summaries[i].Paced; summary != nil {
			paced = append(paced, summary)
		}
	}
	loop := ""
	if len(paced) > 0 {
		loop = "closed loop, "
	}
	all := append(findingsOf(loop, first), findingsOf("open loop, ", paced)...)
	order := []string{codes.DiscardsCorrectness, codes.DiscardsRound, codes.DisturbsTimings, codes.Disturbs,
		codes.DisturbsResponse,
		codes.DiscardsNothing}
	grave := func(x finding) int { return slices.Index(order, x.Discards) }
	slices.SortStableFunc(all, func(a, b finding) int { return grave(a) - grave(b) })
	for _, finding := range all {
		detail := format.Plain(finding.Detail)
		if finding.differs {
			detail = "e.g. " + detail
		}
		reason := results.Reason{
			Discards: finding.Discards, Code: format.Plain(finding.Code), Detail: detail,
			Short: format.Plain(finding.Short),
		}
		out = append(out, Finding{reason, finding.loop + format.Plain(concerned(finding.who, len(summaries)))})
	}
	return out
}

// gravest lists what takes correctness figures back, and says how much else there is.
func gravest(summaries []results.Summary) document.Section {
	var grave []Finding
	others := map[string]int64{}
	var out document.Section
	for _, finding := range Findings(summaries) {
		if finding.Code == codes.ClocksDiffer {
			out = document.Text("The " + finding.Brief() + ".")
			continue
		}
		if finding.Discards == codes.DiscardsCorrectness {
			grave = append(grave, finding)
		} else {
			others[finding.Discards]++
		}
	}
	out = append(out, validity(grave)...)
	notes := others[codes.DiscardsNothing]
	timings := others[codes.DiscardsRound] + others[codes.DisturbsTimings] +
		others[codes.Disturbs] + others[codes.DisturbsResponse]
	if notes+timings == 0 {
		return out
	}
	text := format.Join(" and ", some(timings, "finding on timings", "findings on timings"),
		some(notes, "note", "notes")) +
		": see report.txt or --verbose"
	if len(grave) > 0 {
		return append(out, &document.Paragraph{Head: "  ", Text: "and " + text})
	}
	return append(out, document.Text("The audit of the measurement has "+text+".")...)
}

func some(n int64, one, many string) string {
	if n == 0 {
		return ""
	}
	return format.Plural(n, one, many)
}

// validity lists findings.
func validity(all []Finding) document.Section {
	if len(all) == 0 {
		return nil
	}
	heads := map[string]string{
		codes.DiscardsCorrectness: "INVALID  ", codes.DiscardsRound: "LEFT OUT ", codes.DisturbsTimings: "TIMINGS  ",
		codes.Disturbs: "MACHINE  ", codes.DisturbsResponse: "RESPONSE ", codes.DiscardsNothing: "note     ",
	}
	out := document.Section{line("MEASUREMENT VALIDITY  what the audit found")}
	for _, finding := range all {
		text := fmt.Sprintf("%s: %s [%s]", finding.Code, finding.Detail, finding.Of)
		out = append(out, &document.Paragraph{Head: "  " + heads[finding.Discards], Text: text})
	}
	return out
}

// remarks are findings that follow from a strategy's figures. What the audit
// says itself is not said twice.
func remarks(summary *results.Summary) []results.Reason {
	var out []results.Reason
	said := func(codes ...string) bool {
		return slices.ContainsFunc(summary.Audit.Reasons, func(reason results.Reason) bool {
			return slices.Contains(codes, reason.Code)
		})
	}
	if summary.FirstError != "" && !said("errors", "prescribed-errors") {
		out = append(out, results.Reason{Code: "errors", Discards: codes.DiscardsNothing,
			Detail: fmt.Sprintf("%s, the first: %s", format.Plural(summary.Errors, "request failed", "requests failed"),
				summary.FirstError)})
	}
	if summary.Degraded > 0 {
		out = append(out, results.Reason{Code: "degraded", Discards: codes.DiscardsNothing,
			Detail: format.Pct(summary.DegradedPct()) + " of decisions were made without the store"})
	}
	return out
}

// byLabel adds up what concerns one strategy at several points of a sweep, or in several
// settings.
func byLabel(who []concern) (out []concern) {
	for _, c := range who {
		if of, known := collect.In(&out, c, func(o concern) bool { return o.label == c.label }); known {
			of.n = of.n + c.n
			of.rounds = of.rounds + c.rounds
		}
	}
	return out
}

// concerned names strategies, or says that it is all of them.
func concerned(who []concern, strategies int) string {
	if len(who) < strategies || strategies == 1 {
		var names []string
		for _, concern := range byLabel(who) {
			if concern.n < concern.rounds {
				concern.label += fmt.Sprintf(" (%d of %s)", concern.n, format.Plural(int64(concern.rounds), "round", "rounds"))
			}
			names = append(names, concern.label)
		}
		return strings.Join(names, ", ")
	}
	byCount := func(a, b concern) int { return a.n - b.n }
	byRounds := func(a, b concern) int { return a.rounds - b.rounds }
	least := slices.MinFunc(who, byCount).n
	most := slices.MaxFunc(who, byCount).n
	rounds := slices.MaxFunc(who, byRounds).rounds
	switch {
	case !slices.ContainsFunc(who, func(c concern) bool { return c.n < c.rounds }):
		return "all strategies"
	case least == most:
		return fmt.Sprintf("all strategies, %d of %s", most, format.Plural(int64(rounds), "round", "rounds"))
	default:
		return fmt.Sprintf("all strategies, %d to %d of %s", least, most, format.Plural(int64(rounds), "round", "rounds"))
	}
}
