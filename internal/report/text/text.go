package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// headLabel is as wide as the longest label of the header.
const headLabel = 12

// entries are a section of them.
func entries(all []document.Entry) document.Section {
	if len(all) == 0 {
		return nil
	}
	return document.Section{&document.Entries{Width: headLabel, List: all}}
}

// adder returns a function that appends what is not empty.
func adder(out *[]document.Entry) func(label, text string) {
	return func(label, text string) {
		if text != "" {
			*out = append(*out, document.Entry{Label: label, Text: format.Plain(text)})
		}
	}
}

// surrounded is a text with what stands before and after it, or empty if the text is.
func surrounded(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

// Head says what was measured, on what and with which stores.
func Head(file results.File) []document.Entry {
	var out []document.Entry
	entry := adder(&out)
	entry("quotabench", format.Join(" · ", file.Kind, surrounded("workload ", file.Workload.Name, ""),
		fmt.Sprintf("seed %d", file.Seed)))
	if file.Kind == results.Simulated {
		entry("", "SIMULATED in virtual time: latencies are modelled, and nothing here is a throughput")
	}
	if trace := file.Workload.Trace; trace != nil {
		entry("trace", format.Join(" · ", trace.File, trace.Format, format.Plural(int64(trace.Rows), "row", "rows"),
			fmt.Sprintf("%s used", format.Count(int64(trace.Used))),
			format.Count(int64(trace.Dropped))+
				" dropped", fmt.Sprintf("%s damaged%s", format.Count(int64(len(trace.Damaged))), damagedText(trace.Damaged))))
	}
	for _, n := range file.Workload.Notes {
		entry("", n)
	}
	for _, name := range file.StoreNames() {
		entry(name, storeText(file.Stores[name]))
	}
	provenance := file.Provenance
	host := ""
	if provenance.Host.OS != "" {
		host = format.Join(", ", provenance.Host.OS+"/"+
			provenance.Host.Arch, format.Plural(int64(provenance.Host.CPUs), "CPU", "CPUs"), provenance.Host.Model)
	}
	entry("host", format.Join(" · ", provenance.Host.Name, host))
	entry("built from", format.Join(" · ", surrounded("commit ", provenance.Commit, ""),
		versionText(provenance.Versions)))
	entry("time", When(provenance.Time))
	entry("rounds", file.Ended)
	if file.Interrupted {
		entry("NOTE", "interrupted before the last round")
	}
	return out
}

// When is a moment as text, empty for none.
func When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// briefHead is what a reader of the answer must know of how it came about.
func briefHead(file results.File) []document.Entry {
	var out []document.Entry
	entry := adder(&out)
	if file.Kind == results.Simulated {
		entry("NOTE", "simulated in virtual time: latencies are modelled")
	}
	if file.Interrupted {
		entry("NOTE", "interrupted before the last round")
	}
	return out
}

// rounds counts those of the strategy that has most.
func rounds(file *results.File) string {
	most := 0
	for _, summary := range file.Summarised() {
		most = max(most, summary.Rounds)
	}
	return some(int64(most), "round", "rounds")
}

// damagedText names the first damaged rows; all of them are in the file.
func damagedText(rows []results.DamagedRow) string {
	const most = 3
	var parts []string
	for i, damagedRow := range rows {
		if i == most {
			parts = append(parts, "…")
			break
		}
		fate := "dropped"
		if damagedRow.Used {
			fate = "used"
		}
		parts = append(parts, fmt.Sprintf("line %d: %s, %s", damagedRow.Line, damagedRow.Reason, fate))
	}
	return surrounded(" (", strings.Join(parts, "; "), ")")
}

func storeText(store results.Store) string {
	if store.Kind == "" {
		return ""
	}
	return format.Join(" · ", format.Join(" ", store.Kind, store.Version), store.Durability, store.Detail)
}

func versionText(v map[string]string) string {
	var parts []string
	for _, k := range []string{"quotabench", "go"} {
		if v[k] != "" {
			parts = append(parts, k+" "+strings.TrimPrefix(v[k], "go"))
		}
	}
	return strings.Join(parts, ", ")
}

// roundsText says how many rounds there are, what figures over them are, and what the
// brackets of the tables below stand on.
func roundsText(group []results.Summary) string {
	run := spread(group, func(summary *results.Summary) int { return summary.Rounds })
	text := run + " of each strategy; "
	brackets := bracketsText(group)
	if group[0].Params.Point != nil {
		text = run + " of each point, the points in random order within a round; "
		kept := spread(group, func(summary *results.Summary) int { return summary.AtRate().Timed })
		brackets = fmt.Sprintf("%s; rounds kept: %s of %s", intervalsText(group), kept, run)
	}
	if run == "1" {
		return text + "one round says nothing about how much figures vary"
	}
	percentiles := "percentiles are those of all kept rounds together"
	if slices.ContainsFunc(group, func(summary results.Summary) bool {
		return summary.Latency().P99.Status == codes.PerRound
	}) {
		percentiles = "percentiles are medians, since histograms were not stored"
	}
	return text + percentiles + ", decisions per second their mean, other figures medians; " + brackets
}

// spread is the range of a number of rounds: an interrupted sweep and a search have more of some points than of others.
func spread(group []results.Summary, of func(*results.Summary) int) string {
	lo := of(&group[0])
	hi := of(&group[0])
	for i := range group {
		lo = min(lo, of(&group[i]))
		hi = max(hi, of(&group[i]))
	}
	if lo == hi {
		return strconv.Itoa(hi)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// intervalsText says what the intervals of a sweep's decisions per second are.
func intervalsText(group []results.Summary) string {
	if slices.ContainsFunc(group, func(summary results.Summary) bool {
		return summary.Throughput.Rounds > 1 && summary.Throughput.Coverage == 0
	}) {
		return "intervals are the range of the rounds"
	}
	return "intervals have about 95 % confidence"
}

// bracketsText says what the intervals of p99 are.
func bracketsText(group []results.Summary) string {
	figures := false
	intervals := false
	for i := range group {
		percentile := group[i].Latency().P99
		figures = figures || percentile.Shown()
		intervals = intervals || percentile.Coverage > 0
	}
	switch {
	case intervals:
		return "brackets are intervals of about 95 % confidence, from a bootstrap over rounds"
	case figures:
		return "fewer than 6 rounds are kept, so there are no brackets"
	default:
		return "no strategy has a p99, so there are no brackets"
	}
}

// skipped names who did not take part, and why.
func skipped(file results.File) document.Section {
	if len(file.Skipped) == 0 {
		return nil
	}
	var all grouped
	for _, skipped := range file.Skipped {
		all.Add(skipped.Reason, skipped.Strategy)
	}
	return append(document.Text("SKIPPED"), all.lines()...)
}

// briefSkipped is the same without long reasons, if they take more lines than that.
func briefSkipped(page layout.Page, file results.File) document.Section {
	section := skipped(file)
	const most = 4
	if len(page.Section(section)) <= most {
		return section
	}
	var names []string
	for _, skipped := range file.Skipped {
		names = append(names, skipped.Strategy)
	}
	text := format.Plain(strings.Join(names, ", ") + ": why is in report.txt, or --verbose")
	return document.Section{&document.Paragraph{Head: "SKIPPED  ", Text: text}}
}

// Kept says how many rounds are behind the timings of a strategy in one loop, of those that
// were run.
func Kept(summary *results.Summary) string {
	return fmt.Sprintf("%d of %d", summary.Timed, summary.Rounds)
}

// KeptRounds says the same of all strategies of one table, in both loops if there are two.
func KeptRounds(group []results.Summary) string {
	first := keptOf(group, itself)
	rate := keptOf(group, (*results.Summary).AtRate)
	if first == rate {
		return "rounds kept: " + first
	}
	return "rounds kept: " + rate + " in open loop, " + first + " in closed loop"
}

func itself(summary *results.Summary) *results.Summary { return summary }

// keptOf is what most strategies have in common, and the others by name.
func keptOf(group []results.Summary, loop func(*results.Summary) *results.Summary) string {
	var who collect.By[string, string]
	for i := range group {
		who.Add(Kept(loop(&group[i])), format.Plain(group[i].Label))
	}
	texts := commonFirst(&who, " ")
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return texts[0] + " (" + strings.Join(texts[1:], "; ") + ")"
}
