package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

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
	"sweep-period":        {"leak", "Measured: leak grows with the period, until each of two instances admits its whole limit before it hears of the other."},
	"sweep-period-sim":    {"leak", "The same in virtual time:"},
	"sweep-instances":     {"leak", "Measured: with a period of 1 s, leak hardly grows from 4 instances on. With a period as long as the window, each further instance adds a limit."},
	"sweep-instances-sim": {"leak", "The same in virtual time:"},
	"sweep-over-quota":    {"p99", "The p99 of 9 µs that ADR-005 claims for `three-tier` is not met, even if 99 % of the requests are over quota."},
	"sweep-latency":       {"p99 leak", "If Redis is farther away, more time passes between reading a count and writing it: racy strategies leak more."},
}

// newSweep draws a record.
func newSweep(name string, f results.File) (s Sweep, err error) {
	what, ok := swept[name]
	if !ok {
		return s, fmt.Errorf("%s is a sweep: say in tools/pages/plots.go what its plot shows", name)
	}
	kinds := slices.DeleteFunc(render.Plots(), func(k render.PlotKind) bool { return k.Name != "sweep" })
	drawings, notes, err := render.Draw(&render.Bundle{File: &f}, kinds...)
	if err != nil {
		return s, err
	}
	s = Sweep{Name: name, File: f, About: what.about}
	for quantity := range strings.FieldsSeq(what.quantities) {
		i := slices.IndexFunc(drawings, func(d render.Drawing) bool { return d.Name == "sweep-"+quantity })
		if i < 0 {
			return s, fmt.Errorf("the sweep %s has no plot of %s: %s", name, quantity, strings.Join(notes, "; "))
		}
		s.Plots = append(s.Plots, drawings[i])
	}
	return s, nil
}

// image is the file of a plot, seen from the pages.
func (s *Sweep) image(plot render.Drawing) string {
	return "../images/" + s.Name + strings.TrimPrefix(plot.Name, "sweep") + ".svg"
}

// sweeps has the plots with the strategy in them.
func sweeps(b *bytes.Buffer, m *strategies.Meta, e *Evidence) {
	title := "## Sweeps\n\n"
	for i := range e.Sweeps {
		s := &e.Sweeps[i]
		if !slices.ContainsFunc(s.File.Runs, func(r results.Run) bool { return r.Strategy == m.Name }) {
			continue
		}
		fmt.Fprintf(b, "%s%s [%s](../../results/baseline/%s/report.txt)\n\n", title, s.About, s.Name, s.Name)
		for _, d := range s.Plots {
			fmt.Fprintf(b, "![%s](%s)\n\n", d.Plot.Title(), s.image(d))
		}
		title = ""
	}
}
