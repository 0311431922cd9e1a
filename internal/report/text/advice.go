package text

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// Advice is the answer in sentences: which strategy to use and why, what it was chosen over, and
// on what its promise depends.
func Advice(simulated bool, setting *ranking.Setting) (sentences []string) {
	best := setting.Cheapest()
	if best == nil {
		if unreached(setting) {
			return append(sentences, "No request went beyond the limit, so nobody is limited, and which strategies enforce it "+
				"was not seen.")
		}
		sentences = append(sentences, "No strategy that ran enforces the limit.")
		if rest := rivals(setting, nil); rest != "" {
			sentences = append(sentences, "These ran: "+rest+".")
		}
		return append(sentences, broken(setting)...)
	}
	sentences = append(sentences, fmt.Sprintf("Use %s: %s, %s.", best.Label, best.Reason, cost(simulated, best.Summary)))
	if limited := best.Summary.Limited; limited != nil {
		sentences = append(sentences, met(best.Summary))
	}
	if rest := rivals(setting, best); rest != "" {
		sentence := "It was chosen over " + rest + "."
		if !setting.ByTime && !simulated {
			sentence += " Timings on stand-ins were not compared."
		}
		sentences = append(sentences, sentence)
	}
	if away := setting.WhileAway(best); away != nil {
		sentences = append(sentences, fmt.Sprintf("%s %s: callers are answered, and not let in.", best.Label, reasonOf(away)))
	}
	if best.Conditions != nil {
		sentences = append(sentences, "Conditions of "+best.Label+": "+strings.Join(best.Conditions, "; ")+".")
	}
	if avoid := best.Summary.Avoid; avoid != "" {
		sentences = append(sentences, fmt.Sprintf("The catch of %s: %s", best.Label, avoid))
	}
	return append(sentences, broken(setting)...)
}

// unreached reports whether nobody asked any strategy for more than the limit.
func unreached(setting *ranking.Setting) bool {
	for i := range setting.Strategies {
		if strategy := &setting.Strategies[i]; strategy.Group != ranking.Baseline && !strategy.Unreached() {
			return false
		}
	}
	return true
}

// fewSubjects are named of those whom the limit met. The record has more.
const fewSubjects = 5

// longestSubject is how many letters of a subject's name are shown.
const longestSubject = 40

// met says whom the limit met in a trace.
func met(summary *results.Summary) string {
	limited := summary.Limited
	if limited.Subjects == 0 {
		return "It rejects no request of the trace."
	}
	most := limited.Most[:min(len(limited.Most), fewSubjects)]
	names := format.List(most, ", ", func(subject results.LimitedSubject) string {
		return fmt.Sprintf("%s %s of %s", format.Shorten(subject.Subject, longestSubject), format.Count(subject.Rejected),
			format.Count(subject.Issued))
	})
	if int(limited.Subjects) > len(most) {
		names = "most of all " + names
	}
	return fmt.Sprintf("It rejects %s of %s requests, those of %s of %s: %s.", format.Count(summary.Rejected),
		format.Count(summary.Issued), format.Count(limited.Subjects), format.Plural(limited.Of, "subject", "subjects"), names)
}

// broken says which design records promise what did not hold in the run.
func broken(setting *ranking.Setting) []string {
	var parts []string
	for i := range setting.Strategies {
		if strategy := &setting.Strategies[i]; strategy.Broken != "" {
			parts = append(parts, strategy.Label+": "+strategy.Broken)
		}
	}
	if parts == nil {
		return nil
	}
	return []string{"Design records that did not hold: " + strings.Join(parts, "; ") + "."}
}

// rivals names the strategies that are not the best one, a few of each kind, with what speaks
// against each kind. Baselines are no candidates.
func rivals(setting *ranking.Setting, best *ranking.Strategy) string {
	var all grouped
	for i := range setting.Strategies {
		if strategy := &setting.Strategies[i]; strategy.Group != ranking.Baseline &&
			(best == nil || strategy.Label != best.Label) {
			all.Add(against(setting, strategy, best), strategy.Label)
		}
	}
	return all.text()
}

// grouped are names by the reason that they share.
type grouped struct{ collect.By[string, string] }

