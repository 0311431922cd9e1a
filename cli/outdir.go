package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/atomicfile"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/filelock"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results/render"
)

// resultsFile is the name of the record in a run's directory.
const resultsFile = render.ResultsName

// lockName is the file by which a run keeps others out of its directory.
const lockName = ".quotabench.lock"

// outDir is the directory of this run's files. It is checked and not yet made: what
// else is wrong with the command line must leave nothing behind. What an earlier run
// or anyone else wrote there is never overwritten.
func (s *settings) outDir() (string, error) {
	dir := s.out
	if dir == "" {
		dir = filepath.Join("quotabench-results", clock.Wall{}.Now().UTC().Format("20060102T150405.000Z"))
	}
	if err := s.isFree(dir); err != nil {
		return "", err
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

// isFree refuses a directory that holds a file of a name that would be written, be it
// a link.
func (s *settings) isFree(dir string) error {
	for _, name := range render.Names() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return s.wrong("out", fmt.Errorf("%s already holds %s: name another directory, or move it away", dir, name))
		}
	}
	return nil
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

func (s *settings) badDir(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = fmt.Errorf("cannot use %s: %w: name another directory", p.Path, p.Err)
	}
	return s.wrong(name, err)
}

// output is the directory that this run writes to, which it has to itself.
type output struct {
	dir  string
	lock *filelock.Lock
	made bool            // by us
	ours map[string]bool // files that we wrote
}

// makeOut makes the directory, and the one of histories where there is one, and keeps
// other runs out until release.
func (s *settings) makeOut(dir string) (*output, error) {
	_, err := os.Lstat(dir)
	o := &output{dir: dir, made: errors.Is(err, fs.ErrNotExist), ours: map[string]bool{}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, s.badDir("out", err)
	}
	o.lock, err = filelock.Take(filepath.Join(dir, lockName))
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, s.wrong("out", fmt.Errorf("another run writes to %s: name another directory", dir))
	case err != nil:
		return nil, s.badDir("out", err)
	}
	// A run that has just ended may have been faster.
	if err := s.isFree(dir); err != nil {
		return nil, errors.Join(err, o.release())
	}
	if s.history == "" {
		return o, nil
	}
	if err := os.MkdirAll(s.history, 0o755); err != nil {
		return nil, errors.Join(s.badDir("history", err), o.release())
	}
	return o, nil
}

// write replaces a file that this run wrote, or makes one. Another's is an error.
func (o *output) write(name string, b []byte) error {
	path := filepath.Join(o.dir, name)
	if _, err := os.Lstat(path); err == nil && !o.ours[name] {
		return fmt.Errorf("write %s: it is there already, and not of this run", path)
	}
	if err := atomicfile.Write(path, b); err != nil {
		return err
	}
	o.ours[name] = true
	return nil
}

// released is err, or why the directory could not be left in order.
func released(o *output, err error) error {
	if rerr := o.release(); rerr != nil && err == nil {
		return fail(ExitFailed, rerr)
	}
	return err
}

// release lets others in, and removes a directory that we made and left empty.
func (o *output) release() error {
	if o == nil {
		return nil
	}
	err := o.lock.Release()
	if o.made && len(o.ours) == 0 {
		_ = os.Remove(o.dir) // fails where something is in it
	}
	return err
}
