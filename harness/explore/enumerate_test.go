package explore_test

import (
	"encoding/json"
	"testing"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/workloads"
)

// Several workers count the same, and show the same schedule, as one does; and if a
// bound ends the count, the same schedules are counted.
func TestWorkersCountTheSame(t *testing.T) {
	sel := choose(t, "check-then-set")
	bounds := testenv.Pick([]int64{1, 256, 257, 2519, 2520}, []int64{1, 255, 256, 257, 1000, 1500, 2519, 2520, 100_000})
	if testenv.Race { // the sums are not what it looks at
		bounds = []int64{257, 1000}
	}
	for _, most := range bounds {
		var first string
		for _, workers := range []int{1, 2, 3, 7} {
			c, err := explore.Enumerate(t.Context(), sel, explore.Config{Clients: 4, Limit: 4, Workers: workers, MaxSchedules: most})
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

// The parts of an enumeration count each schedule once, and the first of them with a shortest leak has the one that is shown of the
// whole; most parts of many have few schedules or none.
func TestPartsCountTheWhole(t *testing.T) {
	testenv.Sequential(t)
	sel := choose(t, "check-then-set")
	for _, of := range []int{1, 2, 3, 7} {
		cfg := explore.Config{Clients: 4, Limit: 3}
		whole, err := explore.Enumerate(t.Context(), sel, cfg)
		if err != nil || whole.Schedules != 2520 || whole.Leaking == 0 { // 8!/2!^4
			t.Fatalf("%+v, %v", whole, err)
		}
		sum, most := explore.Census{Complete: true}, int64(0)
		for part := range of {
			cfg.Part, cfg.Workers = workloads.Shard{Part: part + 1, Of: of}, part%2+1
			c, err := explore.Enumerate(t.Context(), sel, cfg)
			if err != nil || c.Part != cfg.Part.String() {
				t.Fatalf("%+v, %v", c, err)
			}
			sum.Schedules += c.Schedules
			sum.Leaking += c.Leaking
			sum.Worst = max(sum.Worst, c.Worst)
			sum.Complete = sum.Complete && c.Complete
			if most = max(most, c.Schedules); c.Shortest != nil && (sum.Shortest == nil || len(c.Shortest.Steps) < len(sum.Shortest.Steps)) {
				sum.Shortest = c.Shortest
			}
		}
		if sum.Schedules != whole.Schedules || sum.Leaking != whole.Leaking || sum.Worst != whole.Worst || !sum.Complete ||
			sum.Shortest.Token != whole.Shortest.Token || most > 2*whole.Schedules/int64(of) {
			t.Errorf("%d parts: %+v, at most %d schedules in one, whole: %+v", of, sum, most, whole)
		}
	}
	for _, cfg := range []explore.Config{{Part: workloads.Shard{Part: 3, Of: 2}}, {Part: workloads.Shard{Part: 1}}} {
		if c, err := explore.Enumerate(t.Context(), sel, cfg); err == nil {
			t.Errorf("%v is taken for a part: %+v", cfg.Part, c)
		}
	}
	if _, err := explore.Run(t.Context(), sel, explore.Config{Part: workloads.Shard{Part: 1, Of: 2}}); err == nil {
		t.Error("a search takes a part, which it does not have")
	}
}
