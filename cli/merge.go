package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/atomicfile"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/generators"
	"github.com/quotabench/quotabench/internal/parts"
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
		Args: needs(2, 0, "merge takes two files or more, but got %d: give records that run, sim or explore left"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usagef("merge needs a place for the results: give --out FILE")
			}
			if err := freeFile(s, out); err != nil {
				return err
			}
			merged, err := session.Before(cmd.Context(), func() (codec.Record, error) { return mergeFiles(cmd.Context(), args) })
			if err != nil {
				return err
			}
			b, what, err := encoded(&merged)
			if err != nil {
				return fail(ExitFailed, err)
			}
			if err := atomicfile.Write(out, b); err != nil {
				return fail(ExitFailed, err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s of %s written to %s\n", what, format.Number(len(args), "file"), out)
			did := written{Records: args, asJSON: asJSON}
			if merged.File != nil {
				did.Runs = len(merged.File.Runs)
			}
			did.add(out, b)
			if err := did.tell(cmd.OutOrStdout()); err != nil {
				return err
			}
			if merged.File == nil {
				return nil
			}
			if undecided := generators.Report(cmd.ErrOrStderr(), merged.File); undecided > 0 {
				return fail(ExitFailed, fmt.Errorf("%s of generators undecided", format.Plural(int64(undecided), "run is", "runs are")))
			}
			return nil
		},
	})
	s = settings.New(cmd, []settings.Setting{
		{Name: "out", Short: "o", Value: settings.Named(&out, "the name of a file")},
		jsonFlag(&asJSON, "say what was read and written, as JSON on standard output"),
	})
	return cmd
}

// encoded is a record as it is stored, and in words.
func encoded(r *codec.Record) (b []byte, what string, err error) {
	if x := r.Exploration; x != nil {
		b, err = codec.ExplorationJSON(x)
		return b, format.Plural(int64(len(x.Searches)+len(x.Censuses)), "search", "searches"), err
	}
	b, err = codec.Encode(*r.File)
	return b, format.Number(len(r.File.Runs), "run"), err
}

// mergeFiles merges runs, or the parts of simulations or of searches.
func mergeFiles(ctx context.Context, names []string) (merged codec.Record, err error) {
	var files []results.Named
	var searched []results.Exploration
	for _, name := range names {
		if ctx.Err() != nil {
			return merged, ctx.Err()
		}
		r, err := codec.ReadRecord(name)
		switch {
		case err != nil:
			return merged, fail(ExitUsage, err)
		case r.Exploration != nil:
			searched = append(searched, *r.Exploration)
		case r.File != nil:
			files = append(files, results.Named{Name: name, File: *r.File})
		}
	}
	var file results.File
	switch {
	case len(searched) == len(names):
		merged.Exploration = new(results.Exploration)
		*merged.Exploration, err = parts.Explorations(names, searched)
	case len(files) < len(names):
		err = errors.New("give records of runs alone, or those of searches alone: results.json or exploration.json")
	case slices.ContainsFunc(files, func(n results.Named) bool { return n.File.Part != "" }):
		file, err = parts.Simulations(files)
	default:
		file, err = results.Merge(files)
	}
	if err != nil {
		return merged, fail(ExitUsage, err)
	}
	if merged.Exploration != nil {
		return merged, nil
	}
	merged.File = &file
	return merged, generators.Decide(ctx, &file, files)
}
