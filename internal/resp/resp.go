// Package resp reads commands as Redis clients send them, for stores in this process
// that stand in for a server, and the messages of both sides for what stands between
// them.
package resp

import (
	"bytes"
	"errors"
)

// ErrProtocol says that what was sent is no command, or no reply. A server would end
// the connection.
var ErrProtocol = errors.New("not the Redis protocol")

// Bounds as Redis has them, and the longest line that can hold them.
const (
	maxParts = 1 << 20
	maxPart  = 512 << 20
	maxLine  = 32
)

// Command reads one command, an array of at least one bulk string, from the front
// of b, and how many bytes it takes. n is 0 if b ends too early.
func Command(b []byte) (args []string, n int, err error) {
	count, at, err := length(b, '*', maxParts)
	if err != nil || at == 0 {
		return nil, 0, err
	}
	if count == 0 {
		return nil, 0, ErrProtocol
	}
	args = make([]string, 0, min(count, 64)) // what is promised may never come
	for range count {
		size, k, err := length(b[at:], '$', maxPart)
		if err != nil || k == 0 {
			return nil, 0, err
		}
		at += k
		if len(b)-at < size+2 {
			return nil, 0, nil
		}
		if b[at+size] != '\r' || b[at+size+1] != '\n' {
			return nil, 0, ErrProtocol
		}
		args = append(args, string(b[at:at+size]))
		at += size + 2
	}
	return args, at, nil
}

// length reads a line of a type byte and a number of at most limit. next is 0
// if the line has no end yet.
func length(b []byte, kind byte, limit int) (v, next int, err error) {
	if len(b) == 0 {
		return 0, 0, nil
	}
	if b[0] != kind {
		return 0, 0, ErrProtocol
	}
	end := bytes.IndexByte(b[:min(len(b), maxLine)], '\n')
	if end < 0 {
		if len(b) >= maxLine {
			return 0, 0, ErrProtocol
		}
		return 0, 0, nil
	}
	if end < 3 || b[end-1] != '\r' {
		return 0, 0, ErrProtocol
	}
	v, ok := size(b[1:end-1], limit)
	if !ok {
		return 0, 0, ErrProtocol
	}
	return v, end + 1, nil
}

// size reads digits, which make a number of at most limit.
func size(digits []byte, limit int) (v int, ok bool) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		if v = v*10 + int(c-'0'); v > limit {
			return 0, false
		}
	}
	return v, true
}
