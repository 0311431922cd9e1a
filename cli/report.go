package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// reportDir is where the files of a report go, unless --out names another directory.
const reportDir = "report"

func reportCommand() *cobra.Command {
	r := &reporting{formats: []string{formatText, formatPage}}
	cmd := described("report", &cobra.Command{
		Args: needs(1, 0, "report needs a record: give files or directories that run, sim or explore left"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.cmd = cmd
			r.records = args
			return r.run()
		},
	})
	cmd.Long += "\n\nFormats:"
	var names []string
	for _, reportFormat := range formats() {
		names = append(names, reportFormat.name)
		cmd.Long += fmt.Sprintf("\n  %-12s %s", reportFormat.name, reportFormat.doc)
	}
	var plots []string
	for _, plot := range render.Plots() {
		plots = append(plots, plot.Name)
	}
	r.set = settings.New(cmd, []settings.Setting{
		{Name: "out", Short: "o", Value: settings.Named(&r.out, "a directory"), Computed: true},
		{Name: "format", Value: settings.List(&r.formats), Complete: settings.Words(names...)},
		{Name: "only", Value: settings.List(&r.only), Complete: settings.Words(plots...), Computed: true},
		{Name: "strategy", Value: settings.Text(&r.strategy), Complete: group.CompleteStrategies},
	})
	return cmd
}

// reporting is one call of report.
type reporting struct {
	cmd *cobra.Command
	set *settings.Set
	// records are the files and directories that were given.
	records  []string
	formats  []string
	only     []string
	strategy string
	out      string
}

func (r *reporting) run() error {
	chosen, err := r.chosenFormats()
	if err != nil {
		return err
	}
	plots, err := r.chosenPlots(chosen)
	if err != nil {
		return err
	}
	bundles, err := session.Before(r.cmd.Context(), r.read)
	if err != nil {
		return fail(exit.Usage, err)
	}
	var printed, files []render.Output
	var notes []string
	for _, reportFormat := range chosen {
		outputs, missing, err := reportFormat.render(&rendering{bundles: bundles, plots: plots})
		if err != nil {
			return fail(exit.Usage, err)
		}
		notes = append(notes, missing...)
		if reportFormat.printed && r.out == "" {
			printed = append(printed, outputs...)
		} else {
			files = append(files, outputs...)
		}
	}
	for _, note := range notes {
		fmt.Fprintln(r.cmd.ErrOrStderr(), note)
	}
	if len(printed)+len(files) == 0 {
		return r.nothing()
	}
	if err := r.free(files); err != nil {
		return err
	}
	if err := r.print(chosen, bundles, printed); err != nil {
		return fail(exit.Failed, err)
	}
	return r.write(files)
}

// nothing says that the records have nothing of the formats that were asked for.
func (r *reporting) nothing() error {
	formats := strings.Join(group.Items(r.formats), ", ")
	return usagef("%s has nothing for --format %s: see quotabench report --help for what formats and plots need",
		strings.Join(r.records, ", "), formats)
}

// chosenFormats are the formats that were asked for, in the order of help.
func (r *reporting) chosenFormats() (chosen []reportFormat, err error) {
	asked := group.Items(r.formats)
	var known, printed []string
	for _, reportFormat := range formats() {
		known = append(known, reportFormat.name)
		if !slices.Contains(asked, reportFormat.name) {
			continue
		}
		chosen = append(chosen, reportFormat)
		if reportFormat.printed {
			printed = append(printed, reportFormat.name)
		}
	}
	for _, name := range asked {
		if !slices.Contains(known, name) {
			return nil, usagef("--format: %w", quota.Unknown("format", name, known, ""))
		}
	}
	if len(printed) > 1 && r.out == "" {
		return nil, usagef("--format: %s cannot be printed together: give one of them, or --out DIRECTORY",
			strings.Join(printed, " and "))
	}
	return chosen, nil
}

// chosenPlots are the kinds of plots that were asked for.
func (r *reporting) chosenPlots(chosen []reportFormat) (plots []render.PlotKind, err error) {
	only := group.Items(r.only)
	drawn := func(f reportFormat) bool { return f.name == formatSVG || f.name == formatPNG }
	if len(only) > 0 && !slices.ContainsFunc(chosen, drawn) {
		return nil, usagef("--only chooses plots: give --format svg or --format png too")
	}
	var known []string
	for _, k := range render.Plots() {
		known = append(known, k.Name)
		if len(only) == 0 || slices.Contains(only, k.Name) {
			plots = append(plots, k)
		}
	}
	for _, name := range only {
		if !slices.Contains(known, name) {
			return nil, usagef("--only: %w", quota.Unknown("plot", name, known, ""))
		}
	}
	return plots, nil
}

// read reads the records, and keeps of them what is asked for.
func (r *reporting) read() ([]*render.Bundle, error) {
	bundles, err := reportBundles(r.cmd.Context(), r.records)
	if err != nil {
		return nil, err
	}
	if r.strategy == "" {
		return bundles, nil
	}
	var kept []*render.Bundle
	var unknown error
	for _, bundle := range bundles {
		part, err := bundle.Only(r.strategy)
		if err != nil {
			unknown = cmp.Or(unknown, err)
			continue
		}
		kept = append(kept, part)
	}
	if len(kept) == 0 {
		return nil, usagef("--strategy: %w", unknown)
	}
	return kept, nil
}

