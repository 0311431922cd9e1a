package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quotabench/quotabench/internal/clock"
)

// resultsFile is the name of the record in a run's directory.
const resultsFile = "results.json"

// outDir is the directory of this run's files. It is checked and not yet made:
// what else is wrong with the command line must leave nothing behind. Results
// that are already there are never overwritten.
func (s *settings) outDir() (string, error) {
	dir := s.out
	if dir == "" {
		dir = filepath.Join("quotabench-results", clock.Wall{}.Now().UTC().Format("20060102T150405.000Z"))
	}
	if _, err := os.Lstat(filepath.Join(dir, resultsFile)); err == nil {
		return "", s.wrong("out", fmt.Errorf("%s already holds a %s: name another directory, or move it away", dir, resultsFile))
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
