package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quotabench/quotabench/internal/clock"
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
	for at := dir; ; at = filepath.Dir(at) {
		fi, err := os.Stat(at)
		switch {
		case err == nil && fi.IsDir():
			return dir, nil
		case err == nil:
			return "", s.wrong("out", fmt.Errorf("%s is a file: name a directory", at))
		case at == filepath.Dir(at), !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return "", s.badOut(err)
		}
	}
}

// makeOut makes the directory.
func (s *settings) makeOut(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s.badOut(err)
	}
	return nil
}

func (s *settings) badOut(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = fmt.Errorf("cannot use %s: %w: name another directory", p.Path, p.Err)
	}
	return s.wrong("out", err)
}
