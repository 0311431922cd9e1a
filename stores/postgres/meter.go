package postgres

import (
	"encoding/binary"

	"github.com/quotabench/quotabench/internal/frames"
	"github.com/quotabench/quotabench/stores"
)

// newParser makes what counts SQL statements in what a PostgreSQL client writes: one for
// each Execute of the extended protocol and for each simple Query. Preparing a
// statement costs a round trip and is no statement. The first message starts the connection, and has no type byte.
func newParser() stores.Parser {
	started := false
	return &frames.Parser[stores.Parsed]{
		Header: make([]byte, 5), Have: 1,
		Rest: func(header []byte) (int, bool) {
			size := binary.BigEndian.Uint32(header[1:]) // counts itself
			return int(size) - 4, size >= 4 && size <= 1<<30
		},
		Count: func(header []byte, out *stores.Parsed) {
			if started {
				finish(header[0], out)
			} else {
				started = true
				out.Setup++
			}
		},
	}
}

// finish counts a message of a kind that is complete.
func finish(kind byte, out *stores.Parsed) {
	switch kind {
	case 'Q':
		out.Commands++
		out.Asks = true
	case 'E':
		out.Commands++
	case 'S', 'H', 'F': // sync, flush and function call are answered
		out.Asks = true
	case 'p': // a password
		out.Setup++
	}
}
