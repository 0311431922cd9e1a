package compare_test

import (
	"bytes"
	"fmt"
	"log"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/compare"
	"github.com/quotabench/quotabench/results/render"
)

// A program compares two records, checks a condition against one, and can print the table
// of the command line.
func Example() {
	file, err := codec.Read("../baseline/first/results.json")
	if err != nil {
		log.Fatal(err)
	}
	c, err := compare.Compare(compare.Side{Name: "before", File: &file}, compare.Side{Name: "after", File: &file},
		compare.Options{})
	if err != nil {
		log.Fatal(err)
	}
	table, err := render.Comparisons()[0].Render(render.Page{}, c)
	if err != nil {
		log.Fatal(err)
	}
	gate, err := compare.ParseRunGate("leak<=0")
	if err != nil {
		log.Fatal(err)
	}
	failed := map[bool]int{}
	for _, row := range compare.Check(&file, []compare.Gate{gate}) {
		failed[row.Fails(false)]++
	}
	fmt.Println(bytes.Contains(table, []byte("strategies compared")), failed[true] > 0, failed[false] > 0)
	// Output: true true true
}