// text names a few of each reason.
func (g *grouped) text() string {
	var parts []string
	for _, reason := range g.Keys {
		parts = append(parts, listed(g.Of[reason])+" ("+reason+")")
	}
	return strings.Join(parts, "; ")
}

// lines name all, with a line for each reason.
func (g *grouped) lines() (out document.Section) {
	for _, reason := range g.Keys {
		text := format.Plain(strings.Join(g.Of[reason], ", ") + ": " + reason)
		out = append(out, &document.Paragraph{Head: "  ", Text: text})
	}
	return out
}

// against says why a strategy is not the one to use.
func against(setting *ranking.Setting, x, best *ranking.Strategy) string {
	if condition := setting.Unmet(x); condition != nil && x.Group == ranking.Enforces {
		return "does not meet " + condition.Condition // the line of the strategy has the figure
	}
	switch {
	case x.Group == ranking.Undecided, x.Group == ranking.Unusable:
		return x.Reason
	case x.Leaks():
		return "over the limit"
	case x.Group == ranking.Fails && x.WithoutFault() != "":
		return "a search found " + x.WithoutFault() + " without any fault"
	case x.Rejects():
		return "rejects valid requests"
	case x.Group == ranking.Bounded && best == nil:
		return x.Reason
	case x.Group == ranking.Bounded:
		return "holds the limit only within a bound"
	case x.Group == ranking.Fails && x.Judged.Verdict == results.Broken:
		return "breaks its guarantee"
	case x.Group == ranking.Loose, x.Group == ranking.Fails:
		return "its guarantee allows more than the limit"
	case x.PerProcess && !best.PerProcess:
		return "counts per process"
	case x.Summary.Cost.PerDecision() == 0 && best.Summary.Cost.PerDecision() > 0:
		return "sends no command"
	case !x.Declares && best.Declares:
		return "promises nothing"
	case setting.ByTime && x.Place > best.Place:
		return "slower"
	case x.Survives < best.Survives:
		return tie(setting) + "its promise holds under fewer faults"
	case x.SharesCommands() && !best.SharesCommands():
		return tie(setting) + "several callers share a command"
	case x.Summary.Cost.PerDecision() > best.Summary.Cost.PerDecision():
		return tie(setting) + "more commands"
	default:
		return "as good"
	}
}

// tie begins the reason for the order of strategies that timings do not put in order.
func tie(setting *ranking.Setting) string {
	if setting.ByTime {
		return "not shown to be slower, "
	}
	return ""
}

// listed names a few. The table has them all.
func listed(names []string) string {
	const most = 4
	n := len(names)
	if n > most+1 {
		names = append(names[:most:most], fmt.Sprintf("%d others", n-most))
	}
	n = len(names)
	if n < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}

// cost says what a decision sends, and how long it takes.
func cost(simulated bool, summary *results.Summary) string {
	sends := format.Join(" and ", perDecision(summary.Cost.Commands, "command", "commands"),
		perDecision(summary.Cost.SQL+summary.Cost.ModelSQL, "SQL statement", "SQL statements"))
	return cmp.Or(sends, "no command") + " per decision, " + waitText(simulated, summary)
}

func waitText(simulated bool, summary *results.Summary) string {
	r := summary.AtRate()
	p99 := summary.Latency().P99
	load := fmt.Sprintf("with %s that never pause", format.Plural(int64(r.Params.Workers), "caller", "callers"))
	switch {
	case r.Params.Loop == codes.OpenLoop && r.Params.RatePerS > 0:
		load = "at " + format.Digits(r.Params.RatePerS) + " requests/s"
	case summary.Limited != nil:
		load = "at the times of the trace"
	}
	switch {
	case summary.Overloaded():
		return "but it cannot keep up " + load
	case p99.Rounds == 0:
		return "no p99"
	case simulated:
		load += " (modelled)"
	}
	return "p99 " + figures.Percentile(p99).Value + " " + load
}

func perDecision(value float64, one, many string) string {
	switch text := format.TrimZeros(format.Per(value)); text {
	case "0":
		return ""
	case "1":
		return "1 " + one
	default:
		return text + " " + many
	}
}
