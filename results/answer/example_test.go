package answer_test

import (
	"fmt"

	"github.com/quotabench/quotabench/results/answer"
	"github.com/quotabench/quotabench/results/codec"
)

// What a run left says which strategies enforce its policy, and what is wrong with the
// others.
func ExampleOf() {
	file, err := codec.Read("../baseline/first/results.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	setting := answer.Of(file).Settings[0]
	for _, s := range setting.Strategies {
		if s.Label == "check-then-set" || s.Label == "incr-expire-atomic" {
			fmt.Println(s.Label, s.Group)
		}
	}
	fmt.Println("cheapest:", setting.Cheapest() != nil)
	// Output:
	// incr-expire-atomic enforces
	// check-then-set does not enforce
	// cheapest: true
}
