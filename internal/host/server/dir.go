package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
)

const (
	dirPrefix    = "quotabench-"
	newDirSuffix = ".new"
	lockFile     = "lock"
	childrenFile = "children"
	// containerFile says that the owner of the directory used a container, which
	// records its owner by itself.
	containerFile = "container"
)

// Dir is the directory of one child. The lock in it is held for as long
// as this process lives: the kernel gives it back also after a kill -9, and who
// then gets the lock knows that the directory is a leftover.
type Dir struct {
	Path string
	lock *os.File
}

// NewDir makes a new directory in parent, or in [os.TempDir] if parent is empty. Its path is absolute: servers
// have a working directory of their own.
func NewDir(parent string) (*Dir, error) {
	parent, err := filepath.Abs(cmp.Or(parent, os.TempDir()))
	if err != nil {
		return nil, fmt.Errorf("make a private directory: %w", err)
	}
	// The directory gets its name once the lock is held. Otherwise another
	// process could take it for a leftover in between.
	tmp, err := os.MkdirTemp(parent, dirPrefix+"*"+newDirSuffix)
	if err != nil {
		return nil, fmt.Errorf("make a private directory: %w: name one that can be written to by TMPDIR", err)
	}
	dir := &Dir{Path: tmp}
	dir.lock, err = tryLock(filepath.Join(tmp, lockFile))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", tmp, err), os.RemoveAll(tmp))
	}
	final := strings.TrimSuffix(tmp, newDirSuffix)
	if err := os.Rename(tmp, final); err != nil {
		return nil, errors.Join(fmt.Errorf("make a private directory: %w", err), dir.Remove())
	}
	dir.Path = final
	// A server that runs as another user must get through to its own part.
	if err := os.Chmod(final, 0o711); err != nil {
		return nil, errors.Join(fmt.Errorf("make a private directory: %w", err), dir.Remove())
	}
	return dir, nil
}

// record notes a child for the process that may have to clean up after us.
func (d *Dir) record(pid int) error {
	record, err := ProcessMark(pid)
	if err != nil {
		return fmt.Errorf("record child %d: %w", pid, err)
	}
	file, err := os.OpenFile(filepath.Join(d.Path, childrenFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("record child %d: %w", pid, err)
	}
	_, err = fmt.Fprintln(file, record)
	return errors.Join(err, file.Close())
}

// MarkContainer notes that the owner used a container.
func (d *Dir) MarkContainer() error {
	return os.WriteFile(filepath.Join(d.Path, containerFile), nil, 0o600)
}

// Remove deletes the directory and gives the lock back, in this order.
func (d *Dir) Remove() error {
	err := removeDir(d.Path, os.RemoveAll)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
		d.lock = nil
	}
	return err
}

