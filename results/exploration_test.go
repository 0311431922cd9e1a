package results

import (
	"slices"
	"testing"
)

// A strategy is tried if any search of it has run a schedule, in either of its parts.
func TestUntried(t *testing.T) {
	x := Exploration{
		Searches: []*Search{
			{Strategy: "none"}, {Strategy: "later"}, {Strategy: "second part", Bounded: &Bounded{Runs: 1}},
			{Strategy: "later", Runs: 1},
			{Strategy: "no second part", Bounded: &Bounded{}}, {Strategy: "none"},
		},
		Censuses: []*Census{{Strategy: "not counted"}, {Strategy: "counted", Schedules: 1},
			{Strategy: "an empty part", Complete: true}},
	}
	if got, want := x.Untried(), []string{"none", "no second part", "not counted"}; !slices.Equal(got, want) {
		t.Errorf("untried are %q, want %q", got, want)
	}
}
