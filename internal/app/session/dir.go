package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results/render"
)

// LockName is the file by which a run keeps others out of its directory.
const LockName = ".quotabench.lock"

// DefaultDir is the directory of a run that names none, after the time at which it begins.
func DefaultDir() string {
	return filepath.Join("quotabench-results", clock.Wall{}.Now().UTC().Format("20060102T150405.000Z"))
}

// FreeDir is the directory of this run's files. It is checked and not yet made: what
// else is wrong with the command line must leave nothing behind. What an earlier run
// or anyone else wrote there is never overwritten.
func FreeDir(s *group.Settings) (string, error) {
	dir := cmp.Or(s.Out, DefaultDir())
	if err := IsFree(s.Set, dir); err != nil {
		return "", err
	}
	if err := CanMake(s.Set, "out", dir); err != nil {
		return "", err
	}
	if s.History == "" {
		return dir, nil
	}
	if kept, _ := filepath.Glob(filepath.Join(s.History, "*"+files.HistoryExt)); len(kept) > 0 {
		return "", s.Wrong("history", fmt.Errorf("%s already holds %s: name another directory, or move them away", s.History,
			format.Plural(int64(len(kept)), "history", "histories")))
	}
	return dir, CanMake(s.Set, "history", s.History)
}

// IsFree refuses a directory that holds a file of a name that would be written, even
// if it is a link.
func IsFree(set *settings.Set, dir string) error {
	for _, name := range render.Names() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return set.Wrong("out", fmt.Errorf("%s already holds %s: name another directory, or move it away", dir, name))
		}
	}
	return nil
}

// CanMake reports whether a directory is there, or can be made in one that is.
func CanMake(set *settings.Set, name, dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		fileInfo, err := os.Stat(at)
		switch {
		case err == nil && fileInfo.IsDir():
			return CanWrite(set, name, at)
		case err == nil:
			return set.Wrong(name, fmt.Errorf("%s is a file: name a directory", at))
		case at == filepath.Dir(at), !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return BadDir(set, name, err)
		}
	}
}

// BadDir reports a directory that cannot be used.
func BadDir(set *settings.Set, name string, err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("cannot use %s: %w: name another directory", pathError.Path, pathError.Err)
	}
	return set.Wrong(name, err)
}

// Dir is the directory that this run writes to, which it has to itself.
type Dir struct {
	Path string
	lock *files.Lock
	made bool            // by us
	ours map[string]bool // files that we wrote
}

// MakeDir makes the directory, and the one of histories if there is one, and keeps
// other runs out until Release.
func MakeDir(s *group.Settings, dir string) (*Dir, error) {
	_, err := os.Lstat(dir)
	o := &Dir{Path: dir, made: errors.Is(err, fs.ErrNotExist)}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, BadDir(s.Set, "out", err)
	}
	o.lock, err = files.TakeLock(filepath.Join(dir, LockName))
	switch {
	case errors.Is(err, files.ErrHeld):
		return nil, s.Wrong("out", fmt.Errorf("another run writes to %s: name another directory", dir))
	case err != nil:
		return nil, BadDir(s.Set, "out", err)
	}
	// A run that has just ended may have been faster.
	if err := IsFree(s.Set, dir); err != nil {
		return nil, errors.Join(err, o.Release())
	}
	if s.History == "" {
		return o, nil
	}
	if err := os.MkdirAll(s.History, 0o755); err != nil {
		return nil, errors.Join(BadDir(s.Set, "history", err), o.Release())
	}
	return o, nil
}

// Write replaces a file that this run wrote, or makes one. Another's is an error.
func (o *Dir) Write(name string, data []byte) error {
	path := filepath.Join(o.Path, name)
	if _, err := os.Lstat(path); err == nil && !o.ours[name] {
		return fmt.Errorf("write %s: it is there already, and not of this run", path)
	}
	if err := files.Write(path, data); err != nil {
		return err
	}
	if o.ours == nil {
		o.ours = map[string]bool{}
	}
	o.ours[name] = true
	return nil
}

// Release lets others in, and removes a directory that we made and left empty.
func (o *Dir) Release() error {
	if o == nil {
		return nil
	}
	err := o.lock.Release()
	if o.made && len(o.ours) == 0 {
		_ = os.Remove(o.Path) // fails if something is in it
	}
	return err
}

// CanWrite makes a folder in the directory and takes it away again: rights alone do
// not tell, as with a disk that cannot be written to.
func CanWrite(set *settings.Set, name, dir string) error {
	made, err := os.MkdirTemp(dir, ".quotabench-*")
	if err == nil {
		err = os.Remove(made)
	}
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("nothing can be written to %s: %w: name another directory", dir, pathError.Err)
	}
	if err != nil {
		return set.Wrong(name, err)
	}
	return nil
}