// removeDir deletes a private directory, and the lock in it last. A directory
// without a lock is taken for another program's: what a killed process left of it
// would stay forever.
func removeDir(path string, remove func(path string) error) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	for _, entry := range entries {
		if entry.Name() != lockFile {
			err = errors.Join(err, remove(filepath.Join(path, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(remove(filepath.Join(path, lockFile)), remove(path))
}

// RemoveLeftovers removes the directories in parent whose owners died, and ends
// what is left of their children and containers. It does what it can: a leftover
// is no reason not to start.
func RemoveLeftovers(ctx context.Context, parent string) {
	parent = cmp.Or(parent, os.TempDir())
	usedContainers := false
	defer func() {
		if !usedContainers {
			return // and the engine is not asked
		}
		if engine, err := FindEngine(ctx); err == nil {
			engine.RemoveOrphans(ctx)
		}
	}()
	for path, lock := range leftovers(parent) {
		endRecorded(filepath.Join(path, childrenFile))
		usedContainers = usedContainers || Exists(filepath.Join(path, containerFile))
		_ = removeDir(path, os.RemoveAll)
		if lock != nil {
			_ = lock.Close()
		}
	}
}

// Leftovers lists the directories that [RemoveLeftovers] would remove.
func Leftovers(parent string) (paths []string) {
	for path, lock := range leftovers(cmp.Or(parent, os.TempDir())) {
		paths = append(paths, path)
		if lock != nil {
			_ = lock.Close()
		}
	}
	return paths
}

// leftovers yields the directories in parent whose owners died, each with its lock,
// which is nil if it is gone.
func leftovers(parent string) iter.Seq2[string, *os.File] {
	return func(yield func(string, *os.File) bool) {
		found, err := filepath.Glob(filepath.Join(GlobEscape(parent), dirPrefix+"*"))
		if err != nil {
			return
		}
		for _, path := range found {
			fileInfo, err := os.Lstat(path)
			// The folder may be open to all users. A directory of another user is none of
			// our business, and what it says about processes not to be believed.
			if err != nil || !fileInfo.IsDir() || !ownedByUs(fileInfo) {
				continue
			}
			var lock *os.File
			err = fs.ErrNotExist
			if !strings.HasSuffix(path, newDirSuffix) { // whose lock is its maker's to take
				lock, err = lockExisting(filepath.Join(path, lockFile))
			}
			if err != nil && (!errors.Is(err, fs.ErrNotExist) || !abandoned(path, fileInfo)) {
				continue // in use, or not one of ours
			}
			if !yield(path, lock) {
				return
			}
		}
	}
}

// lockless is the age from which a directory without a lock, or without its name, is a
// leftover: both last for a moment.
const lockless = time.Hour

// ourNames are what private directories hold, in addition to secrets.
var ourNames = []string{lockFile, childrenFile, containerFile, "data", "log"}

func isOurs(entry os.DirEntry) bool {
	return slices.Contains(ourNames, entry.Name()) || strings.HasPrefix(entry.Name(), secretPrefix)
}

// abandoned reports whether a directory is ours and was left by a process that was
// killed while it made or removed it: nothing in it is another program's, nothing is
// new, and no process is recorded that lives.
func abandoned(path string, fileInfo os.FileInfo) bool {
	if fileInfo.ModTime().After(clock.Wall{}.Now().Add(-lockless)) {
		return false
	}
	entries, err := os.ReadDir(path)
	if err != nil || slices.ContainsFunc(entries, func(entry os.DirEntry) bool { return !isOurs(entry) }) {
		return false
	}
	for pid, id := range recorded(filepath.Join(path, childrenFile)) {
		if IsStill(pid, id) {
			return false
		}
	}
	return true
}

// endRecorded kills the processes of a children file that still are who they
// were. The number of a process alone proves nothing: it may have been given to
// another one since.
func endRecorded(file string) {
	for pid, id := range recorded(file) {
		if IsStill(pid, id) {
			endForeign(pid, func() bool { return IsStill(pid, id) })
		}
	}
}

// recorded yields the processes of a children file.
func recorded(file string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		data, err := os.ReadFile(file)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(data)) {
			if pid, id, ok := ParseMark(line); ok && !yield(pid, id) {
				return
			}
		}
	}
}

// ProcessMark names this or another living process; ParseMark reads it.
func ProcessMark(pid int) (string, error) {
	id, err := ProcessIdentity(pid)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s", pid, id), nil
}

// ParseMark reads what [ProcessMark] wrote. ok is false for any other text.
func ParseMark(text string) (pid int, id string, ok bool) {
	number, id, _ := strings.Cut(strings.TrimSpace(text), " ")
	pid, err := strconv.Atoi(number)
	return pid, id, err == nil && pid > 1 && id != ""
}

// IsStill reports whether a recorded process lives.
func IsStill(pid int, id string) bool {
	now, err := ProcessIdentity(pid)
	return err == nil && now == id
}

// GlobEscape makes a path match itself alone.
func GlobEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Exists reports whether there is a file of that name that may be looked at.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && err == nil
}
