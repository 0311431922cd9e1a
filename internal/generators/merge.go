package generators

import (
	"context"
	"path/filepath"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// Merge makes one record of what the generators of one run handed back, each in a directory
// of its own. The verdicts are those on the union of the histories. A generator whose
// directory or history is missing, or whose files are damaged, leaves them undecided: the
// audit of the run says so. An error means that the records are not of one run.
func Merge(ctx context.Context, dirs []string) (results.File, error) {
	var files []results.Named
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return results.File{}, ctx.Err()
		}
		f, err := codec.Read(filepath.Join(dir, "results.json"))
		if err != nil {
			return results.File{}, err
		}
		files = append(files, results.Named{Name: dir, File: f})
	}
	return results.Merge(files)
}
