package codec

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
)

// What a file may make its reader allocate. All are far above what a measurement
// leaves behind, and hold for writing too, so that what was written can be read.
const (
	// maxFile is the size of a file in bytes: some 30 thousand runs.
	maxFile = 256 << 20
	// maxRuns is the number of runs. An empty one takes two bytes in the file, and
	// more than a kilobyte once it is decoded.
	maxRuns = 50_000
	// maxObjects is the number of all JSON objects.
	maxObjects = 1_000_000
	// maxDepth is the nesting of a file. Ours is 7; a schema error at depth n
	// allocates n times the path to it.
	maxDepth = 12
	// maxNumber is the length of a number in digits, sign and exponent, and
	// maxExponent the size of its exponent. The schema checks numbers as
	// fractions of whole numbers, for which 1e-999999 takes a megabyte, and
	// panics if the exponent is larger still.
	maxNumber   = 64
	maxExponent = 400
)

// document is a record whose shape has been checked.
type document struct {
	text []byte
	// top has the outermost object's values by name: of lists and objects how they begin.
	top map[string]json.Token
}

// shapedAs decodes a record after its shape has been checked.
func shapedAs[T any](data []byte, decode func(document) (T, error)) (record T, err error) {
	d, err := shaped(data)
	if err != nil {
		return record, err
	}
	return decode(d)
}

// shaped bounds what decoding and validation will cost, before either
// begins. It also refuses names that occur twice in an object: decoding merges
// their values, while the schema sees the last alone.
func shaped(data []byte) (document, error) {
	if len(data) > maxFile {
		return document{}, errTooLarge
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	s := shape{top: map[string]json.Token{}}
	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && s.over:
			return document{data, s.top}, nil
		case err != nil:
			return document{}, jsonError(data, err)
		case s.over:
			err = errors.New("more follows after its end")
		default:
			err = s.add(token)
		}
		if err != nil {
			return document{}, fmt.Errorf("line %d: %w", lineAt(data, decoder.InputOffset()), err)
		}
		s.over = len(s.open) == 0
	}
}

var errTooLarge = fmt.Errorf("more than %d MB, which is too large for a record of quotabench", maxFile>>20)

// shape follows the nesting of JSON tokens.
type shape struct {
	open          []level
	top           map[string]json.Token
	runs, objects int
	over          bool // the outermost value has ended
}

// level is an open array or object; names is nil for an array.
type level struct {
	names map[string]bool
	name  string // the last one
	// value is set if an object's next token is a value and not a name.
	value bool
}

func (s *shape) add(token json.Token) error {
	if n := len(s.open); n > 0 && s.open[n-1].names != nil && token != json.Delim('}') {
		top := &s.open[n-1]
		if !top.value {
			name, _ := token.(string) // the decoder takes nothing else for a name
			if top.names[name] {
				return fmt.Errorf("%q occurs twice in one object", shortened(name))
			}
			top.names[name], top.name, top.value = true, name, true
			return nil
		}
		top.value = false
		if n == 1 {
			s.top[top.name] = token
		}
	}
	switch t := token.(type) {
	case json.Delim:
		return s.nest(t)
	case json.Number:
		return checkNumber(t.String())
	}
	return nil
}

func (s *shape) nest(delim json.Delim) error {
	switch delim {
	case '}', ']':
		s.open = s.open[:len(s.open)-1]
		return nil
	case '{':
		s.objects++
		if len(s.open) == 2 { // in a list of the file's own
			s.runs++
		}
		s.open = append(s.open, level{names: map[string]bool{}})
	default:
		s.open = append(s.open, level{})
	}
	if len(s.open) > maxDepth {
		return fmt.Errorf("nested more than %d deep", maxDepth)
	}
	if s.runs > maxRuns || s.objects > maxObjects {
		return fmt.Errorf("more than %d runs or %d objects", maxRuns, maxObjects)
	}
	return nil
}

func checkNumber(n string) error {
	if len(n) > maxNumber {
		return fmt.Errorf("a number of %d characters", len(n))
	}
	_, exponent, ok := strings.Cut(strings.ToLower(n), "e")
	if !ok {
		return nil
	}
	if e, err := strconv.Atoi(exponent); err != nil || e > maxExponent || e < -maxExponent {
		return fmt.Errorf("number %s is out of range", n)
	}
	return nil
}

// packed ends the name of a record that gzip has compressed. It is read in place of one that is not there.
const packed = ".gz"

// Unpacked is the path by which a record is read that gzip may have compressed: without ".gz" at its end.
func Unpacked(path string) string { return strings.TrimSuffix(path, packed) }

// readFile reads a record. One that is too large is not read at all.
func readFile(path string) ([]byte, error) {
	data, err := contents(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		if b, err := contents(path+packed, true); !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	return data, err
}

func contents(path string, compressed bool) (data []byte, err error) {
	defer func() {
		if err != nil {
			err = format.Unreadable(path, err)
		}
	}()
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	if info, err := file.Stat(); err != nil || info.Size() > maxFile {
		return nil, cmp.Or(err, errTooLarge)
	}
	if !compressed {
		return readAll(file, maxFile)
	}
	reader, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return readAll(reader, maxFile)
}

// readAll reads a whole file, but no more than most bytes: a path may lead to a
// device or a pipe that never ends.
func readAll(r io.Reader, most int) ([]byte, error) {
	var parts [][]byte // one slice that grows would take more than twice as much
	for left := most + 1; left > 0; {
		part := make([]byte, min(left, readPart))
		n, err := io.ReadFull(r, part)
		parts = append(parts, part[:n])
		left = left - n
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return bytes.Join(parts, nil), nil
		case err != nil:
			return nil, err
		}
	}
	return nil, errTooLarge
}

// readPart is how many bytes are read at a time.
const readPart = 1 << 20

// shortened cuts text from a file for a message about it.
func shortened(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
