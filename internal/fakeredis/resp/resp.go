// Package resp reads commands as Redis clients send them, for stores in this process
// that stand in for a server, and the messages of both sides for what stands between
// them.
package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// ErrProtocol says that what was sent is no command, or no reply. A server would end
// the connection.
var ErrProtocol = errors.New("not the Redis protocol")

// Bounds as Redis has them, and the longest line that can hold them.
const (
	maxParts = 1 << 20
	maxPart  = 512 << 20
	maxLine  = 32
)

// Texts are the arguments of a command, which stay.
func Texts(args [][]byte) []string {
	out := make([]string, len(args))
	for i, data := range args {
		out[i] = string(data)
	}
	return out
}

// size reads digits, which make a number of at most limit.
func size(digits []byte, limit int) (v int, ok bool) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int(c-'0')
		if v > limit {
			return 0, false
		}
	}
	return v, true
}

// Bounds of what a [Reader] takes.
const (
	maxMessage = 1 << 30
	maxDepth   = 32
	lineSize   = 64 << 10
	keepSize   = 1 << 20 // a larger message's memory is given back
)

// Reader reads what one side of a connection sends, one message after the other, each
// as it was sent. What it returns is valid until the next call. Its errors are those of
// the connection, or an [ErrProtocol], after which nothing can be read.
type Reader struct {
	reader *bufio.Reader
	raw    []byte
	ends   []int // where the parts of a command begin and end in raw
	args   [][]byte
}

// NewReader reads from r.
func NewReader(r io.Reader) *Reader { return &Reader{reader: bufio.NewReaderSize(r, lineSize)} }

// Command reads a client's command: an array of bulk strings, or words on one line.
// args has at least one element. Empty ones, which a server ignores, are left out.
func (r *Reader) Command() (args [][]byte, raw []byte, err error) {
	for len(args) == 0 && err == nil {
		r.begin()
		args, err = r.command()
	}
	return args, r.raw, err
}

func (r *Reader) begin() {
	if cap(r.raw) > keepSize {
		r.raw = nil
	}
	r.raw = r.raw[:0]
	r.ends = r.ends[:0]
	r.args = r.args[:0]
}

func (r *Reader) command() ([][]byte, error) {
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	if len(line) == 0 || line[0] != '*' {
		return r.words(bytes.TrimSuffix(line, []byte("\r")))
	}
	count, ok := length(line, maxParts)
	if !ok {
		return nil, unread(line)
	}
	for range count {
		line, err = r.line()
		if err != nil {
			return nil, err
		}
		size, ok := length(line, maxPart)
		if !ok || line[0] != '$' || size < 0 {
			return nil, unread(line)
		}
		at := len(r.raw)
		if err := r.bulk(size); err != nil {
			return nil, err
		}
		r.ends = append(r.ends, at, at+size)
	}
	for i := 0; i < len(r.ends); i += 2 {
		r.args = append(r.args, r.raw[r.ends[i]:r.ends[i+1]])
	}
	return r.args, nil
}

// words splits a command on one line as far as its name needs: a server also knows quotes.
func (r *Reader) words(line []byte) ([][]byte, error) {
	for i, c := range line {
		if c < ' ' && c != '\t' || i == 0 && c > '~' {
			return nil, unread(line)
		}
	}
	return bytes.Fields(line), nil
}

// Reply reads a server's reply with the attributes before it, or a push.
func (r *Reader) Reply() (raw []byte, err error) {
	r.begin()
	err = r.value(0)
	return r.raw, err
}

