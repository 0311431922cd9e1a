package explore

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

// source is a connection that answers what it is made of, in pieces.
type source struct {
	net.Conn
	io.Reader
}

func (s source) Read(p []byte) (int, error) { return s.Reader.Read(p) }

// readThrough reads all of b through a wire, at most step bytes at a time.
func readThrough(b []byte, step int) string {
	w := wrapSQLWire(source{Reader: bytes.NewReader(b)}).(*sqlWire)
	w.forget()
	for buf := make([]byte, step); ; {
		if _, err := w.Read(buf); err != nil {
			return w.text()
		}
	}
}

const (
	bindComplete = "2\x00\x00\x00\x04"
	commandDone  = "C\x00\x00\x00\x0dSELECT 1\x00"
	// A row of the number 7 in 8 bytes, and one of a text and a null.
	rowOfSeven = "D\x00\x00\x00\x12\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x07"
	rowOfText  = "D\x00\x00\x00\x10\x00\x02\x00\x00\x00\x02hi\xff\xff\xff\xff"
)

func TestSQLWire(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{bindComplete + commandDone, ""},
		{bindComplete + rowOfSeven + commandDone, "7"},
		{rowOfText + rowOfSeven + commandDone, "hi null; 7"},
		{strings.Repeat(rowOfSeven, 5), "7; 7; 7; 2 more rows"},
		{"D\x00\x00\x00\x0c\x00\x01\x00\x00\x00\x02\xff\xfe", "-2"},
		{"D\x00\x00\x00\x0b\x00\x01\x00\x00\x00\x01\x01", "true"},
		{"D\x00\x00\x00\x0e\x00\x01\x00\x00\x00\x04\xff\xff\xff\xfd", "-3"},
		{"D\x00\x00\x00\x0d\x00\x01\x00\x00\x00\x03\x00\x00\x00", "3 bytes"},
	} {
		if got := readThrough([]byte(c.sent), 1<<10); got != c.want {
			t.Errorf("%q reads %q, want %q", c.sent, got, c.want)
		}
	}
}

// However it is cut, the same bytes read the same, and none makes it panic.
func FuzzSQLWire(f *testing.F) {
	f.Add([]byte(bindComplete+rowOfSeven+rowOfText+commandDone), 3)
	f.Add([]byte("D\x00\x00\x00\x00D\xff\xff\xff\xff"), 1)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		step = max(1, step%64)
		if whole, cut := readThrough(b, len(b)+1), readThrough(b, step); whole != cut {
			t.Errorf("%q as a whole, %q in pieces of %d", whole, cut, step)
		}
	})
}
