package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/document"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// compareSettings are all that a comparison can be told.
type compareSettings struct {
	*group.Settings
	strict bool
}

// judged says what is worse.
func (s *compareSettings) judged() []settings.Setting {
	return []settings.Setting{
		{Name: "strict", Title: settings.Gates, Value: settings.Bool(&s.strict)},
		jsonFlag(&s.JSON, "write JSON"),
	}
}

func compareCommand() *cobra.Command {
	s := &compareSettings{Settings: group.New(group.Compare)}
	cmd := described("compare", &cobra.Command{
		Args: needs(2, 2, "compare needs two records, first the base and then the head, and got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			comparison, err := workedOut(cmd, s.Settings, nil, func() (*compare.Comparison, error) {
				return s.compare(args[0], args[1])
			})
			if err != nil {
				return err
			}
			defer session.OutlivePipes()()
			if s.JSON {
				s.Format = document.JSON
			}
			return showComparison(cmd, s.Format, comparison)
		},
	})
	s.Register(cmd, s.Formats(), s.Conditions(), s.IfUndecided(), s.Tolerated(), s.judged(), s.ConfigFile())
	return cmd
}

// compare reads both records and compares them.
func (s *compareSettings) compare(base, head string) (*compare.Comparison, error) {
	options, err := s.Comparison()
	if err != nil {
		return nil, err
	}
	options.Strict = s.strict
	var sides [2]compare.Side
	for i, path := range []string{base, head} {
		sides[i], err = readSide(path)
		if err != nil {
			return nil, fail(exit.Usage, err)
		}
	}
	read := s.RunGates
	if sides[1].Exploration != nil {
		read = func() error { return s.SearchGates(nil) }
	}
	if err := read(); err != nil {
		return nil, err
	}
	options.Gates = s.Gates
	comparison, err := compare.Compare(sides[0], sides[1], options)
	return comparison, fail(exit.Usage, err)
}

// readSide reads a record, or the one in a directory.
func readSide(path string) (compare.Side, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		for _, name := range []string{files.ResultsName, files.ExplorationName} {
			if found, _ := filepath.Glob(filepath.Join(path, name) + "*"); len(found) > 0 {
				return readSide(filepath.Join(path, name))
			}
		}
		return compare.Side{}, fmt.Errorf("%s holds no %s and no %s", path, files.ResultsName, files.ExplorationName)
	}
	record, err := codec.ReadRecord(path)
	if err != nil {
		return compare.Side{}, err
	}
	if record.File == nil && record.Exploration == nil {
		return compare.Side{}, fmt.Errorf("%s is a series: compare the %s next to it", path, files.ResultsName)
	}
	side := compare.Side{Name: path, File: record.File, Exploration: record.Exploration}
	if side.File != nil && side.File.Kind == results.Simulated {
		side.Series, err = seriesBeside(path)
	}
	return side, err
}

// seriesBeside reads how the simulations in a record developed, if that is kept next to it.
func seriesBeside(path string) ([]results.Series, error) {
	record, err := codec.ReadRecord(filepath.Join(filepath.Dir(path), files.SeriesName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return record.Series, err
}

// showComparison writes the comparison in a format and turns it into an exit code.
func showComparison(cmd *cobra.Command, format string, comparison *compare.Comparison) error {
	page, stdout := terminal.Page(cmd)
	if format == document.Markdown || format == document.GitHub {
		page.Colour = false
	}
	for _, renderer := range render.Comparisons() {
		if renderer.Name != format {
			continue
		}
		data, err := renderer.Render(page, comparison)
		if err == nil {
			_, err = stdout.Write(data)
		}
		if err == nil && format == document.GitHub {
			err = jobSummary(comparison)
		}
		if err != nil {
			return fail(exit.Failed, err)
		}
	}
	if !comparison.Passes() && len(comparison.Failed()) == 0 {
		return fail(exit.Gate, errors.New("not all could be compared, and the comparison is strict"))
	}
	return session.Failures(cmd.ErrOrStderr(), nil, comparison.Failed())
}

// summaryVariable names the file that GitHub Actions shows on the page of a job.
const summaryVariable = "GITHUB_STEP_SUMMARY"

// jobSummary appends the table to the summary of the job, if there is one.
func jobSummary(comparison *compare.Comparison) error {
	var buffer bytes.Buffer
	if err := tables.ComparisonMarkdown(&buffer, render.Page{}, comparison); err != nil {
		return err
	}
	return summaryOfJob(buffer.Bytes())
}

func summaryOfJob(page []byte) error {
	path := os.Getenv(summaryVariable)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = file.Write(append(page, '\n'))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", summaryVariable, err)
	}
	return nil
}
