package cli

import (
	"errors"
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
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

func exportCommand() *cobra.Command {
	var as, strategy, out string
	var names []string
	var asJSON bool
	var s *settings.Set
	cmd := described("export", &cobra.Command{
		Args: needs(1, 1, "export takes one file, but got %d: give a record that run, sim or explore left"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if as == "" {
				return usagef("export needs a format: give --format %s", strings.Join(names, ", "))
			}
			outputs, err := session.Before(cmd.Context(), func() ([]render.Output, error) { return exported(args[0], as, strategy) })
			if err != nil {
				return err
			}
			did := written{Records: args, asJSON: asJSON}
			if out != "" {
				return writeExport(cmd, s, out, outputs, &did)
			}
			if asJSON {
				for _, o := range outputs {
					did.Files = append(did.Files, writtenFile{Name: o.Name, Bytes: len(o.Bytes), Text: string(o.Bytes)})
				}
				return did.tell(cmd.OutOrStdout())
			}
			for _, o := range outputs {
				if _, err := cmd.OutOrStdout().Write(o.Bytes); err != nil {
					return fail(ExitFailed, fmt.Errorf("write %s: %w", o.Name, err))
				}
			}
			return nil
		},
	})
	cmd.Long += "\n\nFormats:"
	for _, r := range render.Exports() {
		names = append(names, r.Name)
		cmd.Long += fmt.Sprintf("\n  %-8s %s", r.Name, r.Doc)
	}
	s = settings.New(cmd, []settings.Setting{
		{Name: "format", Value: settings.Text(&as, names...)},
		{Name: "strategy", Value: settings.Text(&strategy), Complete: group.CompleteStrategies},
		{Name: "out", Short: "o", Value: settings.Text(&out)},
		jsonFlag(&asJSON, "say what was read and written, as JSON on standard output"),
	})
	return cmd
}

// exported reads a record and renders it as one of [render.Exports].
func exported(name, as, strategy string) ([]render.Output, error) {
	rec, err := codec.ReadRecord(name)
	if err != nil {
		return nil, fail(ExitUsage, err)
	}
	bundle := &render.Bundle{File: rec.File, Series: rec.Series, Exploration: rec.Exploration}
	if strategy != "" {
		if bundle, err = bundle.Only(strategy); err != nil {
			return nil, usagef("%s: --strategy: %w", name, err)
		}
	}
	formats := render.Exports()
	i := slices.IndexFunc(formats, func(r render.Renderer) bool { return r.Name == as })
	outputs, err := formats[i].Render(bundle)
	if err != nil {
		return nil, fail(ExitUsage, fmt.Errorf("%s: %w", name, err))
	}
	if len(outputs) == 0 {
		return nil, usagef("--format: %s is for runs, and %s holds none: give csv", as, name)
	}
	return outputs, nil
}

// writeExport writes files of names that are not there yet, and tells of them.
func writeExport(cmd *cobra.Command, s *settings.Set, dir string, outputs []render.Output, did *written) error {
	if err := session.CanMake(s, "out", dir); err != nil {
		return err
	}
	for _, o := range outputs {
		if _, err := os.Lstat(filepath.Join(dir, o.Name)); err == nil {
			return usagef("--out: %s already holds %s: name another directory, or move it away", dir, o.Name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return session.BadDir(s, "out", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return session.BadDir(s, "out", err)
	}
	for _, o := range outputs {
		path := filepath.Join(dir, o.Name)
		if err := atomicfile.Write(path, o.Bytes); err != nil {
			return fail(ExitFailed, err)
		}
		did.add(path, o.Bytes)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s written to %s\n", format.Number(len(outputs), "file"), dir)
	return did.tell(cmd.OutOrStdout())
}
