package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Bounds of the files that are taken for a configuration or for a policy.
const (
	maxConfig = 1 << 18 // bytes
	MaxDepth  = 64      // levels of lists and mappings in each other
	maxIndent = 512     // columns before what a line says
)

// ReadBounded reads a file of maxConfig bytes at most, since a device never ends. A
// pipe may never begin: callers give it up when their context ends.
func ReadBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Unreadable(path, err)
	}
	defer func() { _ = f.Close() }() // nothing was written that closing could lose
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	switch {
	case err != nil:
		return nil, Unreadable(path, err)
	case len(b) > maxConfig:
		return nil, fmt.Errorf("%s has more than %d bytes, which is the most that is read", path, maxConfig)
	}
	return b, nil
}

// Unreadable is the error of a file that cannot be read: its path, and why.
func Unreadable(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("cannot read %s: %w", path, err)
}

// Nested returns the first line on which a YAML text is deeper than MaxDepth, or 0.
// Parsers take memory by the square of the depth, so it is looked at before.
// Quotation marks are not heeded: the bound is far above what a file needs.
func Nested(b []byte) (line int) {
	depth := 0
	for text := range bytes.Lines(b) {
		line++
		begins := bytes.TrimLeft(text, " \t")
		if len(text)-len(begins) > maxIndent {
			return line
		}
		marks := 0
		for {
			rest := bytes.TrimLeft(begins, " \t")
			if len(rest) < 2 || !bytes.ContainsRune([]byte("-?:!&*|>"), rune(rest[0])) {
				break
			}
			if marks++; marks > MaxDepth {
				return line
			}
			begins = rest[1:]
			if rest[0] == '!' || rest[0] == '&' || rest[0] == '*' { // a tag, an anchor or an alias, with its name
				begins = bytes.TrimLeftFunc(begins, func(r rune) bool { return r != ' ' && r != '\t' && r != '\n' })
			}
		}
		for _, c := range text {
			switch c {
			case '[', '{':
				if depth++; depth > MaxDepth {
					return line
				}
			case ']', '}':
				depth = max(0, depth-1)
			}
		}
	}
	return 0
}
