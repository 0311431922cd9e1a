package stores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
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

// privateDir is the directory of one child. The lock in it is held for as long
// as this process lives: the kernel gives it back also after a kill -9, and who
// then gets the lock knows that the directory is a leftover.
type privateDir struct {
	path string
	lock *os.File
}

// newPrivateDir makes a new directory in parent. Its path is absolute: servers
// have a working directory of their own.
func newPrivateDir(parent string) (*privateDir, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("make a private directory: %w", err)
	}
	// The directory gets its name once the lock is held. Otherwise another
	// process could take it for a leftover in between.
	tmp, err := os.MkdirTemp(parent, dirPrefix+"*"+newDirSuffix)
	if err != nil {
		return nil, fmt.Errorf("make a private directory: %w", err)
	}
	d := &privateDir{path: tmp}
	if d.lock, err = tryLock(filepath.Join(tmp, lockFile)); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", tmp, err), os.RemoveAll(tmp))
	}
	final := strings.TrimSuffix(tmp, newDirSuffix)
	if err := os.Rename(tmp, final); err != nil {
		return nil, errors.Join(fmt.Errorf("make a private directory: %w", err), d.remove())
	}
	d.path = final
	// A server that runs as another user must get through to its own part.
	if err := os.Chmod(final, 0o711); err != nil {
		return nil, errors.Join(fmt.Errorf("make a private directory: %w", err), d.remove())
	}
	return d, nil
}

// record notes a child for whoever has to clean up after us.
func (d *privateDir) record(pid int) error {
	record, err := processRecord(pid)
	if err != nil {
		return fmt.Errorf("record child %d: %w", pid, err)
	}
	f, err := os.OpenFile(filepath.Join(d.path, childrenFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("record child %d: %w", pid, err)
	}
	_, err = fmt.Fprintln(f, record)
	return errors.Join(err, f.Close())
}

// remove deletes the directory and gives the lock back, in this order.
func (d *privateDir) remove() error {
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
		d.lock = nil
	}
	return err
}

// removeLeftovers removes the directories in parent whose owners died, and ends
// what is left of their children and containers. It does what it can: a leftover
// is no reason not to start.
func removeLeftovers(ctx context.Context, parent string) {
	containers := false
	defer func() {
		if !containers {
			return // and the engine is not asked
		}
		if e, err := findEngine(ctx); err == nil {
			e.removeOrphans(ctx)
		}
	}()
	found, err := filepath.Glob(filepath.Join(globEscape(parent), dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range found {
		fi, err := os.Lstat(path)
		// The folder may be everybody's. A directory of another user is none of
		// our business, and what it says about processes not to be believed.
		if err != nil || !fi.IsDir() || !ownedByUs(fi) {
			continue
		}
		if strings.HasSuffix(path, newDirSuffix) {
			// Lives for a moment; older ones were killed in it.
			if fi.ModTime().Before(clock.Wall{}.Now().Add(-time.Hour)) {
				_ = os.RemoveAll(path)
			}
			continue
		}
		lock, err := lockExisting(filepath.Join(path, lockFile))
		if err != nil {
			continue // in use, or not one of ours
		}
		endRecorded(filepath.Join(path, childrenFile))
		containers = containers || exists(filepath.Join(path, containerFile))
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}

// endRecorded kills the processes of a children file that still are who they
// were. The number of a process alone proves nothing: it may have been given to
// another one since.
func endRecorded(file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		if pid, id, ok := parseRecord(line); ok && isStill(pid, id) {
			endForeign(pid, func() bool { return isStill(pid, id) })
		}
	}
}

// processRecord names this or another living process; parseRecord reads it.
func processRecord(pid int) (string, error) {
	id, err := processIdentity(pid)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s", pid, id), nil
}

func parseRecord(text string) (pid int, id string, ok bool) {
	number, id, _ := strings.Cut(strings.TrimSpace(text), " ")
	pid, err := strconv.Atoi(number)
	return pid, id, err == nil && pid > 1 && id != ""
}

// isStill reports whether a recorded process lives.
func isStill(pid int, id string) bool {
	now, err := processIdentity(pid)
	return err == nil && now == id
}

// globEscape makes a path match itself alone.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// exists reports whether there is a file of that name that may be looked at.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && err == nil
}
