package ranking_test

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results/codec"
)

// What a run left says which strategies enforce its policy, and what is wrong with the
// others.
func ExampleOf() {
	file, err := codec.Read("../../../results/baseline/run-rolling/results.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	setting := ranking.Of(file)[0]
	for _, s := range setting.Strategies {
		if s.Label == "sliding-log" || s.Label == "token-bucket" {
			fmt.Println(s.Label, s.Group)
		}
	}
	fmt.Println("cheapest:", setting.Cheapest() != nil)
	// Output:
	// sliding-log enforces
	// token-bucket bound too large
	// cheapest: true
}
