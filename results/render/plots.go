package render

import (
	"errors"
	"fmt"
	"github.com/quotabench/quotabench/internal/kit/format"
	"strings"

	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/results"
)

// PlotKind is one kind of drawing.
type PlotKind struct {
	// Name of the kind, e.g. "latency".
	Name string
	// Doc is one line.
	Doc string
	// Draw returns the drawings, none if the bundle is of another kind of record. It
	// may return [plot.ErrNothingToPlot] for records without the figures that it shows.
	Draw func(bundle *Bundle) ([]Drawing, error)
	// Files are the names of its drawings, without an extension; none if strategies and
	// findings name them.
	Files []string
}

// Drawing is one plot with the name of its file, without an extension.
type Drawing struct {
	Name string
	Plot *plot.Plot
	// Series and Finding are what it is of, if it is of one.
	Series  *results.Series
	Finding *results.Finding
}

// Plots returns all kinds of drawings.
func Plots() []PlotKind {
	return []PlotKind{
		{"latency", "latency by percentile", ofRuns("latency", plot.Latency), []string{"latency"}},
		{"leakage", "leak and latency", ofRuns("leakage", plot.Leak), []string{"leakage"}},
		{"sweep", "figures against the parameter of a sweep, one file per figure", sweeps, sweepFiles()},
		{"series", "a simulated run over virtual time, one file per strategy", series, nil},
		{"sequence", "a schedule as a sequence chart, one file per finding", sequences, nil},
	}
}

// Draw makes all drawings of a bundle, or those of one kind, and returns those that it could not make.
func Draw(bundle *Bundle, kinds ...PlotKind) (out []Drawing, undrawn []Undrawn, err error) {
	for _, k := range kinds {
		drawings, err := k.Draw(bundle)
		if errors.Is(err, plot.ErrNothingToPlot) {
			undrawn = append(undrawn, Undrawn{Why: err})
			continue
		}
		if err != nil {
			return out, undrawn, fmt.Errorf("draw %s: %w", k.Name, err)
		}
		out = append(out, drawings...)
	}
	return out, undrawn, nil
}

// drawError says which file could not be drawn.
type drawError struct {
	name string
	err  error
}

func (e *drawError) Error() string { return e.name + ": " + e.err.Error() }
func (e *drawError) Unwrap() error { return e.err }

// plotRenderers are the formats of all plots: each kind as SVG and as PNG.
func plotRenderers() (out []Renderer) {
	for _, k := range Plots() {
		for _, f := range []struct{ ext, suffix, doc string }{{"svg", "-svg", ""}, {"png", "-png", ", as a bitmap"}} {
			out = append(out, Renderer{k.Name + f.suffix, f.ext, k.Doc + f.doc, func(bundle *Bundle) ([]Output, error) {
				drawings, err := k.Draw(bundle)
				if f.ext != "svg" && (bundle.NoBitmaps || errors.Is(err, plot.ErrNothingToPlot)) {
					return nil, nil // as was said of the SVG
				}
				if err != nil {
					return nil, &drawError{k.Name + "." + f.ext, err}
				}
				return Images(drawings, f.ext)
			}})
		}
	}
	return out
}

// Images renders drawings as "svg" or "png".
func Images(drawings []Drawing, ext string) (out []Output, err error) {
	for _, drawing := range drawings {
		data, err := drawing.Plot.Render(ext)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", drawing.Name, err)
		}
		out = append(out, Output{Name: drawing.Name + "." + ext, Bytes: data})
	}
	return out, nil
}

// ofRuns is one plot of all runs, which is for no sweep: that has plots of its own.
func ofRuns(name string, draw func(results.File) (*plot.Plot, error)) func(*Bundle) ([]Drawing, error) {
	return func(bundle *Bundle) ([]Drawing, error) {
		if !bundle.hasRuns() || bundle.File.Sweep != nil {
			return nil, nil
		}
		p, err := draw(*bundle.File)
		return []Drawing{{Name: name, Plot: p}}, err
	}
}

func sweepFiles() (out []string) {
	for _, quantity := range plot.Quantities() {
		out = append(out, "sweep-"+quantity.Name)
	}
	return out
}

// sweeps are plots of a sweep, one for each quantity that its runs have.
func sweeps(bundle *Bundle) (out []Drawing, err error) {
	if bundle.File == nil || bundle.File.Sweep == nil || !bundle.hasRuns() {
		return nil, nil
	}
	for _, quantity := range plot.Quantities() {
		p, err := plot.SweepOf(*bundle.File, quantity)
		if errors.Is(err, plot.ErrNothingToPlot) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Drawing{Name: "sweep-" + quantity.Name, Plot: p})
	}
	return out, nil
}

// series is a plot of each series.
func series(bundle *Bundle) (out []Drawing, err error) {
	for i := range bundle.Series {
		p, err := plot.Series(bundle.Series[i])
		if errors.Is(err, plot.ErrNothingToPlot) {
			continue // the run ended before its first sample
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Drawing{Name: "series-" + fileName(bundle.Series[i].Strategy), Plot: p, Series: &bundle.Series[i]})
	}
	return out, nil
}

// sequences are the charts of an exploration's schedules.
func sequences(bundle *Bundle) (out []Drawing, err error) {
	if bundle.Exploration == nil {
		return nil, nil
	}
	drawn := map[string]int{} // several searches of a strategy may break one property
	for _, finding := range bundle.Exploration.Charts() {
		p, err := plot.Sequence(finding)
		if err != nil {
			return nil, err
		}
		name := fileName(finding.Strategy + "-" + string(finding.Property))
		drawn[name]++
		if drawn[name] > 1 {
			name += fmt.Sprintf("-%d", drawn[name])
		}
		out = append(out, Drawing{Name: name, Plot: p, Finding: finding})
	}
	return out, nil
}

// fileName is a strategy's label as part of a file's name.
func fileName(label string) string {
	return format.FileName(strings.NewReplacer("=", "-", "/", "-").Replace(label))
}
