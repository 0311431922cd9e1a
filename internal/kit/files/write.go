// Package files replaces files as a whole, and lets one process at a time use a directory.
package files

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces the file at path by way of a temporary one next to it.
func Write(path string, b []byte) (err error) {
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = t.Close() // a second close is harmless, and the first error counts
			_ = os.Remove(t.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	_, err = t.Write(b)
	// CreateTemp makes files private; results are for sharing.
	err = cmp.Or(err, t.Chmod(0o644), t.Sync(), t.Close())
	if err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}
