package pgwire

import (
	"bytes"
	"io"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// source is a connection that answers what it is made of, and takes what is sent.
type source struct {
	net.Conn
	io.Reader
}

func (s source) Read(p []byte) (int, error)  { return s.Reader.Read(p) }
func (s source) Write(p []byte) (int, error) { return len(p), nil }

type encoder interface{ Encode([]byte) ([]byte, error) }

func encoded(t testing.TB, list ...encoder) (out []byte) {
	t.Helper()
	for _, m := range list {
		var err error
		out, err = m.Encode(out)
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// readThrough sends and then reads through a wire, at most step bytes at a time.
func readThrough(sent, answer []byte, step int) string {
	w := Wrap(source{Reader: bytes.NewReader(answer)})
	w.Forget()
	for len(sent) > 0 {
		n := min(step, len(sent))
		_, _ = w.Write(sent[:n])
		sent = sent[n:]
	}
	for buf := make([]byte, step); ; {
		if _, err := w.Read(buf); err != nil {
			return w.Text()
		}
	}
}

func field(oid uint32) pgproto3.FieldDescription {
	return pgproto3.FieldDescription{Name: []byte("c"), DataTypeOID: oid}
}

// statement prepares and binds a statement of columns of these types, whose values
// come in binary, and answers with the rows.
func statement(t testing.TB, oids []uint32, rows ...[][]byte) (sent, answer []byte) {
	d := &pgproto3.RowDescription{}
	for _, o := range oids {
		d.Fields = append(d.Fields, field(o))
	}
	sent = encoded(t, &pgproto3.Parse{Name: "s1", Query: "SELECT"}, &pgproto3.Describe{ObjectType: 'S', Name: "s1"},
		&pgproto3.Sync{}, &pgproto3.Bind{PreparedStatement: "s1", ResultFormatCodes: []int16{1}}, &pgproto3.Execute{},
		&pgproto3.Sync{})
	answer = encoded(t, &pgproto3.ParseComplete{}, &pgproto3.ParameterDescription{}, d,
		&pgproto3.ReadyForQuery{TxStatus: 'I'}, &pgproto3.BindComplete{})
	for _, r := range rows {
		answer = append(answer, encoded(t, &pgproto3.DataRow{Values: r})...)
	}
	return sent, append(answer, encoded(t, &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")},
		&pgproto3.ReadyForQuery{TxStatus: 'I'})...)
}

func inBinary(t testing.TB, oid uint32, v any) []byte {
	t.Helper()
	b, err := pgtype.NewMap().Encode(oid, pgproto3.BinaryFormat, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Values are read by the types that the server names, not by how long they are.
func TestWire(t *testing.T) {
	for _, c := range []struct {
		oid   uint32
		value any
		want  string
	}{
		{pgtype.Int8OID, int64(7), "7"},
		{pgtype.Int4OID, int32(-3), "-3"},
		{pgtype.Int2OID, int16(-2), "-2"},
		{pgtype.BoolOID, true, "true"},
		{pgtype.TextOID, "hi", "hi"},
		// What the length, or being printable, would be wrong about:
		{pgtype.Int4OID, int32(0x41424344), "1094861636"},
		{pgtype.TextOID, "\x01\x02\x03\x04\x05\x06\x07\x08", `"\x01\x02\x03\x04\x05\x06\a\b"`},
		{pgtype.Float8OID, 1.5, "1.5"},
		{pgtype.Float8OID, math.Inf(1), "+Inf"},
		{pgtype.ByteaOID, []byte("abcd"), "4 bytes"},
	} {
		sent, answer := statement(t, []uint32{c.oid}, [][]byte{inBinary(t, c.oid, c.value)})
		if got := readThrough(sent, answer, 1<<10); got != c.want {
			t.Errorf("%v reads %q, want %q", c.value, got, c.want)
		}
	}
	seven := [][]byte{inBinary(t, pgtype.Int8OID, int64(7))}
	for _, c := range []struct {
		rows [][][]byte
		oids []uint32
		want string
	}{
		{nil, []uint32{pgtype.Int8OID}, ""},
		{[][][]byte{seven, seven, seven, seven, seven}, []uint32{pgtype.Int8OID}, "7; 7; 7; 2 more rows"},
		{[][][]byte{{[]byte("hi"), nil}}, []uint32{pgtype.TextOID, pgtype.TextOID}, "hi null"},
		{[][][]byte{{bytes.Repeat([]byte("x"), 2*mostBytes)}}, []uint32{pgtype.TextOID}, ""},
		{[][][]byte{seven}, []uint32{1 << 30}, "8 bytes"},
	} {
		sent, answer := statement(t, c.oids, c.rows...)
		if got := readThrough(sent, answer, 100); got != c.want {
			t.Errorf("reads %q, want %q", got, c.want)
		}
	}
}

// However it is cut, the same bytes read the same, and none makes it panic.
func FuzzWire(f *testing.F) {
	sent, answer := statement(f, []uint32{pgtype.Int8OID, pgtype.TextOID},
		[][]byte{inBinary(f, pgtype.Int8OID, int64(7)), nil})
	f.Add(sent, answer, 3)
	f.Add([]byte("B\x00\x00\x00\x00"), []byte("D\x00\x00\x00\x00D\xff\xff\xff\xff"), 1)
	f.Fuzz(func(t *testing.T, sent, answer []byte, step int) {
		step = max(1, step%64)
		if whole, cut := readThrough(sent, answer, len(sent)+len(answer)+1), readThrough(sent, answer, step); whole != cut ||
			strings.Contains(whole, "\n") {
			t.Errorf("%q as a whole, %q in pieces of %d", whole, cut, step)
		}
	})
}