// free refuses to write over files that are there.
func (r *reporting) free(files []render.Output) error {
	if len(files) == 0 {
		return nil
	}
	dir := r.dir()
	if err := session.CanMake(r.set, "out", dir); err != nil {
		return err
	}
	for _, output := range files {
		_, err := os.Lstat(filepath.Join(dir, output.Name))
		if err == nil {
			return usagef("--out: %s already holds %s: name another directory by --out, or give --format text to print the "+
				"tables alone",
				dir, output.Name)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return session.BadDir(r.set, "out", err)
		}
	}
	return nil
}

func (r *reporting) dir() string { return cmp.Or(r.out, reportDir) }

// print writes to standard output what is not written to files. The table of one run is laid out for the terminal.
func (r *reporting) print(chosen []reportFormat, bundles []*render.Bundle, printed []render.Output) error {
	asText := func(f reportFormat) bool { return f.name == formatText }
	if len(bundles) == 1 && bundles[0].File != nil && slices.ContainsFunc(chosen, asText) {
		return session.Show(r.cmd, bundles[0].File, false)
	}
	for _, output := range printed {
		if _, err := r.cmd.OutOrStdout().Write(output.Bytes); err != nil {
			return fmt.Errorf("write %s: %w", output.Name, err)
		}
	}
	return nil
}

// write writes the files and names them.
func (r *reporting) write(outputs []render.Output) error {
	if len(outputs) == 0 {
		return nil
	}
	dir := r.dir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return session.BadDir(r.set, "out", err)
	}
	var names []string
	for _, output := range outputs {
		if err := files.Write(filepath.Join(dir, output.Name), output.Bytes); err != nil {
			return fail(exit.Failed, err)
		}
		names = append(names, output.Name)
	}
	fmt.Fprintf(r.cmd.ErrOrStderr(), "written to %s: %s\n", dir, strings.Join(names, ", "))
	return nil
}

// provenanceName is the file in which a simulation says where and when it ran.
const provenanceName = "provenance.json"

// isRecord reports whether a file has the name of a record.
func isRecord(path string) bool {
	return slices.Contains(append(render.Records(), provenanceName), filepath.Base(path))
}

// reportBundles reads records, and those in directories and below them. Records of one
// directory that belong together become one bundle. Each file is read once.
func reportBundles(ctx context.Context, args []string) ([]*render.Bundle, error) {
	reader := bundleReader{seen: map[string]bool{}}
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, format.Unreadable(arg, err)
		}
		if !info.IsDir() {
			if err := reader.read(codec.Unpacked(arg)); err != nil {
				return nil, err
			}
			continue
		}
		found := false
		err = filepath.WalkDir(arg, func(path string, entry fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			record := codec.Unpacked(path)
			if err != nil || entry.IsDir() || !isRecord(record) {
				return err
			}
			found = true
			return reader.read(record)
		})
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("%s holds no record: give a directory that run, sim or explore wrote to, or one above it",
				arg)
		}
	}
	if len(reader.bundles) == 1 {
		reader.bundles[0].Name = ""
	}
	return reader.bundles, nil
}

// bundleReader puts records together.
type bundleReader struct {
	bundles []*render.Bundle
	// dirs are where the bundles are from.
	dirs []string
	seen map[string]bool
}

func (r *bundleReader) read(path string) error {
	path = filepath.Clean(path)
	if r.seen[path] {
		return nil
	}
	r.seen[path] = true
	if filepath.Base(path) == provenanceName {
		data, err := settings.ReadBounded(path)
		if err != nil {
			return err
		}
		var provenance results.Provenance
		if err := json.Unmarshal(data, &provenance); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.beside(path, func(bundle *render.Bundle) bool { return bundle.Provenance != nil }).Provenance = &provenance
		return nil
	}
	rec, err := codec.ReadRecord(path)
	if err != nil {
		return err
	}
	switch {
	case rec.File != nil:
		r.beside(path, func(bundle *render.Bundle) bool { return bundle.File != nil }).File = rec.File
	case rec.Exploration != nil:
		r.beside(path, func(bundle *render.Bundle) bool { return bundle.Exploration != nil }).Exploration = rec.Exploration
	default:
		r.beside(path, func(bundle *render.Bundle) bool { return bundle.Series != nil }).Series = rec.Series
	}
	return nil
}

// beside is the bundle of the file's directory that does not have what the file holds,
// or a new one.
func (r *bundleReader) beside(path string, has func(*render.Bundle) bool) *render.Bundle {
	dir := filepath.Dir(path)
	for i, bundle := range r.bundles {
		if r.dirs[i] == dir && !has(bundle) {
			return bundle
		}
	}
	name := path
	if isRecord(path) {
		name = dir
	}
	b := &render.Bundle{Name: name, About: session.About}
	r.bundles = append(r.bundles, b)
	r.dirs = append(r.dirs, dir)
	return b
}
