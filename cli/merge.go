package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/atomicfile"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/generators"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

func mergeCommand() *cobra.Command {
	var out string
	var asJSON bool
	var s *settings.Set
	cmd := described("merge", &cobra.Command{
		Args: needs(2, 0, "merge takes two files or more, but got %d: give results.json files that run or sim left"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usagef("merge needs a place for the results: give --out FILE")
			}
			if err := freeFile(s, out); err != nil {
				return err
			}
			merged, err := session.Before(cmd.Context(), func() (results.File, error) { return mergeFiles(cmd.Context(), args) })
			if err != nil {
				return err
			}
			b, err := codec.Encode(merged)
			if err != nil {
				return fail(ExitFailed, err)
			}
			if err := atomicfile.Write(out, b); err != nil {
				return fail(ExitFailed, err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s of %s written to %s\n",
				format.Plural(int64(len(merged.Runs)), "run", "runs"), format.Plural(int64(len(args)), "file", "files"), out)
			did := written{Records: args, Runs: len(merged.Runs), asJSON: asJSON}
			did.add(out, b)
			if err := did.tell(cmd.OutOrStdout()); err != nil {
				return err
			}
			if undecided := generators.Report(cmd.ErrOrStderr(), &merged); undecided > 0 {
				return fail(ExitFailed, fmt.Errorf("%s of generators undecided", format.Plural(int64(undecided), "run is", "runs are")))
			}
			return nil
		},
	})
	s = settings.New(cmd, []settings.Setting{
		{Name: "out", Short: "o", Value: settings.Named(&out, "the name of a file"), Doc: "write the results to this `file`"},
		jsonFlag(&asJSON, "say what was read and written, as JSON on standard output"),
	})
	return cmd
}

func mergeFiles(ctx context.Context, names []string) (results.File, error) {
	var files []results.Named
	for _, name := range names {
		if ctx.Err() != nil {
			return results.File{}, ctx.Err()
		}
		f, err := codec.Read(name)
		if err != nil {
			return results.File{}, fail(ExitUsage, err)
		}
		files = append(files, results.Named{Name: name, File: f})
	}
	merged, err := results.Merge(files)
	if err != nil {
		return merged, fail(ExitUsage, err)
	}
	return merged, generators.Decide(ctx, &merged, files)
}
