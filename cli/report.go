package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/atomicfile"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/settings/group"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// pageExt is how the name of a page ends.
const pageExt = ".html"

func reportCommand() *cobra.Command {
	out := "report" + pageExt
	var asJSON bool
	var maxBound float64
	var s *settings.Set
	cmd := described("report", &cobra.Command{
		Args: needs(1, 0, "report needs a record: give files or directories that run, sim or explore left"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, ok := strings.CutSuffix(out, pageExt)
			if !ok || name == "" {
				return usagef("--out: %q is no name of a page: give one that ends in %s", out, pageExt)
			}
			names := []string{out, name + ".txt"}
			for _, path := range names {
				if err := freeFile(s, path); err != nil {
					return err
				}
			}
			made, err := session.Before(cmd.Context(), func() (madeReport, error) { return reportOf(cmd.Context(), args, maxBound) })
			if err != nil {
				return fail(ExitUsage, err)
			}
			if len(made.bundles) == 1 && !asJSON { // as it was when it was new
				if err := session.Show(cmd, made.bundles[0].File, false); err != nil {
					return fail(ExitFailed, err)
				}
			}
			did := written{Records: args, asJSON: asJSON}
			for i, path := range names {
				if err := atomicfile.Write(path, made.files[i]); err != nil {
					return fail(ExitFailed, err)
				}
				did.add(path, made.files[i])
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "written: %s\n", strings.Join(names, ", "))
			return did.tell(cmd.OutOrStdout())
		},
	})
	s = settings.New(cmd, []settings.Setting{
		{Name: "out", Short: "o", Value: settings.Named(&out, "the name of a file")},
		group.Bound(&maxBound),
		jsonFlag(&asJSON, "say what was read and written, as JSON on standard output"),
	})
	return cmd
}

// madeReport is the page and the text about records.
type madeReport struct {
	bundles []*render.Bundle
	files   [2][]byte
}

// reportOf makes the report about all records.
func reportOf(ctx context.Context, args []string, maxBound float64) (m madeReport, err error) {
	if m.bundles, err = reportBundles(ctx, args); err != nil {
		return m, err
	}
	for _, b := range m.bundles {
		if b.File != nil && maxBound > 0 {
			b.File.MaxBound = maxBound
		}
	}
	if m.files[0], err = render.HTML(m.bundles); err != nil {
		return m, fail(ExitFailed, err)
	}
	m.files[1], err = render.Text(m.bundles)
	return m, fail(ExitFailed, err)
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
	r := bundleReader{seen: map[string]bool{}}
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, format.Unreadable(arg, err)
		}
		if !info.IsDir() {
			if err := r.read(arg); err != nil {
				return nil, err
			}
			continue
		}
		found := false
		err = filepath.WalkDir(arg, func(path string, entry fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil || entry.IsDir() || !isRecord(path) {
				return err
			}
			found = true
			return r.read(path)
		})
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("%s holds no record: give a directory that run, sim or explore wrote to, or one above it", arg)
		}
	}
	if len(r.bundles) == 1 {
		r.bundles[0].Name = ""
	}
	return r.bundles, nil
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
		b, err := settings.ReadBounded(path)
		if err != nil {
			return err
		}
		var p results.Provenance
		if err := json.Unmarshal(b, &p); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.beside(path, func(b *render.Bundle) bool { return b.Provenance != nil }).Provenance = &p
		return nil
	}
	rec, err := codec.ReadRecord(path)
	if err != nil {
		return err
	}
	switch {
	case rec.File != nil:
		r.beside(path, func(b *render.Bundle) bool { return b.File != nil }).File = rec.File
	case rec.Exploration != nil:
		r.beside(path, func(b *render.Bundle) bool { return b.Exploration != nil }).Exploration = rec.Exploration
	default:
		r.beside(path, func(b *render.Bundle) bool { return b.Series != nil }).Series = rec.Series
	}
	return nil
}

// beside is the bundle of the file's directory that does not have what the file holds,
// or a new one.
func (r *bundleReader) beside(path string, has func(*render.Bundle) bool) *render.Bundle {
	dir := filepath.Dir(path)
	for i, b := range r.bundles {
		if r.dirs[i] == dir && !has(b) {
			return b
		}
	}
	name := path
	if isRecord(path) {
		name = dir
	}
	b := &render.Bundle{Name: name, About: session.About}
	r.bundles, r.dirs = append(r.bundles, b), append(r.dirs, dir)
	return b
}
