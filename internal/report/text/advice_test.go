package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// TestReasonsAgainstTheOthers: each thing that speaks against a strategy is named.
func TestReasonsAgainstTheOthers(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	sends := f.Summarised()[0]
	silent := sends
	busy := sends
	batches := sends
	broken := sends
	over := sends
	rejects := sends
	silent.Cost = results.Cost{}
	busy.Cost.Commands = 9
	batches.Cost.Commands = 0.1
	broken.Verdict = results.Broken
	over.Leak.Units = 3
	rejects.FalseRejects.Count = 3
	with := func(s *results.Summary, change func(*ranking.Strategy)) ranking.Strategy {
		x := ranking.Strategy{Label: "other", Group: ranking.Enforces, Reason: "its reason", Declares: true, Survives: 2,
			Place:   1,
			Summary: s, Judged: s}
		if change != nil {
			change(&x)
		}
		return x
	}
	for want, x := range map[string]ranking.Strategy{
		"its reason": with(&sends, func(x *ranking.Strategy) {
			x.Group = ranking.Unusable
		}),
		"over the limit": with(&over, func(x *ranking.Strategy) { x.Group = ranking.Fails }),
		"rejects valid requests": with(&rejects, func(x *ranking.Strategy) {
			x.Group = ranking.Fails
		}),
		"breaks its guarantee":                     with(&broken, func(x *ranking.Strategy) { x.Group = ranking.Fails }),
		"its guarantee allows more than the limit": with(&sends, func(x *ranking.Strategy) { x.Group = ranking.Fails }),
		"holds the limit only within a bound": with(&sends, func(x *ranking.Strategy) {
			x.Group = ranking.Bounded
		}),
		"a search found a leak (12 steps) without any fault": with(&sends, func(x *ranking.Strategy) {
			x.Group = ranking.Fails
			x.Known = []ranking.Known{{Broken: "a leak", Steps: 12}}
		}),
		"counts per process": with(&sends, func(x *ranking.Strategy) { x.PerProcess = true }),
		"sends no command":   with(&silent, nil),
		"promises nothing":   with(&sends, func(x *ranking.Strategy) { x.Declares = false }),
		"slower":             with(&sends, func(x *ranking.Strategy) { x.Place = 2 }),
		"not shown to be slower, its promise holds under fewer faults": with(&sends, func(x *ranking.Strategy) {
			x.Survives = 1
		}),
		"not shown to be slower, more commands":                   with(&busy, nil),
		"not shown to be slower, several callers share a command": with(&batches, nil),
		"as good": with(&sends, nil),
	} {
		best := with(&sends, nil)
		best.Label = "best"
		s := ranking.Setting{ByTime: true, Strategies: []ranking.Strategy{best, x}}
		if got := strings.Join(Advice(false, &s), " "); !strings.Contains(got, "Use best: its reason, ") ||
			!strings.Contains(got, "It was chosen over other ("+want+").") {
			t.Errorf("want %q: %s", want, got)
		}
	}
}

// TestWhomTheLimitMeets: the answer of a trace names them, or says that there is nobody.
func TestWhomTheLimitMeets(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	f.Runs[0].Issued = 40
	f.Runs[0].Rejected = 12
	f.Runs[0].Limited = &results.Limited{Subjects: 2, Of: 5, Most: []results.LimitedSubject{
		{Subject: "192.0.2.10", Issued: 14, Rejected: 9}, {Subject: "198.51.100.7", Issued: 9, Rejected: 3},
	}}
	s := ranking.Of(f)[0]
	got := strings.Join(Advice(true, &s), " ")
	want := "It rejects 12 of 40 requests, those of 2 of 5 subjects: 192.0.2.10 9 of 14, 198.51.100.7 3 of 9."
	if !strings.Contains(got, want) {
		t.Errorf("%q", got)
	}
	f.Runs[0].Leak.Trials = 0
	s = ranking.Of(f)[0]
	got = strings.Join(Advice(true, &s), " ")
	if !strings.HasPrefix(got, "No request went beyond the limit, so nobody is limited") {
		t.Errorf("%q", got)
	}
}

// TestNoAdviceForAKnownDefect: a strategy that a search broke without any fault is not one to use.
func TestNoAdviceForAKnownDefect(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[4])
	s := ranking.Of(f)[0]
	want := []string{
		"No strategy that ran enforces the limit.",
		"These ran: lua-reserve (a search found a leak (12 steps) without any fault).",
	}
	if got := Advice(false, &s); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
