package explore_test

import (
	"encoding/json"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
)

// Several workers count the same, and show the same schedule, as one does; and if a
// bound ends the count, the same schedules are counted.
func TestWorkersCountTheSame(t *testing.T) {
	sel := testkit.Strategy(t, "check-then-set")
	bounds := testenv.Pick([]int64{1, 256, 257, 2519, 2520}, []int64{1, 255, 256, 257, 1000, 1500, 2519, 2520, 100_000})
	if testenv.Race { // the sums are not what it looks at
		bounds = []int64{257, 1000}
	}
	for _, most := range bounds {
		var first string
		for _, workers := range []int{1, 2, 3, 7} {
			c, err := explore.Enumerate(t.Context(), sel,
				explore.Config{Clients: 4, Limit: 4, Resources: explore.Resources{Workers: workers},
					Bounds: explore.Bounds{MaxSchedules: most}})
			if err != nil {
				t.Fatal(err)
			}
			if want := min(most, 2520); c.Schedules != want || c.Complete != (most >= 2520) {
				t.Errorf("%d workers: %d schedules of %d, complete %t", workers, c.Schedules, want, c.Complete)
			}
			got, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = string(got)
			}
			if string(got) != first {
				t.Errorf("at most %d schedules, %d workers:\n%s\none:\n%s", most, workers, got, first)
			}
		}
	}
}
