package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// LeftOut is a strategy that a run considered and does not recommend, with the reason in words.
type LeftOut struct {
	// Strategy is its label.
	Strategy string
	// Reason is one clause.
	Reason string
	// Advice is how to get it measured; empty for none.
	Advice string
	// Command shows it again; empty if nothing does.
	Command string
}

// Whole is the reason with the advice.
func (l LeftOut) Whole() string { return format.Join(": ", l.Reason, l.Advice) }

// LeftOuts are the strategies that a run left out: those first against which a figure or a schedule speaks.
func LeftOuts(file *results.File) []LeftOut {
	var all []*results.Considered
	for i := range file.Considered {
		if considered := &file.Considered[i]; considered.Outcome != codes.Taken {
			all = append(all, considered)
		}
	}
	slices.SortStableFunc(all, func(a, b *results.Considered) int {
		return cmp.Compare(slices.Index(telling, a.Stage), slices.Index(telling, b.Stage))
	})
	var out []LeftOut
	for _, considered := range all {
		out = append(out, LeftOut{
			Strategy: considered.Strategy, Reason: reasonOf(considered), Advice: considered.Advice,
			Command: considered.Command,
		})
	}
	return out
}

// Joined has one entry for the strategies that have a reason in common, if there are several and no command shows it
// again.
func Joined(all []LeftOut) []LeftOut {
	names := map[string][]string{}
	for _, leftOut := range all {
		if leftOut.Command == "" {
			names[leftOut.Whole()] = append(names[leftOut.Whole()], leftOut.Strategy)
		}
	}
	var out []LeftOut
	for _, leftOut := range all {
		same := names[leftOut.Whole()]
		switch {
		case leftOut.Command != "" || len(same) < oftenFrom:
			out = append(out, leftOut)
		case leftOut.Strategy == same[0]:
			out = append(out, LeftOut{
				Strategy: fmt.Sprintf("%d others", len(same)), Reason: leftOut.Whole() + ": " + strings.Join(same, ", "),
			})
		}
	}
	return out
}

// telling are the stages, those first that say most about a strategy.
var telling = []codes.Stage{
	codes.StageRequirement, codes.StageOutage, codes.StageSimulation, codes.StageSearch, codes.StageNumber,
	codes.StageDeclaration, codes.StageStore,
}

// reasonOf is why a strategy was left out.
func reasonOf(considered *results.Considered) string {
	switch considered.Cause {
	case codes.OtherWindows:
		return "serves other kinds of windows"
	case codes.OtherPolicies:
		return considered.Detail
	case codes.NeverGivesBack:
		return "cannot take units back"
	case codes.NeverResets:
		return "has no windows: what is used up is never given again"
	case codes.NotPromised:
		return "declares no bound on its leak under " + considered.Detail
	case codes.OverLimit:
		return leakReason(considered)
	case codes.RejectsValid:
		return rejectReason(considered)
	case codes.BreaksGuarantee:
		return "breaks its own guarantee: " + scheduleText(considered.Schedule)
	case codes.EndsInErrors:
		return format.Pct(considered.Pct) + " of requests end in errors" + during[considered.Stage]
	case codes.OutOfTime:
		return "was not tried in time: a longer --budget gives more"
	case codes.Outranked:
		return fmt.Sprintf("the %d that were measured come before it", considered.Units)
	case codes.NotMet:
		return "does not meet " + format.Join(": ", considered.Condition, considered.Detail)
	}
	return considered.Detail
}

// during is what a stage has happen.
var during = map[codes.Stage]string{
	codes.StageSimulation: " over the end of a window (simulated)",
	codes.StageOutage:     " while Redis is away",
}

// leakReason says by how much the limit was passed.
func leakReason(considered *results.Considered) string {
	if considered.Schedule != nil {
		return fmt.Sprintf("admits %d over a limit of %d: %s", considered.Units, considered.Schedule.Limit,
			scheduleText(considered.Schedule))
	}
	return "admits up to " + format.Pct(considered.Pct) + " above the limit" + during[considered.Stage]
}

