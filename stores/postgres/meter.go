package postgres

import (
	"encoding/binary"

	"github.com/quotabench/quotabench/stores"
)

// pgParser counts SQL statements in what a PostgreSQL client writes: one for
// each Execute of the extended protocol and for each simple Query. Preparing a
// statement costs a round trip and is no statement.
type pgParser struct {
	started bool // past the start-up message, which has no type byte
	head    [5]byte
	have    int    // bytes of head
	skip    uint32 // bytes of the body still to come
}

// Parse reads the next piece of what the client writes.
func (g *pgParser) Parse(p []byte) (out stores.Parsed, ok bool) {
	for len(p) > 0 {
		if g.skip > 0 {
			n := min(int(g.skip), len(p))
			p = p[n:]
			g.skip -= uint32(n)
			if g.skip == 0 {
				g.finish(&out)
			}
			continue
		}
		if !g.started && g.have == 0 {
			g.have = 1 // leave the type byte at 0
		}
		n := copy(g.head[g.have:], p)
		g.have += n
		p = p[n:]
		if g.have < len(g.head) {
			continue
		}
		size := binary.BigEndian.Uint32(g.head[1:]) // counts itself
		if size < 4 || size > 1<<30 {
			return out, false
		}
		if g.skip = size - 4; g.skip == 0 {
			g.finish(&out)
		}
	}
	return out, true
}

// finish counts a message that is complete.
func (g *pgParser) finish(out *stores.Parsed) {
	kind := g.head[0]
	g.have = 0
	if !g.started {
		g.started = true
		out.Setup++
		return
	}
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
