package stores

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
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

// pgwire renders messages as a client writes them after the start-up message.
func pgwire(t testing.TB, messages ...pgproto3.FrontendMessage) []byte {
	t.Helper()
	var b []byte
	for _, m := range messages {
		var err error
		if b, err = m.Encode(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

var startup = &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "u"}}

type traffic struct {
	name     string
	pg       bool
	bytes    []byte
	commands int64
	setup    int64
	asks     bool
}

func traffics(t testing.TB) []traffic {
	nasty := "*1\r\n$4\r\nPING\r\n"
	return []traffic{
		{name: "one", bytes: resp([]string{"INCR", "a"}), commands: 1},
		{name: "no arguments", bytes: resp([]string{"PING"}), commands: 1},
		{name: "pipeline", bytes: resp([]string{"INCR", "a"}, []string{"EXPIRE", "a", "10"}, []string{"GET", "b"}), commands: 3},
		{name: "empty argument", bytes: resp([]string{"SET", "a", ""}, []string{"GET", ""}), commands: 2},
		{name: "payload that looks like commands", bytes: resp([]string{"SET", nasty, strings.Repeat(nasty, 9)}), commands: 1},
		{name: "set-up", bytes: resp([]string{"hello", "3", "auth", "u", "p"}, []string{"SELECT", "1"}, []string{"client", "x"}), setup: 3},
		{name: "name that begins like set-up", bytes: resp([]string{"SELECTED"}, []string{"HELLOHELLO"}, []string{"AUT"}), commands: 3},
		{name: "set-up word as an argument", bytes: resp([]string{"GET", "select"}, []string{"hello"}), commands: 1, setup: 1},
		{name: "start-up alone", pg: true, bytes: pgwire(t, startup), setup: 1},
		{name: "password", pg: true, bytes: pgwire(t, startup, &pgproto3.PasswordMessage{Password: "E"}), setup: 2},
		{name: "simple", pg: true, bytes: pgwire(t, startup, &pgproto3.Query{String: "select 'E'"}), commands: 1, setup: 1, asks: true},
		{name: "prepare", pg: true, bytes: pgwire(t, startup, &pgproto3.Parse{Name: "s", Query: "select 1"}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{}), setup: 1, asks: true},
		{name: "execute without sync", pg: true, bytes: pgwire(t, startup, &pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}), commands: 1, setup: 1},
		{name: "batch", pg: true, bytes: pgwire(t, startup, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}), commands: 2, setup: 1, asks: true},
		{name: "end", pg: true, bytes: pgwire(t, startup, &pgproto3.Terminate{}), setup: 1},
	}
}

func newParser(pg bool) parser {
	if pg {
		return &pgParser{}
	}
	return &respParser{}
}

// feed parses in pieces of n bytes.
func feed(p parser, b []byte, n int) (total parsed, ok bool) {
	for len(b) > 0 {
		k := min(n, len(b))
		got, ok := p.parse(b[:k])
		total.commands += got.commands
		total.setup += got.setup
		total.asks = total.asks || got.asks
		if !ok {
			return total, false
		}
		b = b[k:]
	}
	return total, true
}

func TestParsersCountWhateverThePieces(t *testing.T) {
	for _, tc := range traffics(t) {
		t.Run(tc.name, func(t *testing.T) {
			want := parsed{commands: tc.commands, setup: tc.setup, asks: tc.asks}
			for n := 1; n <= len(tc.bytes); n++ {
				if got, ok := feed(newParser(tc.pg), tc.bytes, n); !ok || got != want {
					t.Fatalf("pieces of %d bytes: %+v (ok %v), want %+v", n, got, ok, want)
				}
			}
			// All but the last byte is not yet the last message.
			short, _ := feed(newParser(tc.pg), tc.bytes[:len(tc.bytes)-1], len(tc.bytes))
			if short.commands+short.setup >= want.commands+want.setup && tc.name != "prepare" && tc.name != "batch" && tc.name != "end" {
				t.Errorf("counted %+v before the last byte", short)
			}
		})
	}
}

