package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/present/plot"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/settings/group"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results/render"
)

func plotCommand() *cobra.Command {
	p := &plotting{dir: "plots", formats: []string{"svg", "png"}}
	var only, kinds []string
	var s *settings.Set
	cmd := described("plot", &cobra.Command{
		Args: needs(1, 0, "plot needs a record: give files or directories that run, sim or explore left"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p.args, p.formats = args, group.Items(p.formats)
			if p.kinds, err = chosenPlots(group.Items(only), kinds); err != nil {
				return err
			}
			for _, f := range p.formats {
				if f != "svg" && f != "png" {
					return usagef("--format: give svg, png or both, not %q", f)
				}
			}
			return replot(cmd, s, p)
		},
	})
	cmd.Long += "\n\nPlots:"
	for _, k := range render.Plots() {
		kinds = append(kinds, k.Name)
		cmd.Long += fmt.Sprintf("\n  %-12s %s", k.Name, k.Doc)
	}
	s = settings.New(cmd, []settings.Setting{
		{Name: "out", Short: "o", Value: settings.Text(&p.dir)},
		{Name: "format", Value: settings.List(&p.formats), Complete: settings.Words("svg", "png")},
		{Name: "only", Value: settings.List(&only), Complete: settings.Words(kinds...)},
		jsonFlag(&p.asJSON, "say what was read and written, as JSON on standard output"),
	})
	return cmd
}

func chosenPlots(only, known []string) (out []render.PlotKind, err error) {
	for _, name := range only {
		if !slices.Contains(known, name) {
			return nil, usagef("--only: %w", quota.Unknown("plot", name, known, ""))
		}
	}
	for _, k := range render.Plots() {
		if len(only) == 0 || slices.Contains(only, k.Name) {
			out = append(out, k)
		}
	}
	return out, nil
}

// plotting is what is drawn, and where to.
type plotting struct {
	args, formats []string
	dir           string
	kinds         []render.PlotKind
	asJSON        bool
}

// replot draws records again. What they lack is said, and is an error if nothing can
// be drawn.
func replot(cmd *cobra.Command, s *settings.Set, p *plotting) error {
	bundles, err := session.Before(cmd.Context(), func() ([]namedBundle, error) { return readBundles(cmd.Context(), p.args) })
	if err != nil {
		return err
	}
	var outputs []render.Output
	var notes []string
	for i, b := range bundles {
		for _, k := range p.kinds {
			if i > 0 && k.Files == nil { // series and schedules are in the first bundle
				continue
			}
			images, missing, err := b.draw(k, p.formats)
			if err != nil {
				return fail(ExitUsage, err)
			}
			outputs, notes = append(outputs, images...), append(notes, missing...)
		}
	}
	for _, n := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), n)
	}
	if len(outputs) == 0 && slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, plot.NotMeasurable) }) {
		return nil // a busy machine is no wrong command
	}
	if len(outputs) == 0 {
		return usagef("nothing to draw in %s: see quotabench plot --help for what plots need", strings.Join(p.args, ", "))
	}
	return writeExport(cmd, s, p.dir, outputs, &written{Records: p.args, Notes: notes, asJSON: p.asJSON})
}

// namedBundle is what is drawn together, and how the names of its files begin.
type namedBundle struct {
	*render.Bundle
	prefix string
}

// draw draws one kind of plot, and says what the records lack for it.
func (b *namedBundle) draw(k render.PlotKind, formats []string) (images []render.Output, notes []string, err error) {
	drawings, missing, err := render.Draw(b.Bundle, k)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range missing {
		notes = append(notes, b.prefix+n)
	}
	for j := range drawings {
		if k.Files != nil {
			drawings[j].Name = b.prefix + drawings[j].Name
		}
	}
	for _, f := range formats {
		more, err := render.Images(drawings, f)
		if err != nil {
			return nil, nil, err
		}
		images = append(images, more...)
	}
	return images, notes, nil
}

// readBundles reads records: one bundle for each run, of which the first also has all
// series and each all explorations.
func readBundles(ctx context.Context, args []string) (out []namedBundle, err error) {
	found, err := reportBundles(ctx, args)
	if err != nil {
		return nil, fail(ExitUsage, err)
	}
	all := render.Bundle{}
	for _, b := range found {
		all.Series = append(all.Series, b.Series...)
		all.Exploration = all.Exploration.With(b.Exploration)
		if b.File != nil {
			out = append(out, namedBundle{&render.Bundle{File: b.File}, prefixOf(b.Name, out)})
		}
	}
	if len(out) == 0 {
		return []namedBundle{{Bundle: &all}}, nil
	}
	if len(out) == 1 {
		out[0].prefix = ""
	}
	for _, b := range out {
		b.Exploration = all.Exploration
	}
	out[0].Series = all.Series
	return out, nil
}

// prefixOf names a run by its directory, or by its file if that has another name
// than records have.
func prefixOf(path string, taken []namedBundle) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	prefix := name + "-"
	for n := 2; slices.ContainsFunc(taken, func(b namedBundle) bool { return b.prefix == prefix }); n++ {
		prefix = fmt.Sprintf("%s-%d-", name, n)
	}
	return prefix
}
