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

func TestCommand(t *testing.T) {
	for _, args := range [][]string{{"PING"}, {"SET", "k", ""}, {"SET", "k\r\n", "$3\r\nabc\r\n"}, slices.Repeat([]string{"x"}, 200)} {
		text := written(args)
		got, n, err := Command([]byte(text + "*1\r\n"))
		if err != nil || n != len(text) || !slices.Equal(got, args) {
			t.Errorf("%q is read as %q, %d bytes, %v", text, got, n, err)
		}
		for i := range text { // whatever has arrived, there is nothing wrong with it
			if got, n, err := Command([]byte(text[:i])); got != nil || n != 0 || err != nil {
				t.Errorf("%q is read as %q, %d, %v", text[:i], got, n, err)
			}
		}
	}
}

func TestNoCommand(t *testing.T) {
	for _, text := range []string{
		"PING\r\n", "*0\r\n", "*-1\r\n", "*+1\r\n", "*\r\n", "*1\n$4\r\nPING\r\n", "*x\r\n", "*1\r\n:1\r\n", "*1\r\n$-1\r\n",
		"*1\r\n$4\r\nPINGxx", "*1048577\r\n", "*1\r\n$536870913\r\n", "*99999999999999999999\r\n",
		"*" + strings.Repeat("0", 40), "*" + strings.Repeat("0", 40) + "1\r\n",
	} {
		if got, n, err := Command([]byte(text)); !errors.Is(err, ErrProtocol) || got != nil || n != 0 {
			t.Errorf("%q is read as %q, %d, %v", text, got, n, err)
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
		{command, []string{written([]string{"SET", "k", strings.Repeat("v\r\n", 50_000)}), "PING\r\n", "set k 1\n", written([]string{""})}},
		{(*Reader).Reply, []string{
			"+OK\r\n", "-ERR x\r\n", ":-1\r\n", "$-1\r\n", "$0\r\n\r\n", "$3\r\na\r\n\r\n", "*-1\r\n", "*0\r\n", "*2\r\n$1\r\nx\r\n*1\r\n:1\r\n",
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

// Whatever is sent, it is a command with a form that reads the same again, the
// beginning of one, or an error; more bytes behind it change nothing.
func FuzzCommand(f *testing.F) {
	f.Add([]byte(written([]string{"SET", "k", "v"})))
	f.Add([]byte("*1\r\n$4\r\nPI"))
	f.Add([]byte("*3\r\n$-1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		args, n, err := Command(b)
		switch {
		case err != nil:
			if args != nil || n != 0 || !errors.Is(err, ErrProtocol) {
				t.Fatalf("%q, %d, %v", args, n, err)
			}
			if _, _, again := Command(append(slices.Clone(b), "\r\n"...)); again == nil {
				t.Fatal("an error that goes away with more bytes")
			}
		case n == 0:
			if args != nil {
				t.Fatalf("%q of a command that has not arrived", args)
			}
		default:
			again, m, err := Command([]byte(written(args)))
			if err != nil || m != len(written(args)) || !slices.Equal(args, again) {
				t.Fatalf("%q reads as %q, %v", args, again, err)
			}
			if more, k, err := Command(append(slices.Clone(b), 'x')); err != nil || k != n || !slices.Equal(args, more) {
				t.Fatalf("%q with more behind it reads as %q, %d, %v", args, more, k, err)
			}
			if parts, raw, err := NewReader(bytes.NewReader(b)).Command(); err != nil || string(raw) != string(b[:n]) ||
				!slices.EqualFunc(parts, args, func(p []byte, a string) bool { return string(p) == a }) {
				t.Fatalf("%q is read from a connection as %q, %v", args, parts, err)
			}
			if _, k, err := Command(b[:n-1]); k != 0 || err != nil {
				t.Fatalf("without its last byte it reads as %d bytes, %v", k, err)
			}
		}
	})
}
