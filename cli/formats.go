package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/results/render"
)

// The formats that this package names.
const (
	formatText = "text"
	formatPage = "html"
	formatSVG  = "svg"
	formatPNG  = "png"
)

// reportFormat is one form in which report shows records.
type reportFormat struct {
	name string
	doc  string // one line
	// printed is set if it goes to standard output, unless --out is given.
	printed bool
	// render returns the files, none if the records have nothing for the format. notes say what could not be drawn.
	render func(r *rendering) (files []render.Output, notes []string, err error)
}

// rendering is what is shown.
type rendering struct {
	bundles []*render.Bundle
	plots   []render.PlotKind
}

// formats are all formats, in the order of help.
func formats() []reportFormat {
	all := []reportFormat{
		{formatText, "the tables and timelines, as on the terminal", true, (*rendering).text},
		{formatPage, "all of it as one page for a browser, plots and charts included", false, (*rendering).page},
		{formatSVG, "plots, one file each", false, func(r *rendering) ([]render.Output, []string, error) {
			return r.draw(formatSVG)
		}},
		{formatPNG, "the same as bitmaps", false, func(r *rendering) ([]render.Output, []string, error) {
			return r.draw(formatPNG)
		}},
	}
	for _, renderer := range render.Exports() {
		all = append(all, reportFormat{renderer.Name, renderer.Doc, true,
			func(r *rendering) ([]render.Output, []string, error) {
				return r.export(renderer)
			}})
	}
	return all
}

func (r *rendering) text() ([]render.Output, []string, error) {
	data, err := render.Text(r.bundles)
	if err != nil || len(data) == 0 {
		return nil, nil, err
	}
	return []render.Output{{Name: files.TextName, Bytes: data}}, nil, nil
}

func (r *rendering) page() ([]render.Output, []string, error) {
	data, err := render.HTML(r.bundles)
	if err != nil {
		return nil, nil, err
	}
	return []render.Output{{Name: files.HTMLName, Bytes: data}}, nil, nil
}

// export renders each bundle. If there are several, the names of their files begin with those of the bundles.
func (r *rendering) export(renderer render.Renderer) (files []render.Output, notes []string, err error) {
	var names prefixes
	for _, bundle := range r.bundles {
		outputs, err := renderer.Render(bundle)
		if err != nil {
			return nil, nil, err
		}
		if len(r.bundles) > 1 {
			prefix := names.of(bundle.Name)
			for i := range outputs {
				outputs[i].Name = prefix + outputs[i].Name
			}
		}
		files = append(files, outputs...)
	}
	return files, nil, nil
}

// draw draws the plots. What the records lack for one is said in a note.
func (r *rendering) draw(format string) (files []render.Output, notes []string, err error) {
	for _, bundle := range r.drawable() {
		for _, k := range r.plots {
			images, missing, err := bundle.draw(k, format)
			if err != nil {
				return nil, nil, err
			}
			files = append(files, images...)
			notes = append(notes, missing...)
		}
	}
	return files, notes, nil
}

// drawableBundle is what is drawn together, and how the names of its files begin.
type drawableBundle struct {
	*render.Bundle
	prefix string
}

// drawable is one bundle for each run, of which the first also has all series and explorations.
func (r *rendering) drawable() []drawableBundle {
	all := render.Bundle{}
	var names prefixes
	var out []drawableBundle
	for _, bundle := range r.bundles {
		all.Series = append(all.Series, bundle.Series...)
		all.Exploration = all.Exploration.With(bundle.Exploration)
		if bundle.File != nil {
			out = append(out, drawableBundle{&render.Bundle{File: bundle.File}, names.of(bundle.Name)})
		}
	}
	if len(out) == 0 {
		return []drawableBundle{{Bundle: &all}}
	}
	if len(out) == 1 {
		out[0].prefix = ""
	}
	out[0].Series = all.Series
	out[0].Exploration = all.Exploration
	return out
}

// draw draws one kind of plot, and says what the records lack for it.
func (b *drawableBundle) draw(k render.PlotKind, format string) (images []render.Output, notes []string, err error) {
	drawings, missing, err := render.Draw(b.Bundle, k)
	if err != nil {
		return nil, nil, err
	}
	for _, undrawn := range missing {
		notes = append(notes, b.prefix+undrawn.String())
	}
	if k.Files != nil {
		for i := range drawings {
			drawings[i].Name = b.prefix + drawings[i].Name
		}
	}
	images, err = render.Images(drawings, format)
	return images, notes, err
}

// prefixes tells the files of several bundles apart.
type prefixes []string

// of is the name of a bundle's directory, or of its file if that has another name than records have.
func (p *prefixes) of(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	prefix := name + "-"
	for n := 2; slices.Contains(*p, prefix); n++ {
		prefix = fmt.Sprintf("%s-%d-", name, n)
	}
	*p = append(*p, prefix)
	return prefix
}
