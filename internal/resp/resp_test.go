package resp

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
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
			if _, k, err := Command(b[:n-1]); k != 0 || err != nil {
				t.Fatalf("without its last byte it reads as %d bytes, %v", k, err)
			}
		}
	})
}
