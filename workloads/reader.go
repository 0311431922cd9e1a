package workloads

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// trace is what was read from a file.
type trace struct {
	*dialect
	rows    []row // in the file's order, with the subjects' numbers
	names   []string
	dropped int
	damaged []damagedRow
}

const (
	// maxLine bounds the memory that one line can take. What follows is cut off,
	// which damages the row.
	maxLine = 1 << 20
	// maxSubject bounds a subject's name, in bytes: it becomes a part of keys.
	maxSubject = 512
	// sniffed lines, the header included, decide on the format.
	sniffed = 100
	// sniffedBytes are looked at for what no text holds.
	sniffedBytes = 512
	// longestLine is the length at which a line is given up: a file of zeros has no end of one.
	longestLine = 1 << 28
	// maxRows bounds the rows of a trace, damaged ones included: a run of more requests
	// cannot be judged.
	maxRows = 1 << 27
)

// readTraceFile reads a whole trace. It returns an error if nothing in it can be
// replayed.
func readTraceFile(path string, given traceFields) (*trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written that closing could lose
	t, err := readTrace(file, given, maxRows, maxSubjects)
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", filepath.Base(path), err)
	}
	return t, nil
}

// readTrace is [readTraceFile] for a trace of so many rows and subjects at most.
func readTrace(r io.Reader, given traceFields, maxRows, maxSubjects int) (*trace, error) {
	source, err := unpacked(r)
	if err != nil {
		return nil, err
	}
	reader := &lineReader{reader: source}
	head, err := reader.head()
	if err != nil {
		return nil, err
	}
	dialect, err := recognise(head, given)
	if err != nil {
		return nil, err
	}
	t := &trace{dialect: dialect}
	numbers := map[string]uint32{}
	for _, line := range head {
		t.add(line, numbers)
	}
	for reader.next() {
		t.add(reader.line, numbers)
		if n := len(t.rows) + t.dropped; n > maxRows {
			return nil, fmt.Errorf("it has more than %d rows, and a run of more requests cannot be judged: cut it, e.g. "+
				"with head -n %d", maxRows, maxRows)
		}
		if len(t.names) > maxSubjects {
			return nil, fmt.Errorf("it names more than %d subjects, which is the most that a run can have: cut it at line %d",
				maxSubjects, reader.number-1)
		}
	}
	if reader.err != nil {
		return nil, reader.err
	}
	if err := t.usable(); err != nil {
		return nil, err
	}
	return t, nil
}

// head reads the first lines, by which the format is known.
func (lr *lineReader) head() (head []line, err error) {
	if lr.binary() {
		return nil, errors.New("it is no text in UTF-8: its first line has a byte of 0")
	}
	for len(head) < sniffed && lr.next() {
		head = append(head, lr.line)
	}
	switch {
	case lr.err != nil:
		return nil, lr.err
	case len(head) == 0:
		return nil, errors.New("the file is empty")
	}
	return head, nil
}

// usable is an error if the trace has no row.
func (t *trace) usable() error {
	switch {
	case len(t.rows) > 0:
		return nil
	case len(t.damaged) == 0:
		return errors.New("there are no rows after the header")
	}
	first := t.damaged[0]
	return fmt.Errorf("none of its %d rows can be used as %s; line %d: %s", t.dropped, t.dialect, first.Line, first.Reason)
}

// add decodes a line and keeps what can be used of it.
func (t *trace) add(l line, numbers map[string]uint32) {
	if !t.shape.isRow(l) {
		return
	}
	rec := t.decode(l.text)
	if !rec.lost && !t.anonymous {
		if why := unfit(rec.subject); why != "" {
			rec = lost("%s", why)
		}
	}
	if l.cut {
		rec.damage = strings.TrimSuffix(fmt.Sprintf("longer than %d bytes and cut off there; %s", maxLine, rec.damage), "; ")
	}
	if rec.damage != "" {
		t.damaged = append(t.damaged, damagedRow{Line: l.number, Reason: rec.damage, Used: !rec.lost})
	}
	if rec.lost {
		t.dropped++
		return
	}
	var n uint32
	if !t.anonymous {
		var ok bool
		n, ok = numbers[rec.subject]
		if !ok {
			n = uint32(len(t.names))
			name := strings.Clone(rec.subject) // or it would keep its whole line
			numbers[name] = n
			t.names = append(t.names, name)
		}
	}
	t.rows = append(t.rows, row{at: rec.at, units: rec.units, subject: n})
}