func (r *Reader) value(depth int) error {
	for attribute := true; attribute; {
		line, err := r.line()
		if err != nil {
			return err
		}
		if len(line) < 2 || line[len(line)-1] != '\r' || depth > maxDepth {
			return unread(line)
		}
		kind := line[0]
		attribute = kind == '|'
		switch kind {
		case '+', '-':
		case ':', '(', ',', '#', '_':
			if !scalar.Match(line) {
				return unread(line)
			}
		case '$', '!', '=':
			n, ok := length(line, maxPart)
			if !ok {
				return unread(line)
			}
			if n >= 0 {
				err = r.bulk(n)
			}
		case '*', '~', '>', '%', '|':
			n, ok := length(line, maxMessage)
			if !ok {
				return unread(line)
			}
			if kind == '%' || kind == '|' {
				n *= 2
			}
			for i := 0; i < n && err == nil; i++ {
				err = r.value(depth + 1)
			}
		default:
			return unread(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scalar is a value of one line that is no text.
var scalar = regexp.MustCompile(`^([:(][-+]?[0-9]+|#[tf]|_|,[-+]?([0-9.]+([eE][-+]?[0-9]+)?|inf|nan))\r$`)

// line reads to the end of a line and returns it without its last byte.
func (r *Reader) line() ([]byte, error) {
	line, err := r.reader.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, unread(line)
	}
	if err != nil {
		return nil, err
	}
	r.raw = append(r.raw, line...)
	if len(r.raw) > maxMessage {
		return nil, unread(line)
	}
	return line[:len(line)-1], nil
}

// length reads the number behind the first byte of a line, which is limit at most; -1 stands for no value.
func length(line []byte, limit int) (n int, ok bool) {
	text, ended := bytes.CutSuffix(line, []byte("\r"))
	if !ended || len(text) < 2 {
		return 0, false
	}
	digits := text[1:]
	if len(digits) > maxLine {
		return 0, false
	}
	if string(digits) == "-1" {
		return -1, true
	}
	return size(digits, limit)
}

// bulk reads so many bytes and the end of a line. Memory grows with what has come, not
// with what was promised.
func (r *Reader) bulk(n int) error {
	for left := n + len("\r\n"); left > 0; {
		k := min(left, lineSize)
		at := len(r.raw)
		r.raw = slices.Grow(r.raw, k)[:at+k]
		if _, err := io.ReadFull(r.reader, r.raw[at:]); err != nil {
			return err
		}
		left -= k
		if len(r.raw) > maxMessage {
			return unread(r.raw[:maxLine])
		}
	}
	if !bytes.HasSuffix(r.raw, []byte("\r\n")) {
		return unread(r.raw[len(r.raw)-n-len("\r\n"):])
	}
	return nil
}

func unread(data []byte) error {
	return fmt.Errorf("%w: %q", ErrProtocol, data[:min(len(data), maxLine)])
}

// textSize is how much of a reply is worth reading.
const textSize = 160

// Text describes a reply, as a [Reader] has read it, in a few words: a value as it is,
// elements in brackets, "nil", "error: ...".
func Text(raw []byte) string {
	var builder strings.Builder
	describe(&builder, raw)
	if text := builder.String(); len(text) > textSize {
		return strings.ToValidUTF8(text[:textSize], "") + "..."
	}
	return builder.String()
}

// describe writes the first value of raw and returns what is behind it.
func describe(builder *strings.Builder, raw []byte) (rest []byte) {
	line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
	if len(line) == 0 || builder.Len() > textSize {
		return nil
	}
	kind := line[0]
	text := line[1:]
	n, _ := strconv.Atoi(string(text))
	switch kind {
	case '*', '~', '>', '%', '|', '$', '!', '=':
		if n < 0 {
			text = []byte("nil")
			break
		}
		if strings.IndexByte("$!=", kind) < 0 {
			return elements(builder, kind, n, rest)
		}
		text = rest[:n]
		rest = rest[n+len("\r\n"):]
	case '_':
		text = []byte("nil")
	}
	if kind == '-' || kind == '!' {
		builder.WriteString("error: ")
	}
	if kind == '=' {
		text = bytes.TrimPrefix(text, []byte("txt:"))
	}
	shown := string(text[:min(len(text), textSize+1)])
	if strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }) {
		shown = strconv.Quote(shown)
	}
	builder.WriteString(shown)
	return rest
}

// elements writes those of an array. Attributes come before the value that they are about.
func elements(builder *strings.Builder, kind byte, n int, rest []byte) []byte {
	if kind == '%' || kind == '|' {
		n *= 2
	}
	builder.WriteByte('[')
	for i := 0; i < n && len(rest) > 0; i++ {
		if i > 0 {
			builder.WriteByte(' ')
		}
		rest = describe(builder, rest)
	}
	builder.WriteByte(']')
	if kind == '|' {
		builder.WriteByte(' ')
		rest = describe(builder, rest)
	}
	return rest
}
