// Package sweep measures strategies at several values of one or two parameters, and
// searches for the highest rate at which a condition holds. It drives the runner of
// [github.com/quotabench/quotabench/harness/measure] and adds no figure of its own: each
// point is a measurement like any other, and the rounds of all points are taken in turns.
//
//	params, err := sweep.ParseAll([]string{"pool=1..64x2"})
//	points, err := sweep.Points(cfg, params)
//	report, err := sweep.Measure(ctx, points)
//	...
//	file := results.File{Runs: report.Runs, Sweep: &results.Sweep{Parameters: params}}
//	for _, s := range file.SweepSeries() {
//		fmt.Println(s.Strategy, len(s.Points))
//	}
package sweep
