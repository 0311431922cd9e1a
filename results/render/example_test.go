package render_test

import (
	"bytes"
	"fmt"

	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// The page and the plots are made from what a run left, and from nothing else.
func ExampleHTML() {
	file, err := codec.Read("../baseline/first/results.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := render.HTML([]*render.Bundle{{File: &file}})
	fmt.Println("page:", bytes.Contains(page, []byte("lua-reserve")), err)

	latency, err := plot.Latency(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	svg, err := latency.SVG()
	fmt.Println("plot:", bytes.HasPrefix(bytes.TrimSpace(svg), []byte("<svg")) ||
		bytes.HasPrefix(svg, []byte("<?xml")), err)
	// Output:
	// page: true <nil>
	// plot: true <nil>
}
