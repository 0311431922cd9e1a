package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
)

// Sweep is a record of a sweep with its plots, which are on the pages of all strategies in it.
type Sweep struct {
	// Name is that of the record's folder.
	Name string
	File results.File
	// About says what there is to see.
	About string
	Plots []render.Drawing
}

// swept says which quantities of each sweep are drawn, by the name of its record, and what there is to see.
var swept = map[string]struct{ quantities, about string }{
	"sweep-period": {"leak",
		"Measured: leak grows with the period, until each of two instances admits its whole limit before it hears of " +
			"the other."},
	"sweep-period-sim": {"leak", "The same in virtual time:"},
	"sweep-instances": {"leak",
		"Measured: with a period of 1 s, leak hardly grows from 4 instances on. With a period as long as the window, each " +
			"further instance adds a limit."},
	"sweep-instances-sim": {"leak", "The same in virtual time:"},
	"sweep-over-quota":    {"p99", "The p99 of 9 µs that ADR-005 claims for `three-tier` is not met, even if 99 % of the requests are over quota."},
	"sweep-latency": {"p99 leak",
		"If Redis is farther away, more time passes between reading a count and writing it: racy strategies leak more."},
}

// newSweep draws a record.
func newSweep(name string, file results.File) (sweep Sweep, err error) {
	what, ok := swept[name]
	if !ok {
		return sweep, fmt.Errorf("%s is a sweep: say in tools/pages/plots.go what its plot shows", name)
	}
	kinds := slices.DeleteFunc(render.Plots(), func(k render.PlotKind) bool { return k.Name != "sweep" })
	drawings, undrawn, err := render.Draw(&render.Bundle{File: &file}, kinds...)
	if err != nil {
		return sweep, err
	}
	sweep = Sweep{Name: name, File: file, About: what.about}
	for quantity := range strings.FieldsSeq(what.quantities) {
		i := slices.IndexFunc(drawings, func(drawing render.Drawing) bool { return drawing.Name == "sweep-"+quantity })
		if i < 0 {
			return sweep, fmt.Errorf("the sweep %s has no plot of %s: %s", name, quantity,
				format.List(undrawn, "; ", render.Undrawn.String))
		}
		sweep.Plots = append(sweep.Plots, drawings[i])
	}
	return sweep, nil
}

// image is the file of a plot, seen from the pages.
func (s *Sweep) image(plot render.Drawing) string {
	return "../images/" + s.Name + strings.TrimPrefix(plot.Name, "sweep") + ".svg"
}

// sweeps has the plots with the strategy in them.
func sweeps(buffer *bytes.Buffer, meta *strategies.Meta, evidence *Evidence) {
	title := "## Sweeps\n\n"
	for i := range evidence.Sweeps {
		sweep := &evidence.Sweeps[i]
		if !slices.ContainsFunc(sweep.File.Runs, func(run results.Run) bool { return run.Strategy == meta.Name }) {
			continue
		}
		fmt.Fprintf(buffer, "%s%s [%s](../../results/baseline/%s/report.txt)\n\n", title, sweep.About, sweep.Name, sweep.Name)
		for _, drawing := range sweep.Plots {
			fmt.Fprintf(buffer, "![%s](%s)\n\n", drawing.Plot.Title(), sweep.image(drawing))
		}
		title = ""
	}
}
