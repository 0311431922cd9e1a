package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

var leftOut = []results.Considered{
	{Strategy: "measured", Outcome: codes.Taken},
	{Strategy: "elsewhere", Outcome: codes.Excluded, Stage: codes.StageDeclaration, Cause: codes.OtherWindows},
	{Strategy: "ninth", Outcome: codes.Untried, Stage: codes.StageNumber, Cause: codes.Outranked, Units: 8,
		Command: "quotabench run ninth"},
	{
		Strategy: "racy", Outcome: codes.Excluded, Stage: codes.StageSearch, Cause: codes.OverLimit, Units: 2,
		Command:  "quotabench explore racy",
		Schedule: &results.Schedule{Steps: 1, Clients: 2, Limit: 3, Faults: []quota.Fault{quota.FaultOutage}},
	},
	{
		Strategy: "at-the-end", Outcome: codes.Excluded, Stage: codes.StageSimulation, Cause: codes.OverLimit,
		Pct:     36.8,
		Command: "quotabench sim at-the-end",
	},
	{Strategy: "slow", Outcome: codes.Excluded, Stage: codes.StageRequirement, Cause: codes.NotMet,
		Condition: "p99<5ms", Detail: "p99 is 7 ms"},
}

func leftOutLines(f *results.File, whole bool) []string {
	return layout.Page{}.Section(notRecommended(f, whole))
}

func TestLeftOutLines(t *testing.T) {
	f := &results.File{Considered: leftOut}
	got := strings.Join(leftOutLines(f, false), "\n")
	want := `not recommended  why
────────────────────────────────────────────────────────────────────────────────────
slow             does not meet p99<5ms: p99 is 7 ms
at-the-end       admits up to 36.8 % above the limit over the end of a window (simulated)
racy             admits 2 over a limit of 3: 1 step, 2 clients, Redis is away
ninth            the 8 that were measured come before it
elsewhere        serves other kinds of windows
The first of them again (report.txt has the command of each):
  quotabench sim at-the-end`
	if withoutRules(got) != withoutRules(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	whole := leftOutLines(f, true)
	for _, command := range []string{"quotabench sim at-the-end", "quotabench explore racy", "quotabench run ninth"} {
		if !slices.Contains(whole, "  "+command) {
			t.Errorf("%s is not among\n%s", command, strings.Join(whole, "\n"))
		}
	}
	if lines := leftOutLines(&results.File{}, true); lines != nil {
		t.Errorf("a run of strategies that were named: %q", lines)
	}
}

// TestCommonReasons: strategies with the same reason share a line, except where each has the command that shows it.
func TestCommonReasons(t *testing.T) {
	f := &results.File{Considered: slices.Clone(leftOut)}
	for _, name := range []string{"far", "farther"} {
		f.Considered = append(f.Considered, results.Considered{
			Strategy: name, Outcome: codes.Excluded, Stage: codes.StageDeclaration, Cause: codes.OtherWindows,
		})
	}
	const shared = "serves other kinds of windows (3): elsewhere, far, farther"
	if lines := leftOutLines(f, false); !slices.Contains(lines, shared) {
		t.Errorf("no line %q in\n%s", shared, strings.Join(lines, "\n"))
	}
	joined := Joined(LeftOuts(f))
	last := joined[len(joined)-1]
	if last.Strategy != "3 others" || last.Reason != "serves other kinds of windows: elsewhere, far, farther" ||
		len(joined) != 5 {
		t.Errorf("joined: %+v", joined)
	}
	whole := strings.Join(leftOutLines(f, true), "\n")
	if strings.Contains(whole, shared) || strings.Count(whole, "serves other kinds of windows") != 3 {
		t.Errorf("not a line for each in\n%s", whole)
	}
}

// withoutRules leaves out lines that are only drawn.
func withoutRules(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Trim(l, "─") == "" }), "\n")
}

// TestEveryCauseHasWords: each cause has words of its own, except for those whose words are in the detail.
func TestEveryCauseHasWords(t *testing.T) {
	for _, cause := range []codes.Cause{
		codes.OtherWindows, codes.OtherPolicies, codes.NeverGivesBack, codes.NeverResets, codes.NotPromised,
		codes.CannotRun,
		codes.OverLimit, codes.RejectsValid, codes.BreaksGuarantee, codes.EndsInErrors, codes.Unsound,
		codes.OutOfTime,
		codes.Outranked, codes.NotMet,
	} {
		c := results.Considered{Cause: cause, Detail: "what it is", Schedule: &results.Schedule{}}
		said := slices.Contains([]codes.Cause{codes.OtherPolicies, codes.CannotRun, codes.Unsound}, cause)
		if text := reasonOf(&c); (text == c.Detail) != said {
			t.Errorf("%s: %q", cause, text)
		}
	}
}

// TestUnmetConditions: what does not meet a condition is not recommended, and the answer says so.
func TestUnmetConditions(t *testing.T) {
	f := results.File{Kind: results.Measured, Considered: []results.Considered{
		{Strategy: "a", Outcome: codes.Excluded, Stage: codes.StageRequirement, Cause: codes.NotMet,
			Condition: "p99<5ms", Detail: "p99 is 7 ms"},
	}}
	var all []ranking.Strategy
	for _, label := range []string{"a", "b"} {
		summary := &results.Summary{Label: label, Identity: results.Identity{Strategy: label}}
		all = append(all, ranking.Strategy{Label: label, Group: ranking.Enforces, Summary: summary, Judged: summary,
			Reason: "never over the limit in 9 windows"})
	}
	s := ranking.Among(&f, all)
	got := strings.Join(Advice(false, &s), " ")
	if !strings.HasPrefix(got, "Use b: ") || !strings.Contains(got, "a (does not meet p99<5ms)") {
		t.Errorf("advice: %s", got)
	}
}
