package httpstore

import (
	"bytes"

	"github.com/quotabench/quotabench/stores"
)

// end of a request without a body.
var end = []byte("\r\n\r\n")

// parser counts the requests in what a client of HTTP/1.1 writes. None has a body.
type parser struct {
	matched int // bytes of end that were seen last
}

// Parse implements [stores.Parser].
func (p *parser) Parse(b []byte) (out stores.Parsed, ok bool) {
	for _, c := range b {
		switch c {
		case end[p.matched]:
			p.matched++
		case end[0]:
			p.matched = 1
		default:
			p.matched = 0
		}
		if p.matched == len(end) {
			out.Commands++
			p.matched = 0
		}
	}
	return out, !bytes.HasPrefix(b, preface)
}

// preface begins a connection of HTTP/2, which this parser does not read.
var preface = []byte("PRI * HTTP/2.0")

// sealed is a connection whose traffic is encrypted.
type sealed struct{}

// Parse gives up at once.
func (sealed) Parse([]byte) (stores.Parsed, bool) { return stores.Parsed{}, false }
