// Package pgwire reads along what a client and a PostgreSQL server say to each other, and says it in a few words.
package pgwire

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
	mostRows  = 3
	mostBytes = 16 << 10
)

// mostSent bounds a message of the client's that is read along.
const mostSent = 1 << 20

// Conn reads along what client and server say, since a tracer is not told the
// values of rows. If the connection is encrypted there is nothing to read, and
// timelines show how many rows there were.
type Conn struct {
	net.Conn
	types *pgtype.Map

	mu    sync.Mutex
	heard heard
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

// Wrap has a connection read along.
func Wrap(conn net.Conn) *Conn {
	return &Conn{Conn: conn, types: pgtype.NewMap(), described: map[string][]pgproto3.FieldDescription{}}
}

// Read implements net.Conn.
func (s *Conn) Read(data []byte) (int, error) {
	n, err := s.Conn.Read(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.front != nil {
		s.heard.hear(data[:n], s.received)
	}
	return n, err
}

// Write implements net.Conn.
func (s *Conn) Write(data []byte) (int, error) {
	s.mu.Lock()
	if s.front != nil {
		s.out.hear(data, s.sent)
	}
	s.mu.Unlock()
	return s.Conn.Write(data)
}

// heard are the bytes of one direction, from a moment at which nothing was on its way. lost is set once they are no
// messages, or one that is too long.
type heard struct {
	bytes bytes.Buffer
	lost  bool
}

// hear takes the next bytes, and takes in the messages that are complete.
func (h *heard) hear(data []byte, next func() error) {
	if h.lost {
		return
	}
	h.bytes.Write(data)
	err := next()
	for err == nil {
		err = next()
	}
	h.lost = !errors.Is(err, io.ErrUnexpectedEOF)
}

// Forget begins a statement. The connection must stand, and nothing may be on its way.
func (s *Conn) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.front == nil || s.heard.lost || s.out.lost {
		s.heard = heard{}
		s.out = heard{}
		s.front, s.back = pgproto3.NewFrontend(&s.heard.bytes, nil), pgproto3.NewBackend(&s.out.bytes, nil)
		s.front.SetMaxBodyLen(mostBytes)
		s.back.SetMaxBodyLen(mostSent)
	}
	s.asked = s.asked[:0]
	s.bound = s.bound[:0]
	s.rows = s.rows[:0]
	s.more = 0
}

// Text is what the statement answered, or empty for no rows.
func (s *Conn) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.heard.lost:
		return ""
	case s.more > 0:
		return fmt.Sprintf("%s; %d more rows", strings.Join(s.rows, "; "), s.more)
	}
	return strings.Join(s.rows, "; ")
}

// sent takes in a message of the client's.
func (s *Conn) sent() error {
	message, err := s.back.Receive()
	switch m := message.(type) {
	case *pgproto3.Describe:
		s.asked = append(s.asked, string(m.ObjectType)+m.Name)
	case *pgproto3.Bind:
		s.bound = append(s.bound, binding{statement: "S" + m.PreparedStatement, formats: slices.Clone(m.ResultFormatCodes)})
	}
	return err
}

// received takes in a message of the server's.
func (s *Conn) received() error {
	message, err := s.front.Receive()
	switch m := message.(type) {
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
		if len(s.rows) == mostRows {
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

func (s *Conn) answered() {
	if len(s.asked) > 0 {
		s.asked = s.asked[1:]
	}
}

// row shows the values of a row.
func (s *Conn) row(dataRow *pgproto3.DataRow) string {
	out := make([]string, len(dataRow.Values))
	for i, data := range dataRow.Values {
		description := s.field(i)
		out[i] = s.value(&description, data)
	}
	return strings.Join(out, " ")
}

// field describes a column of the rows that come.
func (s *Conn) field(i int) (description pgproto3.FieldDescription) {
	if len(s.bound) == 0 {
		return description
	}
	binding := &s.bound[0]
	fields := binding.fields
	if fields == nil {
		fields = s.described[binding.statement]
	}
	if i < len(fields) {
		description = fields[i]
	}
	switch n := len(binding.formats); {
	case n == 1:
		description.Format = binding.formats[0]
	case i < n:
		description.Format = binding.formats[i]
	}
	return description
}

// value shows a value by its type.
func (s *Conn) value(description *pgproto3.FieldDescription, data []byte) string {
	if data == nil {
		return "null"
	}
	if t, ok := s.types.TypeForOID(description.DataTypeOID); ok {
		value, err := t.Codec.DecodeDatabaseSQLValue(s.types, description.DataTypeOID, description.Format, data)
		if b, isBytes := value.([]byte); err == nil && isBytes {
			return fmt.Sprintf("%d bytes", len(b))
		}
		if err == nil {
			return oneLine(fmt.Sprint(value))
		}
	}
	if description.DataTypeOID != 0 && description.Format == pgproto3.TextFormat {
		return oneLine(string(data))
	}
	return fmt.Sprintf("%d bytes", len(data))
}

// oneLine quotes text that would not print.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
