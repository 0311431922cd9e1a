package postgres

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// What is kept of a reply: more rows, and longer ones, are only told of.
const (
	wireRows  = 3
	wireBytes = 16 << 10
)

// wire reads along what client and server say, since a tracer is not told the
// values of rows. Where the connection is encrypted there is nothing to read, and
// timelines show how many rows there were.
type wire struct {
	net.Conn
	types *pgtype.Map

	mu    sync.Mutex
	awake bool // from when the connection stands: messages begin where they should
	in    stream
	out   stream
	// described are the columns of prepared statements, by name; asked are the
	// statements whose descriptions are on their way.
	described map[string][]pgproto3.FieldDescription
	asked     []string
	// bound are the statements that were sent, in order; the first is the one whose
	// rows come next.
	bound []binding
	rows  []string
	more  int
}

// binding is one statement to be executed.
type binding struct {
	statement string
	formats   []int16
	// fields of a simple query, which is described with its rows.
	fields []pgproto3.FieldDescription
}

func wrapWire(c net.Conn) net.Conn {
	return &wire{Conn: c, types: pgtype.NewMap(), described: map[string][]pgproto3.FieldDescription{}}
}

// Read implements net.Conn.
func (s *wire) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awake {
		s.in.see(p[:n], s.received)
	}
	return n, err
}

// Write implements net.Conn.
func (s *wire) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.awake {
		s.out.see(p, s.sent)
	}
	s.mu.Unlock()
	return s.Conn.Write(p)
}

// wake begins to read. The connection must stand, and nothing may be on its way.
func (s *wire) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awake = true
}

// forget begins a statement. Nothing may be on its way.
func (s *wire) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in, s.out = stream{}, stream{}
	s.asked = s.asked[:0]
	s.bound = s.bound[:0]
	s.rows = s.rows[:0]
	s.more = 0
}

// text is what the statement answered, or empty for no rows.
func (s *wire) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more > 0 {
		return fmt.Sprintf("%s; %d more rows", strings.Join(s.rows, "; "), s.more)
	}
	return strings.Join(s.rows, "; ")
}

// sent sees a message of the client's.
func (s *wire) sent(kind byte, body []byte, whole bool) {
	if !whole {
		return
	}
	switch kind {
	case 'D':
		var m pgproto3.Describe
		if m.Decode(body) == nil {
			s.asked = append(s.asked, string(m.ObjectType)+m.Name)
		}
	case 'B':
		var m pgproto3.Bind
		if m.Decode(body) != nil {
			return
		}
		s.bound = append(s.bound, binding{statement: "S" + m.PreparedStatement, formats: slices.Clone(m.ResultFormatCodes)})
	}
}

// received sees a message of the server's.
func (s *wire) received(kind byte, body []byte, whole bool) {
	switch kind {
	case 'T': // the description of a statement that was asked about, or of a simple query
		var m pgproto3.RowDescription
		if !whole || m.Decode(body) != nil {
			return
		}
		if len(s.asked) > 0 && s.asked[0][0] == 'S' {
			s.described[s.asked[0]] = slices.Clone(m.Fields)
		} else if len(s.bound) > 0 {
			s.bound[0].fields = slices.Clone(m.Fields)
		} else {
			s.bound = append(s.bound, binding{fields: slices.Clone(m.Fields)})
		}
		s.answered()
	case 'n':
		s.answered()
	case 'D':
		if len(s.rows) == wireRows {
			s.more++
			return
		}
		s.rows = append(s.rows, s.row(body, whole))
	case 'C', 'I':
		if len(s.bound) > 0 {
			s.bound = s.bound[1:]
		}
	}
}

func (s *wire) answered() {
	if len(s.asked) > 0 {
		s.asked = s.asked[1:]
	}
}

// row shows the values of a row.
func (s *wire) row(body []byte, whole bool) string {
	var m pgproto3.DataRow
	if !whole || m.Decode(body) != nil {
		return "a row"
	}
	out := make([]string, len(m.Values))
	for i, v := range m.Values {
		f := s.field(i)
		out[i] = s.value(&f, v)
	}
	return strings.Join(out, " ")
}

// field describes a column of the rows that come.
func (s *wire) field(i int) (f pgproto3.FieldDescription) {
	if len(s.bound) == 0 {
		return f
	}
	b := &s.bound[0]
	fields := b.fields
	if fields == nil {
		fields = s.described[b.statement]
	}
	if i < len(fields) {
		f = fields[i]
	}
	switch n := len(b.formats); {
	case n == 1:
		f.Format = b.formats[0]
	case i < n:
		f.Format = b.formats[i]
	}
	return f
}

// value shows a value by its type.
func (s *wire) value(f *pgproto3.FieldDescription, v []byte) string {
	if v == nil {
		return "null"
	}
	if t, ok := s.types.TypeForOID(f.DataTypeOID); ok {
		d, err := t.Codec.DecodeDatabaseSQLValue(s.types, f.DataTypeOID, f.Format, v)
		if b, isBytes := d.([]byte); err == nil && isBytes {
			return fmt.Sprintf("%d bytes", len(b))
		}
		if err == nil {
			return oneLine(fmt.Sprint(d))
		}
	}
	if f.DataTypeOID != 0 && f.Format == pgproto3.TextFormat {
		return oneLine(string(v))
	}
	return fmt.Sprintf("%d bytes", len(v))
}

// oneLine quotes text that would not print.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// stream cuts bytes into messages: a letter, a length that counts itself, a body.
type stream struct {
	head   []byte
	body   []byte
	left   int // bytes of the message that have not come yet
	inside bool
	cut    bool // the body is longer than what is kept
}

// see takes the next bytes and passes every message that is complete to each.
// whole is false if only the beginning of the body was kept.
func (s *stream) see(p []byte, each func(kind byte, body []byte, whole bool)) {
	const headLength = 5
	for len(p) > 0 {
		if !s.inside {
			n := min(headLength-len(s.head), len(p))
			s.head, p = append(s.head, p[:n]...), p[n:]
			if len(s.head) < headLength {
				return
			}
			s.left, s.inside, s.cut = max(0, int(int32(binary.BigEndian.Uint32(s.head[1:])))-4), true, false
			s.body = s.body[:0]
		}
		n := min(s.left, len(p))
		keep := min(n, wireBytes-len(s.body))
		s.body = append(s.body, p[:keep]...)
		s.cut = s.cut || keep < n
		s.left, p = s.left-n, p[n:]
		if s.left > 0 {
			return
		}
		each(s.head[0], s.body, !s.cut)
		s.head, s.inside = s.head[:0], false
	}
}
