package zookeeper

import (
	"encoding/binary"

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

// parser counts requests in what a client of ZooKeeper writes. The first one of a
// connection asks for the session and has no kind.
type parser struct {
	header    [requestHeader]byte
	got       int // bytes of the header that were seen
	skip      int // bytes of the request still to come
	connected bool
}

// Parse reads the next piece of what the client writes.
func (r *parser) Parse(p []byte) (out stores.Parsed, ok bool) {
	for len(p) > 0 {
		if r.got < requestHeader {
			n := copy(r.header[r.got:], p)
			r.got += n
			p = p[n:]
			if r.got < requestHeader {
				break
			}
			length := int(int32(binary.BigEndian.Uint32(r.header[:4])))
			if length < requestHeader-4 || length > largest {
				return out, false
			}
			r.skip = length - (requestHeader - 4)
		}
		n := min(r.skip, len(p))
		r.skip -= n
		p = p[n:]
		if r.skip == 0 {
			r.count(&out)
			r.got = 0
		}
	}
	return out, true
}

// count is called at the end of a request.
func (r *parser) count(out *stores.Parsed) {
	if !r.connected {
		r.connected = true
		out.Setup++
		return
	}
	switch int32(binary.BigEndian.Uint32(r.header[8:])) {
	case opPing, opClose:
	case opAuth, opSetWatches:
		out.Setup++
	default:
		out.Commands++
	}
}
