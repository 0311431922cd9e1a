package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// canWrite makes a folder in the directory and takes it away again: rights alone do
// not tell, as with a disk that cannot be written to.
func (s *settings) canWrite(name, dir string) error {
	made, err := os.MkdirTemp(dir, ".quotabench-*")
	if err == nil {
		err = os.Remove(made)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = fmt.Errorf("nothing can be written to %s: %w: name another directory", dir, p.Err)
	}
	if err != nil {
		return s.wrong(name, err)
	}
	return nil
}
