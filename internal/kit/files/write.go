// Package files replaces files as a whole, and lets one process at a time use a directory.
package files

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces the file at path by way of a temporary one next to it.
func Write(path string, data []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = file.Close() // a second close is harmless, and the first error counts
			_ = os.Remove(file.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	_, err = file.Write(data)
	// CreateTemp makes files private; results are for sharing.
	err = cmp.Or(err, file.Chmod(0o644), file.Sync(), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