// unfit says why a subject cannot be part of a store's key; "" if it can.
func unfit(subject string) string {
	switch {
	case len(subject) > maxSubject:
		return fmt.Sprintf("subject of %d bytes is longer than %d", len(subject), maxSubject)
	case !utf8.ValidString(subject) || strings.ContainsFunc(subject, unicode.IsControl):
		return fmt.Sprintf("subject %.40q is not text", subject)
	}
	return ""
}

// gzipMagic begins compressed files.
const gzipMagic = "\x1f\x8b"

// unpacked reads the text of a file that may be compressed.
func unpacked(r io.Reader) (*bufio.Reader, error) {
	const size = 1 << 16
	plain := bufio.NewReaderSize(r, size)
	if first, _ := plain.Peek(len(gzipMagic)); string(first) != gzipMagic { // reading reports what is wrong otherwise
		return plain, nil
	}
	packed, err := gzip.NewReader(plain)
	if err != nil {
		return nil, damagedPack(err)
	}
	return bufio.NewReaderSize(&unpacker{packed}, size), nil
}

// unpacker says of its errors what they are about.
type unpacker struct{ *gzip.Reader }

func (u *unpacker) Read(to []byte) (int, error) {
	n, err := u.Reader.Read(to)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damagedPack(err)
	}
	return n, err
}

func damagedPack(err error) error {
	return fmt.Errorf("its compressed data is damaged (%w): gzip -dc FILE > trace.log unpacks what is left", err)
}

// line is a line that is not blank, without its end.
type line struct {
	text   string
	number int // from 1, blank lines counted
	cut    bool
}

// lineReader reads lines of any length in bounded memory.
type lineReader struct {
	reader *bufio.Reader
	number int
	line   line
	buf    []byte
	err    error
}

// binary reports whether the first line cannot be text.
func (lr *lineReader) binary() bool {
	first, _ := lr.reader.Peek(sniffedBytes) // reading reports what is wrong otherwise
	if end := bytes.IndexByte(first, '\n'); end >= 0 {
		first = first[:end]
	}
	return bytes.IndexByte(first, 0) >= 0
}

// next reads the next line that is not blank. After false err tells the end of
// the file (nil) from a failure.
func (lr *lineReader) next() bool {
	for {
		lr.buf = lr.buf[:0]
		cut := false
		length := 0
		part, err := lr.reader.ReadSlice('\n')
		for ; errors.Is(err, bufio.ErrBufferFull); part, err = lr.reader.ReadSlice('\n') {
			cut = lr.keep(part) || cut
			length += len(part)
			if length > longestLine {
				lr.err = fmt.Errorf("line %d is longer than %d bytes: this is no log", lr.number+1, longestLine)
				return false
			}
		}
		cut = lr.keep(part) || cut
		if err != nil && err != io.EOF {
			lr.err = err
			return false
		}
		if len(lr.buf) == 0 { // even a blank line has its end
			return false
		}
		lr.number++
		text := bytes.TrimRight(lr.buf, "\r\n")
		if lr.number == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if len(bytes.TrimSpace(text)) > 0 {
			lr.line = line{string(text), lr.number, cut}
			return true
		}
	}
}

// keep appends what still fits and reports whether something did not.
func (lr *lineReader) keep(part []byte) (cut bool) {
	room := maxLine - len(lr.buf)
	if len(bytes.TrimRight(part, "\r\n")) > room {
		cut = true
	}
	lr.buf = append(lr.buf, part[:min(room, len(part))]...)
	return cut
}
