package explore

import (
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// What is kept of a reply: more rows, and longer ones, are only told of.
const (
	wireRows  = 3
	wireBytes = 1 << 10
)

// sqlWire reads along what the server answers, since a tracer is not told the
// values. Where the connection is encrypted there is nothing to read, and
// timelines show how many rows there were.
type sqlWire struct {
	net.Conn

	mu     sync.Mutex
	awake  bool // from the first statement on: messages begin where they should
	head   []byte
	body   []byte
	left   int // bytes of the message that have not come yet
	inside bool
	rows   []string
	more   int
}

func wrapSQLWire(c net.Conn) net.Conn { return &sqlWire{Conn: c} }

// Read implements net.Conn.
func (s *sqlWire) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awake {
		s.see(p[:n])
	}
	return n, err
}

// forget begins a statement. Nothing may be on its way.
func (s *sqlWire) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awake, s.inside = true, false
	s.head, s.rows, s.more = s.head[:0], s.rows[:0], 0
}

// text is what the statement answered, or empty for no rows.
func (s *sqlWire) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more > 0 {
		return fmt.Sprintf("%s; %d more rows", strings.Join(s.rows, "; "), s.more)
	}
	return strings.Join(s.rows, "; ")
}

// see takes messages apart: a letter, a length that counts itself, a body.
func (s *sqlWire) see(p []byte) {
	const headLength, dataRow = 5, 'D'
	for len(p) > 0 {
		if !s.inside {
			n := min(headLength-len(s.head), len(p))
			s.head, p = append(s.head, p[:n]...), p[n:]
			if len(s.head) < headLength {
				return
			}
			s.left, s.inside = max(0, int(int32(binary.BigEndian.Uint32(s.head[1:])))-4), true
			s.body = s.body[:0]
		}
		n := min(s.left, len(p))
		s.body = append(s.body, p[:min(n, max(0, wireBytes-len(s.body)))]...)
		s.left, p = s.left-n, p[n:]
		if s.left > 0 {
			return
		}
		if s.head[0] == dataRow {
			if len(s.rows) < wireRows {
				s.rows = append(s.rows, rowText(s.body))
			} else {
				s.more++
			}
		}
		s.head, s.inside = s.head[:0], false
	}
}

// rowText is the body of a data row: a count, then a length and a value each.
func rowText(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	var out []string
	columns := int(binary.BigEndian.Uint16(b))
	for b = b[2:]; len(out) < columns; {
		if len(b) < 4 {
			return strings.Join(append(out, "..."), " ")
		}
		n := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if n < 0 {
			out = append(out, "null")
			continue
		}
		if int(n) > len(b) {
			return strings.Join(append(out, "..."), " ")
		}
		out = append(out, valueText(b[:n]))
		b = b[n:]
	}
	return strings.Join(out, " ")
}

// valueText shows a value whose type is not known here: the description was sent
// when the statement was prepared. Text is told from binary numbers by being
// printable, which as a number it would be far too large for.
func valueText(v []byte) string {
	text := utf8.Valid(v)
	for _, c := range v {
		text = text && c >= ' '
	}
	switch {
	case text:
		return strings.Join(strings.Fields(string(v)), " ")
	case len(v) == 1:
		return strconv.FormatBool(v[0] == 1)
	case len(v) == 2:
		return strconv.Itoa(int(int16(binary.BigEndian.Uint16(v))))
	case len(v) == 4:
		return strconv.Itoa(int(int32(binary.BigEndian.Uint32(v))))
	case len(v) == 8:
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(v)), 10)
	default:
		return fmt.Sprintf("%d bytes", len(v))
	}
}
