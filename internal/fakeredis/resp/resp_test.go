package resp

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// written is a command in the form that it is read from.
func written(args []string) string {
	var b strings.Builder
	b.WriteString("*" + strconv.Itoa(len(args)) + "\r\n")
	for _, a := range args {
		b.WriteString("$" + strconv.Itoa(len(a)) + "\r\n" + a + "\r\n")
	}
	return b.String()
}

// pieces writes to a connection, so many bytes at a time, and returns the commands that it has handled.
func pieces(text string, n int) (got [][]string, err error) {
	c := NewConn(new(bytes.Buffer), func(args []string) { got = append(got, args) })
	for len(text) > 0 && err == nil {
		k := min(n, len(text))
		_, err = c.Write([]byte(text[:k]))
		text = text[k:]
	}
	return got, err
}

// A command is handled once it has arrived whole, and there is nothing wrong with what has arrived before.
func TestCommand(t *testing.T) {
	var all [][]string
	text := ""
	for _, args := range [][]string{{"PING"}, {"SET", "k", ""}, {"SET", "k\r\n", "$3\r\nabc\r\n"},
		slices.Repeat([]string{"x"}, 200), {"SET", "k", strings.Repeat("v", 2000)}} {
		one := written(args)
		if got, err := pieces(one[:len(one)-1], 1); len(got) > 0 || err != nil {
			t.Errorf("%.40q without its last byte is %.40q, %v", one, got, err)
		}
		all = append(all, args)
		text = text + one
	}
	for _, n := range []int{1, 7, 600, len(text)} {
		if got, err := pieces(text, n); err != nil || !slices.EqualFunc(got, all, slices.Equal) {
			t.Errorf("%d bytes at a time: %d commands, %v", n, len(got), err)
		}
	}
}

func TestNoCommand(t *testing.T) {
	for _, text := range []string{
		"\x01\r\n", "*+1\r\n", "*\r\n", "*1\n$4\r\nPING\r\n", "*x\r\n", "*1\r\n:1\r\n", "*1\r\n$-1\r\n",
		"*1\r\n$4\r\nPINGxx", "*1048577\r\n", "*1\r\n$536870913\r\n", "*99999999999999999999\r\n",
		"*" + strings.Repeat("0", 40) + "1\r\n",
	} {
		if got, err := pieces(text, len(text)); !errors.Is(err, ErrProtocol) || got != nil {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	}
}

// A reader returns each message as it was sent, however it arrives, and finds nothing wrong
// with what has not arrived whole.
func TestReader(t *testing.T) {
	command := func(r *Reader) ([]byte, error) { _, raw, err := r.Command(); return raw, err }
	for _, side := range []struct {
		read     func(*Reader) ([]byte, error)
		messages []string
	}{
		{command, []string{written([]string{"SET", "k", strings.Repeat("v\r\n", 50_000)}), "PING\r\n", "set k 1\n",
			written([]string{""})}},
		{(*Reader).Reply, []string{
			"+OK\r\n", "-ERR x\r\n", ":-1\r\n", "$-1\r\n", "$0\r\n\r\n", "$3\r\na\r\n\r\n", "*-1\r\n", "*0\r\n",
			"*2\r\n$1\r\nx\r\n*1\r\n:1\r\n",
			"_\r\n", "#f\r\n", ",1e9\r\n", ",-inf\r\n", "(-12345678901234567890\r\n", "!5\r\nERR x\r\n", "=5\r\ntxt:a\r\n",
			"%1\r\n+a\r\n%1\r\n+b\r\n_\r\n", "~1\r\n+x\r\n", ">1\r\n+x\r\n", "|1\r\n+a\r\n:1\r\n|0\r\n+OK\r\n",
		}},
	} {
		all := strings.Join(side.messages, "")
		for _, in := range []io.Reader{strings.NewReader(all), iotest.OneByteReader(strings.NewReader(all))} {
			r := NewReader(in)
			for _, want := range side.messages {
				if got, err := side.read(r); err != nil || string(got) != want {
					t.Errorf("%.40q is read as %.40q, %v", want, got, err)
				}
			}
			if _, err := side.read(r); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		}
		for _, m := range side.messages {
			for i := range min(len(m), 100) {
				if got, err := side.read(NewReader(strings.NewReader(m[:i]))); err == nil || errors.Is(err, ErrProtocol) {
					t.Errorf("%q is read as %q, %v", m[:i], got, err)
				}
			}
		}
	}
}

// Whatever is sent, its commands are the same however it arrives, and are read the same again.
func FuzzCommand(f *testing.F) {
	f.Add([]byte(written([]string{"SET", "k", "v"})), uint8(3))
	f.Add([]byte("*1\r\n$4\r\nPI"), uint8(0))
	f.Add([]byte("*3\r\n$-1\r\n"), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		whole, err := pieces(string(b), len(b)+1)
		cut, cutErr := pieces(string(b), int(n)+1)
		if !slices.EqualFunc(whole, cut, slices.Equal) || errors.Is(err, ErrProtocol) != errors.Is(cutErr, ErrProtocol) {
			t.Fatalf("%q, %v; in pieces of %d %q, %v", whole, err, int(n)+1, cut, cutErr)
		}
		text := ""
		for _, args := range whole {
			text += written(args)
		}
		if again, err := pieces(text, len(text)); err != nil || !slices.EqualFunc(whole, again, slices.Equal) {
			t.Fatalf("%q reads as %q, %v", whole, again, err)
		}
	})
}
