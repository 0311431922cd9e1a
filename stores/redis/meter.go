package redis

import (
	"bytes"
	"slices"

	"github.com/quotabench/quotabench/stores"
)

// respParser counts Redis commands in what a client writes: arrays of bulk
// strings. It steps over payloads without looking at them, except the names of
// commands.
type respParser struct {
	begun []byte // a command that has not been written whole
}

// setup are the commands with which a client makes a connection ready, or finds
// out where servers are. No strategy has a use for them.
var setup = [][]byte{
	[]byte("hello"), []byte("auth"), []byte("select"), []byte("client"),
	[]byte("cluster"), []byte("command"), []byte("readonly"), []byte("sentinel"),
}

// Parse reads the next piece of what the client writes.
func (r *respParser) Parse(p []byte) (out stores.Parsed, ok bool) {
	if len(r.begun) > 0 {
		r.begun = append(r.begun, p...)
		p = r.begun
	}
	for len(p) > 0 {
		name, size, ok := command(p)
		if !ok {
			return out, false
		}
		if size == 0 {
			break
		}
		p = p[size:]
		switch {
		case name == nil: // an empty command is answered by nothing
		case slices.ContainsFunc(setup, func(s []byte) bool { return bytes.EqualFold(s, name) }):
			out.Setup++
		default:
			out.Commands++
		}
	}
	r.begun = append(r.begun[:0], p...)
	return out, true
}

// command reads a command from the beginning of p: its name, which is nil if it has no
// words, and how many bytes it has, 0 if there are not all of them.
func command(p []byte) (name []byte, size int, ok bool) {
	words, at, ok := number(p, '*')
	for i := range words {
		length, begin, ok := number(p[at:], '$')
		from, to := at+begin, at+begin+length
		if !ok || begin == 0 || to+len("\r\n") > len(p) {
			return nil, 0, ok
		}
		if i == 0 {
			name = p[from:to]
		}
		at = to + len("\r\n")
	}
	return name, at, ok
}

// number reads a line such as "*3" of the kind. next is where what follows begins, 0 if the
// line has not been written whole.
func number(p []byte, kind byte) (n, next int, ok bool) {
	for i, b := range p {
		switch {
		case i == 0 && b == kind:
		case i > 0 && '0' <= b && b <= '9' && n <= 512<<20/10: // 512 MB is Redis' own limit for both
			n = n*10 + int(b-'0')
		case i > 1 && b == '\r' && i+1 == len(p):
			return 0, 0, true
		case i > 1 && b == '\r' && p[i+1] == '\n':
			return n, i + 2, true
		default:
			return 0, 0, false
		}
	}
	return 0, 0, true
}
