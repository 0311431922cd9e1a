package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// What is kept of a reply: more rows are only told of, and of longer messages their number.
const (
	wireRows  = 3
	wireBytes = 16 << 10
)

// mostSent bounds a message of the client's that is read along.
const mostSent = 1 << 20

// wire reads along what client and server say, since a tracer is not told the
// values of rows. If the connection is encrypted there is nothing to read, and
// timelines show how many rows there were.
type wire struct {
	net.Conn
	types *pgtype.Map

	mu    sync.Mutex
	in    heard
	out   heard
	front *pgproto3.Frontend // which reads in; nil until the connection stands
	back  *pgproto3.Backend  // which reads out
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
	if s.front != nil {
		s.in.hear(p[:n], s.received)
	}
	return n, err
}

// Write implements net.Conn.
func (s *wire) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.front != nil {
		s.out.hear(p, s.sent)
	}
	s.mu.Unlock()
	return s.Conn.Write(p)
}

// heard are the bytes of one direction, from a moment at which nothing was on its way. lost is set once they are no messages, or
// one that is too long.
type heard struct {
	bytes bytes.Buffer
	lost  bool
}

// hear takes the next bytes, and takes in the messages that are complete.
func (h *heard) hear(p []byte, next func() error) {
	if h.lost {
		return
	}
	h.bytes.Write(p)
	err := next()
	for err == nil {
		err = next()
	}
	h.lost = !errors.Is(err, io.ErrUnexpectedEOF)
}

// forget begins a statement. The connection must stand, and nothing may be on its way.
func (s *wire) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.front == nil || s.in.lost || s.out.lost {
		s.in = heard{}
		s.out = heard{}
		s.front, s.back = pgproto3.NewFrontend(&s.in.bytes, nil), pgproto3.NewBackend(&s.out.bytes, nil)
		s.front.SetMaxBodyLen(wireBytes)
		s.back.SetMaxBodyLen(mostSent)
	}
	s.asked = s.asked[:0]
	s.bound = s.bound[:0]
	s.rows = s.rows[:0]
	s.more = 0
}

// text is what the statement answered, or empty for no rows.
func (s *wire) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.in.lost:
		return ""
	case s.more > 0:
		return fmt.Sprintf("%s; %d more rows", strings.Join(s.rows, "; "), s.more)
	}
	return strings.Join(s.rows, "; ")
}

// sent takes in a message of the client's.
func (s *wire) sent() error {
	m, err := s.back.Receive()
	switch m := m.(type) {
	case *pgproto3.Describe:
		s.asked = append(s.asked, string(m.ObjectType)+m.Name)
	case *pgproto3.Bind:
		s.bound = append(s.bound, binding{statement: "S" + m.PreparedStatement, formats: slices.Clone(m.ResultFormatCodes)})
	}
	return err
}

// received takes in a message of the server's.
func (s *wire) received() error {
	m, err := s.front.Receive()
	switch m := m.(type) {
	case *pgproto3.RowDescription: // of a statement that was asked about, or of a simple query
		if len(s.asked) > 0 && s.asked[0][0] == 'S' {
			s.described[s.asked[0]] = slices.Clone(m.Fields)
		} else if len(s.bound) > 0 {
			s.bound[0].fields = slices.Clone(m.Fields)
		} else {
			s.bound = append(s.bound, binding{fields: slices.Clone(m.Fields)})
		}
		s.answered()
	case *pgproto3.NoData:
		s.answered()
	case *pgproto3.DataRow:
		if len(s.rows) == wireRows {
			s.more++
		} else {
			s.rows = append(s.rows, s.row(m))
		}
	case *pgproto3.CommandComplete, *pgproto3.EmptyQueryResponse:
		if len(s.bound) > 0 {
			s.bound = s.bound[1:]
		}
	}
	return err
}

func (s *wire) answered() {
	if len(s.asked) > 0 {
		s.asked = s.asked[1:]
	}
}

// row shows the values of a row.
func (s *wire) row(m *pgproto3.DataRow) string {
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
