package grpcstore

import (
	"bytes"

	"github.com/quotabench/quotabench/internal/stores/frames"
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
	return newHTTP2Parser()
}

type sealed struct{}

// Parse gives up at once.
func (sealed) Parse([]byte) (stores.Parsed, bool) { return stores.Parsed{}, false }

// http2Parser counts calls in what a client of gRPC writes. Settings, pings and
// flow control are not answered by work, and are not counted.
type http2Parser struct {
	frames.Parser[stores.Parsed]
	greeted int // bytes of the preface that were seen
}

func newHTTP2Parser() *http2Parser {
	return &http2Parser{Parser: frames.Parser[stores.Parsed]{
		Header: make([]byte, frameHeader),
		Rest:   func(header []byte) (int, bool) { return int(header[0])<<16 | int(header[1])<<8 | int(header[2]), true },
		Count: func(header []byte, out *stores.Parsed) {
			if header[3] == headersFrame {
				out.Commands++
			}
		},
	}}
}

// Parse reads the next piece of what the client writes.
func (h *http2Parser) Parse(data []byte) (out stores.Parsed, ok bool) {
	n := min(len(preface)-h.greeted, len(data))
	if !bytes.Equal(data[:n], preface[h.greeted:h.greeted+n]) {
		return out, false
	}
	h.greeted += n
	return h.Parser.Parse(data[n:])
}
