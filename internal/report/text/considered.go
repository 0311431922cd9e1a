package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// LeftOut is a strategy that a run considered and does not recommend, with the reason in words.
type LeftOut struct {
	// Strategy is its label.
	Strategy string
	// Reason is one clause.
	Reason string
	// Command shows it again; empty if nothing does.
	Command string
}

// LeftOuts are the strategies that a run left out: those first against which a figure or a schedule speaks.
func LeftOuts(f *results.File) []LeftOut {
	var all []*results.Considered
	for i := range f.Considered {
		if c := &f.Considered[i]; c.Outcome != results.Taken {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *results.Considered) int {
		return cmp.Compare(slices.Index(telling, a.Stage), slices.Index(telling, b.Stage))
	})
	var out []LeftOut
	for _, c := range all {
		out = append(out, LeftOut{Strategy: c.Strategy, Reason: reasonOf(c), Command: c.Command})
	}
	return out
}

// Joined has one entry for the strategies that have a reason in common, if there are several and no command shows it again.
func Joined(all []LeftOut) []LeftOut {
	names := map[string][]string{}
	for _, x := range all {
		if x.Command == "" {
			names[x.Reason] = append(names[x.Reason], x.Strategy)
		}
	}
	var out []LeftOut
	for _, x := range all {
		same := names[x.Reason]
		switch {
		case x.Command != "" || len(same) < oftenFrom:
			out = append(out, x)
		case x.Strategy == same[0]:
			out = append(out, LeftOut{
				Strategy: fmt.Sprintf("%d others", len(same)), Reason: x.Reason + ": " + strings.Join(same, ", "),
			})
		}
	}
	return out
}

// telling are the stages, those first that say most about a strategy.
var telling = []results.Stage{
	results.StageRequirement, results.StageOutage, results.StageSimulation, results.StageSearch, results.StageNumber,
	results.StageDeclaration, results.StageStore,
}

// reasonOf is why a strategy was left out.
func reasonOf(c *results.Considered) string {
	switch c.Cause {
	case results.OtherWindows:
		return "serves other kinds of windows"
	case results.OtherPolicies:
		return c.Detail
	case results.NeverGivesBack:
		return "cannot take units back"
	case results.NeverResets:
		return "has no windows: what is used up is never given again"
	case results.NotPromised:
		return "declares no bound on its leak under " + c.Detail
	case results.OverLimit:
		return leakReason(c)
	case results.RejectsValid:
		return rejectReason(c)
	case results.BreaksGuarantee:
		return "breaks its own guarantee: " + scheduleText(c.Schedule)
	case results.EndsInErrors:
		return format.Pct(c.Pct) + " of requests end in errors" + during[c.Stage]
	case results.OutOfTime:
		return "was not tried in time: a longer --budget gives more"
	case results.Outranked:
		return fmt.Sprintf("the %d that were measured come before it", c.Units)
	case results.NotMet:
		return "does not meet " + c.Detail
	}
	return c.Detail
}

// during is what a stage has happen.
var during = map[results.Stage]string{
	results.StageSimulation: " over the end of a window (simulated)",
	results.StageOutage:     " while Redis is away",
}

// leakReason says by how much the limit was passed.
func leakReason(c *results.Considered) string {
	if c.Schedule != nil {
		return fmt.Sprintf("admits %d over a limit of %d: %s", c.Units, c.Schedule.Limit, scheduleText(c.Schedule))
	}
	return "admits " + format.Pct(c.Pct) + " above the limit" + during[c.Stage]
}

// rejectReason says what was rejected although there was room.
func rejectReason(c *results.Considered) string {
	if c.Schedule != nil {
		return "rejects although there is room: " + scheduleText(c.Schedule)
	}
	return "rejects " + format.Pct(c.Pct) + " of valid requests" + during[c.Stage]
}

// scheduleText is how long a schedule is, and what happens in it.
func scheduleText(s *results.Schedule) string {
	text := format.Number(s.Steps, "step") + ", " + format.Number(s.Clients, "client")
	for _, fault := range s.Faults {
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

// leftOutLines says why strategies were left out. In whole, each has a line of its own and the command that shows it again.
// Otherwise those that have their reason in common with several others share one.
func leftOutLines(page layout.Page, f *results.File, whole bool) []string {
	all := LeftOuts(f)
	if len(all) == 0 {
		return nil
	}
	if whole {
		return append(leftOutTable(page, all), repeated(all)...)
	}
	for i := range all {
		all[i].Reason, _, _ = strings.Cut(all[i].Reason, ": build with ")
	}
	own, common := withCommonReasons(all)
	out := leftOutTable(page, own)
	for _, reason := range common {
		var names []string
		for _, x := range all {
			if x.Reason == reason {
				names = append(names, format.Plain(x.Strategy))
			}
		}
		head := fmt.Sprintf("%s (%d): ", format.Plain(reason), len(names))
		out = append(out, page.Wrap(head+strings.Join(names, ", "))...)
	}
	first := slices.IndexFunc(all, func(x LeftOut) bool { return x.Command != "" })
	if first >= 0 {
		out = append(out, "The first of them again (report.txt has the command of each):", "  "+format.Plain(all[first].Command))
	}
	return out
}

// leftOutTable has a line for each strategy.
func leftOutTable(page layout.Page, all []LeftOut) []string {
	if len(all) == 0 {
		return nil
	}
	g := layout.Grid{Columns: []layout.Column{
		{Title: "not recommended", Left: true, Flexible: true, Minimum: 18}, {Title: "why", Left: true, Flexible: true, Minimum: 40},
	}}
	for _, x := range all {
		g.Add(format.Plain(x.Strategy), format.Plain(x.Reason))
	}
	return page.Table(&g)
}

// repeated are the commands that show again why strategies were left out.
func repeated(all []LeftOut) []string {
	var out []string
	for _, x := range all {
		if x.Command != "" {
			out = append(out, "  "+format.Plain(x.Command))
		}
	}
	if out == nil {
		return nil
	}
	return append([]string{"Each of them again:"}, out...)
}

// oftenFrom is how many strategies have a reason in common that need no line each.
const oftenFrom = 3

// withCommonReasons tells strategies that have reasons of their own from the reasons that several have in common.
func withCommonReasons(all []LeftOut) (own []LeftOut, common []string) {
	count := map[string]int{}
	for _, x := range all {
		count[x.Reason]++
	}
	for _, x := range all {
		switch {
		case count[x.Reason] < oftenFrom:
			own = append(own, x)
		case !slices.Contains(common, x.Reason):
			common = append(common, x.Reason)
		}
	}
	return own, common
}
