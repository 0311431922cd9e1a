package ranking_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// mostKnown is how many findings the answer names of a strategy.
const mostKnown = 2

// broken says what a finding shows; "" for properties that the answer does not name.
func broken(f *results.Finding) string {
	switch {
	case f.Property == "leak":
		return "a leak"
	case f.Property == "guarantee":
		return "a broken guarantee"
	case f.Property != "ttl":
		return ""
	case strings.HasSuffix(f.Detail, "never expires"):
		return "a key that never expires"
	}
	return "a key that expires too soon"
}

// worst are the lines of a strategy's findings: those with the fewest faults first, of these leaks, of these
// those with the fewest steps. Each property is named once.
func worst(strategy string, found []*results.Finding) (lines []string) {
	slices.SortFunc(found, func(a, b *results.Finding) int {
		return cmp.Or(cmp.Compare(len(a.Faults), len(b.Faults)), cmp.Compare(a.Property, b.Property),
			cmp.Compare(len(a.Steps), len(b.Steps)))
	})
	named := map[results.Property]bool{}
	for _, f := range found {
		if named[f.Property] || len(lines) == mostKnown {
			continue
		}
		named[f.Property] = true
		faults := "-"
		if len(f.Faults) > 0 {
			faults = format.List(f.Faults, ",", func(fault quota.Fault) string { return string(fault) })
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%d\n", strategy, faults, broken(f), len(f.Steps)))
	}
	return lines
}

// TestKnownFaults: the table is what the committed searches say.
func TestKnownFaults(t *testing.T) {
	found := map[string][]*results.Finding{}
	for _, dir := range []string{"explore", "explore-faults"} {
		x, err := codec.ReadExploration(filepath.Join("../../../results/baseline", dir, "exploration.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range x.Searches {
			for i := range s.Findings {
				if f := &s.Findings[i]; broken(f) != "" {
					found[s.Strategy] = append(found[s.Strategy], f)
				}
			}
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		lines = append(lines, worst(name, found[name])...)
	}
	want := strings.Join(lines, "")
	if testenv.Update() {
		if err := os.WriteFile("known.tsv", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("known.tsv"); err != nil || string(got) != want {
		t.Errorf("known.tsv is not what the searches say (%v): go test ./internal/report/ranking -run TestKnownFaults "+
			"-update; want\n%s", err, want)
	}
}

// TestKnownOfDefaults: what is known is said of built-in strategies with their default options
// that enforce the policy, not of a limiter of the same name, and changes no group.
func TestKnownOfDefaults(t *testing.T) {
	options := func(r *results.Run) { r.Strategy = "incr-expire" }
	namesake := func(r *results.Run) { r.Form = "library" }
	a := ranking.Of(results.File{Kind: results.Measured, Runs: []results.Run{
		planted("incr-expire", nil), planted("incr-expire:a=b", options), planted("mine", nil), planted("gcra", namesake),
		planted("check-then-set", leak(5)),
	}})
	known := []string{
		"with crash, a search found a key that never expires (3 steps)",
		"with eviction and outage, a search found a leak (9 steps)",
	}
	for _, x := range a[0].Strategies {
		said := slices.ContainsFunc(x.Conditions, func(text string) bool { return strings.Contains(text, "a search found") })
		last := x.Conditions[max(0, len(x.Conditions)-len(known)):]
		if said != (x.Label == "incr-expire") || said && !slices.Equal(last, known) ||
			(x.Group == ranking.Enforces) != (x.Label != "check-then-set") {
			t.Errorf("%s: %s, %q", x.Label, x.Group, x.Conditions)
		}
	}
}

// TestKnownWithoutFault: a strategy that a search broke without any fault fails, however well it ran, and is not the one
// to use.
func TestKnownWithoutFault(t *testing.T) {
	fast := planted("lua-reserve", func(r *results.Run) { r.ThroughputPerS = 1e6 })
	beside := ranking.Of(results.File{Kind: results.Measured, Runs: []results.Run{fast, planted("mine", nil)}})
	if got := beside[0].Cheapest(); got == nil || got.Label != "mine" {
		t.Errorf("%+v, want mine", got)
	}
	one := planted("memory-deque", func(r *results.Run) { r.Params.Instances = 1 })
	perProcess := ranking.Of(results.File{Kind: results.Measured, Runs: []results.Run{one}})
	if got := perProcess[0].Strategies[0]; got.Group != ranking.Enforces {
		t.Errorf("with one instance, memory-deque: %s, %s", got.Group, got.Reason)
	}
	alone := ranking.Of(results.File{Kind: results.Measured, Runs: []results.Run{fast}})
	strategy := alone[0].Strategies[0]
	const why = "held the limit here, but a search found a leak (12 steps) without any fault"
	if alone[0].Cheapest() != nil || strategy.Group.Verdict() != "FAIL" || strategy.Reason != why {
		t.Errorf("%s: %s, %+v", strategy.Group.Verdict(), strategy.Reason, alone[0].Cheapest())
	}
}
