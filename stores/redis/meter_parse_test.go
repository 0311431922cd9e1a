package redis

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/stores/metertest"
	"github.com/quotabench/quotabench/stores"
)

// resp renders commands as a client writes them.
func resp(commands ...[]string) []byte {
	var b bytes.Buffer
	for _, c := range commands {
		fmt.Fprintf(&b, "*%d\r\n", len(c))
		for _, a := range c {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
		}
	}
	return b.Bytes()
}

func traffics() []metertest.Traffic {
	nasty := "*1\r\n$4\r\nPING\r\n"
	return []metertest.Traffic{
		{Name: "one", Bytes: resp([]string{"INCR", "a"}), Want: stores.Parsed{Commands: 1}},
		{Name: "no arguments", Bytes: resp([]string{"PING"}), Want: stores.Parsed{Commands: 1}},
		{Name: "pipeline", Bytes: resp([]string{"INCR", "a"}, []string{"EXPIRE", "a", "10"}, []string{"GET", "b"}),
			Want: stores.Parsed{Commands: 3}},
		{Name: "empty argument", Bytes: resp([]string{"SET", "a", ""}, []string{"GET", ""}),
			Want: stores.Parsed{Commands: 2}},
		{Name: "payload that looks like commands", Bytes: resp([]string{"SET", nasty, strings.Repeat(nasty, 9)}),
			Want: stores.Parsed{Commands: 1}},
		{Name: "set-up", Bytes: resp([]string{"hello", "3", "auth", "u", "p"}, []string{"SELECT", "1"},
			[]string{"client", "x"}), Want: stores.Parsed{Setup: 3}},
		{Name: "name that begins like set-up", Bytes: resp([]string{"SELECTED"}, []string{"HELLOHELLO"}, []string{"AUT"}),
			Want: stores.Parsed{Commands: 3}},
		{Name: "set-up word as an argument", Bytes: resp([]string{"GET", "select"}, []string{"hello"}),
			Want: stores.Parsed{Commands: 1, Setup: 1}},
	}
}

func newParser() stores.Parser { return &respParser{} }

func TestParserCountsWhateverThePieces(t *testing.T) { metertest.Pieces(t, newParser, traffics()) }

func TestParserGivesUpOnWhatItDoesNotKnow(t *testing.T) {
	metertest.GivesUp(t, newParser, map[string][]byte{
		"inline command":         []byte("PING\r\n"),
		"no count":               []byte("*\r\n"),
		"count without feed":     []byte("*1\rX"),
		"negative length":        []byte("*1\r\n$-1\r\n"),
		"absurd length":          []byte("*1\r\n$99999999999999999999\r\n"),
		"argument of other type": []byte("*1\r\n:1\r\n"),
	})
}

func FuzzParser(f *testing.F) { metertest.Fuzz(f, newParser, traffics()) }

// stub is a connection that swallows writes and answers every read.
type stub struct {
	net.Conn
	fail bool
}

func (s stub) Write(p []byte) (int, error) {
	if s.fail {
		return len(p) / 2, io.ErrClosedPipe
	}
	return len(p), nil
}

func (s stub) Read(p []byte) (int, error) { return copy(p, "+OK\r\n"), nil }

func TestMeterConn(t *testing.T) {
	var m stores.Meter
	c := m.Conn(stub{}, &respParser{})
	buf := make([]byte, 64)
	write := func(b []byte) {
		t.Helper()
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	read := func() {
		t.Helper()
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	hello := resp([]string{"HELLO", "3"})
	incr := resp([]string{"INCR", "a"})
	write(hello)
	read()
	if got, want := m.Snapshot(), (stores.Counts{Connections: 1, SetupCommands: 1}); got != want {
		t.Fatalf("after the greeting: %+v, want %+v", got, want)
	}
	before := m.Snapshot()
	write(incr)
	write(incr) // two writes, one reply in two pieces: one round trip
	read()
	read()
	write(incr)
	read()
	want := stores.Counts{Commands: 3, RoundTrips: 2, BytesOut: 3 * int64(len(incr)), BytesIn: 15}
	if got := m.Snapshot().Sub(before); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { write(incr); read() }); n != 0 {
		t.Errorf("%v allocations per command", n)
	}
}

func TestMeterConnDoesNotCountWhatWasNotSent(t *testing.T) {
	var m stores.Meter
	c := m.Conn(stub{fail: true}, &respParser{})
	if _, err := c.Write(resp([]string{"INCR", "a"})); err == nil {
		t.Fatal("the write should fail")
	}
	if n := m.Commands.Load(); n != 0 {
		t.Errorf("counted %d commands of a failed write", n)
	}
}

func TestMeterConnSaysWhenItIsLost(t *testing.T) {
	var m stores.Meter
	c := m.Conn(stub{}, &respParser{})
	for range 3 {
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Snapshot(); got.Unparsed != 1 || got.BytesOut != 18 {
		t.Errorf("%+v, want one lost connection whose 18 bytes still count", got)
	}
}
