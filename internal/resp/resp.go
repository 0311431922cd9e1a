// Package resp reads commands as Redis clients send them, for stores in this process
// that stand in for a server, and the messages of both sides for what stands between
// them.
package resp

import "errors"

// ErrProtocol says that what was sent is no command, or no reply. A server would end
// the connection.
var ErrProtocol = errors.New("not the Redis protocol")

// Bounds as Redis has them, and the longest line that can hold them.
const (
	maxParts = 1 << 20
	maxPart  = 512 << 20
	maxLine  = 32
)

// Texts are the arguments of a command, which stay.
func Texts(args [][]byte) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = string(a)
	}
	return out
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
