package sweep_test

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/app/sweep"
)

// Values are listed, or stepped through by a sum or by a factor.
func ExampleParse() {
	for _, text := range []string{"workers=1,8,64", "pool=1..32x2"} {
		swept, err := sweep.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(swept.Name, swept.Values)
	}
	// Output:
	// workers [1 8 64]
	// pool [1 2 4 8 16 32]
}
