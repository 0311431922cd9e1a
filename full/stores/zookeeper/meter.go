package zookeeper

import (
	"encoding/binary"

	"github.com/quotabench/quotabench/internal/stores/frames"
	"github.com/quotabench/quotabench/stores"
)

// Kinds of requests that no work is done with.
const (
	opPing       = 11
	opAuth       = 100
	opSetWatches = 101
	opClose      = -11
)

// requestHeader is the length of what begins a request, in bytes: its length, its
// number, and its kind, four each.
const requestHeader = 12

// largest request that a client may write, in bytes.
const largest = 64 << 20

// newParser makes what counts requests in what a client of ZooKeeper writes. The first one of a
// connection asks for the session and has no kind.
func newParser() *frames.Parser[stores.Parsed] {
	connected := false
	return &frames.Parser[stores.Parsed]{
		Header: make([]byte, requestHeader),
		Rest: func(header []byte) (int, bool) {
			length := int(int32(binary.BigEndian.Uint32(header)))
			return length - (requestHeader - 4), length >= requestHeader-4 && length <= largest
		},
		Count: func(header []byte, out *stores.Parsed) {
			kind := int32(binary.BigEndian.Uint32(header[8:]))
			switch {
			case !connected, kind == opAuth, kind == opSetWatches:
				connected = true
				out.Setup++
			case kind != opPing && kind != opClose:
				out.Commands++
			}
		},
	}
}
