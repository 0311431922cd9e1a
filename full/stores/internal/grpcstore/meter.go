package grpcstore

import (
	"bytes"

	"github.com/quotabench/quotabench/stores"
)

// preface begins every connection of HTTP/2.
var preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// frameHeader is the length of a frame's header, in bytes: three of length, one of
// type, one of flags, four of stream.
const frameHeader = 9

// headersFrame is the type of the frame that opens a stream, of which every call
// of gRPC has one.
const headersFrame = 1

// NewParser makes what follows a connection's traffic. Encrypted traffic cannot be
// followed.
func NewParser(encrypted bool) stores.Parser {
	if encrypted {
		return sealed{}
	}
	return &http2Parser{}
}

type sealed struct{}

// Parse gives up at once.
func (sealed) Parse([]byte) (stores.Parsed, bool) { return stores.Parsed{}, false }

// http2Parser counts calls in what a client of gRPC writes. Settings, pings and
// flow control are not answered by work, and are not counted.
type http2Parser struct {
	greeted int // bytes of the preface that were seen
	header  [frameHeader]byte
	got     int // bytes of the header that were seen
	skip    int // bytes of the payload still to come
}

// Parse reads the next piece of what the client writes.
func (h *http2Parser) Parse(p []byte) (out stores.Parsed, ok bool) {
	if h.greeted < len(preface) {
		n := min(len(preface)-h.greeted, len(p))
		if !bytes.Equal(p[:n], preface[h.greeted:h.greeted+n]) {
			return out, false
		}
		h.greeted += n
		p = p[n:]
	}
	for len(p) > 0 {
		if h.got < frameHeader {
			n := copy(h.header[h.got:], p)
			h.got += n
			p = p[n:]
			if h.got < frameHeader {
				break
			}
			h.skip = int(h.header[0])<<16 | int(h.header[1])<<8 | int(h.header[2])
		}
		n := min(h.skip, len(p))
		h.skip -= n
		p = p[n:]
		if h.skip == 0 {
			if h.header[3] == headersFrame {
				out.Commands++
			}
			h.got = 0
		}
	}
	return out, true
}
