package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/atomicfile"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/pages"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/strategies"
)

func pagesCommand() *cobra.Command {
	out := "quotabench-pages"
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pages [directory...]",
		Short: "Write a reference page for each strategy, with figures from earlier runs",
		Long: "Writes a page in Markdown for each strategy, and an index: how it works, what it\n" +
			"guarantees, when to use it. Rows of figures and schedules come from the records that\n" +
			"run, sim and explore left in the given directories and below them. Pages of your own in\n" +
			"--out stay, and are linked from the strategies that they link to; what stands in them\n" +
			"between <!-- quotabench pages: figures of NAMES --> and <!-- quotabench pages: end of\n" +
			"figures --> is made anew.",
		Example: "  quotabench run all --out figures/run && quotabench explore all --out figures/explore\n" +
			"  quotabench pages figures --out reference",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := (&settings{}).canMake("out", out); err != nil {
				return err
			}
			evidence, err := before(cmd.Context(), func() (*pages.Evidence, error) { return readEvidence(args) })
			if err != nil {
				return usageUnless(err)
			}
			if evidence.Others, err = readOthers(out); err != nil {
				return fail(ExitUsage, err)
			}
			all, err := pages.Render(strategies.All(), evidence)
			if err != nil {
				return fail(ExitFailed, err)
			}
			if err := os.MkdirAll(out, 0o755); err != nil {
				return fail(ExitUsage, fmt.Errorf("--out: %w", err))
			}
			did := written{Records: args}
			for _, p := range all {
				path, content := filepath.Join(out, p.Name), []byte(format.Visible(string(p.Bytes)))
				if err := atomicfile.Write(path, content); err != nil {
					return fail(ExitFailed, err)
				}
				did.add(path, content)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s written to %s\n", format.Plural(int64(len(all)), "page", "pages"), out)
			return did.tell(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().VarP(&text{p: &out}, "out", "o", "write the pages to this `directory`")
	addDocument(cmd, &asJSON)
	return cmd
}

// usageUnless is the error of an input file, unless it says something else already.
func usageUnless(err error) error {
	var e *exitError
	if errors.As(err, &e) {
		return err
	}
	return fail(ExitUsage, err)
}

// readEvidence reads the records in directories and below them.
func readEvidence(dirs []string) (*pages.Evidence, error) {
	e := &pages.Evidence{}
	for _, dir := range dirs {
		before := len(e.Runs) + len(e.Explorations)
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			switch entry.Name() {
			case render.ResultsName:
				f, err := codec.Read(path)
				if err != nil {
					return err
				}
				e.Runs = append(e.Runs, f)
			case render.ExplorationName:
				x, err := codec.ReadExploration(path)
				if err != nil {
					return err
				}
				e.Explorations = append(e.Explorations, x)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if before == len(e.Runs)+len(e.Explorations) {
			return nil, errors.New(dir + " holds no " + render.ResultsName + " and no " + render.ExplorationName)
		}
	}
	return e, nil
}

// readOthers reads the pages in a directory that were not generated. One that a
// generated page would replace is an error.
func readOthers(dir string) (others []pages.Page, err error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--out: %w", err)
	}
	for _, f := range files {
		name, page := strings.CutSuffix(f.Name(), ".md")
		if !page || f.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		if pages.Generated(text) {
			continue
		}
		if _, err := strategies.Lookup(name); err == nil || f.Name() == pages.Index {
			return nil, fmt.Errorf("--out: %s was not written by this command: name another directory, or move it away", filepath.Join(dir, f.Name()))
		}
		others = append(others, pages.Page{Name: f.Name(), Bytes: text})
	}
	return others, nil
}