func TestParsersGiveUpOnWhatTheyDoNotKnow(t *testing.T) {
	size := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for name, tc := range map[string]struct {
		pg bool
		b  []byte
	}{
		"inline command":         {b: []byte("PING\r\n")},
		"no count":               {b: []byte("*\r\n")},
		"count without feed":     {b: []byte("*1\rX")},
		"negative length":        {b: []byte("*1\r\n$-1\r\n")},
		"absurd length":          {b: []byte("*1\r\n$99999999999999999999\r\n")},
		"argument of other type": {b: []byte("*1\r\n:1\r\n")},
		"size below its own":     {pg: true, b: size(3)},
		"absurd size":            {pg: true, b: size(1 << 31)},
	} {
		if _, ok := feed(newParser(tc.pg), tc.b, len(tc.b)); ok {
			t.Errorf("%s: parsed", name)
		}
	}
}

func FuzzRESPParser(f *testing.F) {
	for _, tc := range traffics(f) {
		if !tc.pg {
			f.Add(tc.bytes, uint8(3))
		}
	}
	fuzzPieces(f, false)
}

func FuzzPgwireParser(f *testing.F) {
	for _, tc := range traffics(f) {
		if tc.pg {
			f.Add(tc.bytes, uint8(3))
		}
	}
	fuzzPieces(f, true)
}

// fuzzPieces checks that counts do not depend on how a stream is cut.
func fuzzPieces(f *testing.F, pg bool) {
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		whole, ok1 := feed(newParser(pg), b, len(b)+1)
		cut, ok2 := feed(newParser(pg), b, int(n)+1)
		if whole != cut || ok1 != ok2 {
			t.Fatalf("whole %+v %v, in pieces of %d %+v %v", whole, ok1, int(n)+1, cut, ok2)
		}
		if whole.commands < 0 || whole.commands+whole.setup > int64(len(b)) {
			t.Fatalf("impossible counts %+v from %d bytes", whole, len(b))
		}
	})
}

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
	var m Meter
	c := newMeterConn(stub{}, &m, &respParser{})
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
	hello, incr := resp([]string{"HELLO", "3"}), resp([]string{"INCR", "a"})
	write(hello)
	read()
	if got, want := m.Snapshot(), (Counts{Connections: 1, SetupCommands: 1}); got != want {
		t.Fatalf("after the greeting: %+v, want %+v", got, want)
	}
	before := m.Snapshot()
	write(incr)
	write(incr) // two writes, one reply in two pieces: one round trip
	read()
	read()
	write(incr)
	read()
	want := Counts{Commands: 3, RoundTrips: 2, BytesOut: 3 * int64(len(incr)), BytesIn: 15}
	if got := m.Snapshot().Sub(before); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { write(incr); read() }); n != 0 {
		t.Errorf("%v allocations per command", n)
	}
}

func TestMeterConnDoesNotCountWhatWasNotSent(t *testing.T) {
	var m Meter
	c := newMeterConn(stub{fail: true}, &m, &respParser{})
	if _, err := c.Write(resp([]string{"INCR", "a"})); err == nil {
		t.Fatal("the write should fail")
	}
	if n := m.Commands.Load(); n != 0 {
		t.Errorf("counted %d commands of a failed write", n)
	}
}

func TestMeterConnSaysWhenItIsLost(t *testing.T) {
	var m Meter
	c := newMeterConn(stub{}, &m, &respParser{})
	for range 3 {
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Snapshot(); got.Unparsed != 1 || got.BytesOut != 18 {
		t.Errorf("%+v, want one lost connection whose 18 bytes still count", got)
	}
}

func BenchmarkMeterConn(b *testing.B) {
	var m Meter
	c := newMeterConn(stub{}, &m, &respParser{})
	incr := resp([]string{"INCRBY", "quotabench:users:12345:quota:2026-11", "1"})
	buf := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Write(incr)
		_, _ = c.Read(buf)
	}
}
