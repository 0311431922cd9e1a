package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results/render"
)

// resultsFile is the name of the record in a run's directory.
const resultsFile = render.ResultsName

// outDir is the directory of this run's files.
func (s *settings) outDir() (string, error) { return s.outDirFor(resultsFile) }

// outDirFor is the directory of files of which record is the first. It is checked
// and not yet made: what else is wrong with the command line must leave nothing
// behind. A record that is already there is never overwritten.
func (s *settings) outDirFor(record string) (string, error) {
	dir := s.out
	if dir == "" {
		dir = filepath.Join("quotabench-results", clock.Wall{}.Now().UTC().Format("20060102T150405.000Z"))
	}
	if _, err := os.Lstat(filepath.Join(dir, record)); err == nil {
		return "", s.wrong("out", fmt.Errorf("%s already holds %s: name another directory, or move it away", dir, record))
	}
	if err := s.canMake("out", dir); err != nil {
		return "", err
	}
	if s.history == "" {
		return dir, nil
	}
	if kept, _ := filepath.Glob(filepath.Join(s.history, "*"+harness.HistoryExt)); len(kept) > 0 {
		return "", s.wrong("history", fmt.Errorf("%s already holds %s: name another directory, or move them away", s.history, format.Plural(int64(len(kept)), "history", "histories")))
	}
	return dir, s.canMake("history", s.history)
}

// canMake reports whether a directory is there, or can be made in one that is.
func (s *settings) canMake(name, dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		fi, err := os.Stat(at)
		switch {
		case err == nil && fi.IsDir():
			return s.canWrite(name, at)
		case err == nil:
			return s.wrong(name, fmt.Errorf("%s is a file: name a directory", at))
		case at == filepath.Dir(at), !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return s.badDir(name, err)
		}
	}
}

// makeOut makes the directory, and the one of histories where there is one.
func (s *settings) makeOut(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s.badDir("out", err)
	}
	if s.history == "" {
		return nil
	}
	if err := os.MkdirAll(s.history, 0o755); err != nil {
		return s.badDir("history", err)
	}
	return nil
}

func (s *settings) badDir(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = fmt.Errorf("cannot use %s: %w: name another directory", p.Path, p.Err)
	}
	return s.wrong(name, err)
}
