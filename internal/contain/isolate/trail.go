package isolate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
)

// trailName is a file in the directory of a child.
const trailName = "trail"

// Trail is a text in a file that says what a child is doing. Its parent reads it if the
// child has died.
type Trail struct {
	file *os.File
	buf  []byte
}

// OpenTrail opens the trail of this child; nil if this process is none.
func OpenTrail() (*Trail, error) {
	if Dir() == "" {
		return nil, nil
	}
	file, err := os.OpenFile(filepath.Join(Dir(), trailName), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the trail: %w", err)
	}
	return &Trail{file: file}, nil
}

// Set replaces the text, which is one line. On a nil trail it does nothing.
func (t *Trail) Set(text []byte) error {
	if t == nil {
		return nil
	}
	t.buf = append(append(t.buf[:0], text...), '\n')
	_, err := t.file.WriteAt(t.buf, 0)
	return format.Wrapf(err, "write the trail")
}

// Close closes the file.
func (t *Trail) Close() error {
	if t == nil {
		return nil
	}
	return t.file.Close()
}

// readTrail is empty if nothing was written.
func readTrail(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, trailName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	line, _, _ := strings.Cut(string(data), "\n") // behind it is what is left of longer texts
	return line, err
}
