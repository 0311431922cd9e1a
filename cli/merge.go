package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/atomicfile"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

func mergeCommand() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge file file...",
		Short: "Put the results of several processes into one file",
		Long: "Reads results.json files. Shards of one load, which run and sim measure with --shard, become\n" +
			"one run per strategy and round: histograms and counts are added up, and so are leaks, since\n" +
			"no two shards have a subject in common. Other runs of one machine become further rounds;\n" +
			"different strategies and settings stand side by side. What does not fit is refused.",
		Example: "  quotabench run incr-expire --shard 1/2 --out a    # and on another machine --shard 2/2 --out b\n" +
			"  quotabench merge a/results.json b/results.json --out whole.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("merge takes two files or more, but got %d: give results.json files that run or sim left", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := freeFile(out); err != nil {
				return err
			}
			merged, err := before(cmd.Context(), func() (results.File, error) { return mergeFiles(cmd.Context(), args) })
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
			fmt.Fprintf(cmd.ErrOrStderr(), "%s of %s written to %s\n", format.Plural(int64(len(merged.Runs)), "run", "runs"), format.Plural(int64(len(args)), "file", "files"), out)
			did := written{Records: args, Runs: len(merged.Runs)}
			did.add(out, b)
			return did.tell(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().VarP(&text{p: &out, what: "the name of a file"}, "out", "o", "write the results to this `file`")
	addDocument(cmd, &asJSON)
	return cmd
}

// freeFile refuses a file that is there, and a folder that is not.
func freeFile(path string) error {
	if path == "" {
		return usagef("merge needs a place for the results: give --out FILE")
	}
	if _, err := os.Lstat(path); err == nil {
		return usagef("--out: %s is there already: name another file, or move it away", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return usagef("--out: %w", unreadableFile(path, err))
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return usagef("--out: %s is no folder: make it, or name another file", filepath.Dir(path))
	}
	return (&settings{}).canWrite("out", filepath.Dir(path))
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
	return merged, nil
}
