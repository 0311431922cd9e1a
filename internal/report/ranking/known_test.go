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
	const known = "known: under crash a key that never expires (3 steps); under eviction and outage a leak (9 steps)"
	for _, x := range a[0].Strategies {
		said := slices.ContainsFunc(x.Conditions, func(c string) bool { return strings.HasPrefix(c, "known") })
		if said != (x.Label == "incr-expire") || said && !slices.Contains(x.Conditions, known) ||
			(x.Group == ranking.Enforces) != (x.Label != "check-then-set") {
			t.Errorf("%s: %s, %q", x.Label, x.Group, x.Conditions)
		}
	}
}

// TestKnownWithoutFault: a strategy that a search broke without any fault is the one to use only if
// there is no other.
func TestKnownWithoutFault(t *testing.T) {
	fast := func(r *results.Run) { r.ThroughputPerS = 1e6 }
	for want, runs := range map[string][]results.Run{
		"mine":        {planted("lua-reserve", fast), planted("mine", nil)},
		"lua-reserve": {planted("lua-reserve", fast), planted("check-then-set", leak(5))},
	} {
		a := ranking.Of(results.File{Kind: results.Measured, Runs: runs})
		if got := a[0].Cheapest(); got == nil || got.Label != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}