// rejectReason says what was rejected although there was room.
func rejectReason(considered *results.Considered) string {
	if considered.Schedule != nil {
		return "rejects although there is room: " + scheduleText(considered.Schedule)
	}
	return "rejects " + format.Pct(considered.Pct) + " of valid requests" + during[considered.Stage]
}

// scheduleText is how long a schedule is, and what happens in it.
func scheduleText(schedule *results.Schedule) string {
	text := format.Number(schedule.Steps, "step") + ", " + format.Number(schedule.Clients, "client")
	for _, fault := range schedule.Faults {
		text += ", " + cmp.Or(happens[fault], string(fault))
	}
	return text
}

// happens says what a fault is in a schedule.
var happens = map[quota.Fault]string{
	quota.FaultCrash:     "one dies in a call",
	quota.FaultLostReply: "a reply is lost",
	quota.FaultRetry:     "a command is repeated",
	quota.FaultClock:     "time passes within a call",
	quota.FaultEviction:  "a key is evicted",
	quota.FaultOutage:    "Redis is away",
	quota.FaultLimit:     "the limit changes",
	quota.FaultFailover:  "the replica takes over",
}

// notRecommended says why strategies were left out. In whole, each has a line of its own and the command that shows it
// again. Otherwise those that have their reason in common with several others share one.
func notRecommended(file *results.File, whole bool) document.Section {
	all := LeftOuts(file)
	if len(all) == 0 {
		return nil
	}
	if whole {
		for i := range all {
			all[i].Reason = all[i].Whole()
		}
		return append(leftOutTable(all), repeated(all)...)
	}
	own, common := withCommonReasons(all)
	out := leftOutTable(own)
	for _, reason := range common {
		var names []string
		for _, leftOut := range all {
			if leftOut.Reason == reason {
				names = append(names, format.Plain(leftOut.Strategy))
			}
		}
		head := fmt.Sprintf("%s (%d): ", format.Plain(reason), len(names))
		out = append(out, &document.Paragraph{Text: head + strings.Join(names, ", ")})
	}
	first := slices.IndexFunc(all, func(leftOut LeftOut) bool { return leftOut.Command != "" })
	if first >= 0 {
		out = append(out, again("The first of them again (report.txt has the command of each):", all[first])...)
	}
	return out
}

// leftOutTable has a line for each strategy.
func leftOutTable(all []LeftOut) document.Section {
	if len(all) == 0 {
		return nil
	}
	table := &document.Table{Columns: []document.Column{
		{Title: "not recommended", Left: true, Flexible: true, Minimum: 18},
		{Title: "why", Left: true, Flexible: true, Minimum: 40},
	}}
	for _, leftOut := range all {
		table.Add(format.Plain(leftOut.Strategy), format.Plain(leftOut.Reason))
	}
	return document.Section{table}
}

// repeated are the commands that show again why strategies were left out.
func repeated(all []LeftOut) document.Section {
	all = slices.DeleteFunc(slices.Clone(all), func(leftOut LeftOut) bool { return leftOut.Command == "" })
	if len(all) == 0 {
		return nil
	}
	return again("Each of them again:", all...)
}

// again are commands to copy.
func again(title string, all ...LeftOut) document.Section {
	out := document.Section{line(title)}
	for _, leftOut := range all {
		out = append(out, line("  "+format.Plain(leftOut.Command)))
	}
	return out
}

// oftenFrom is how many strategies have a reason in common that need no line each.
const oftenFrom = 3

// withCommonReasons tells strategies that have reasons of their own from the reasons that several have in common.
func withCommonReasons(all []LeftOut) (own []LeftOut, common []string) {
	count := map[string]int{}
	for _, leftOut := range all {
		count[leftOut.Reason]++
	}
	for _, leftOut := range all {
		switch {
		case count[leftOut.Reason] < oftenFrom:
			own = append(own, leftOut)
		case !slices.Contains(common, leftOut.Reason):
			common = append(common, leftOut.Reason)
		}
	}
	return own, common
}
