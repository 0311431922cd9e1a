package nats

import (
	"bytes"
	"strconv"

	"github.com/quotabench/quotabench/stores"
)

// longest line that a client may write, in bytes.
const longestLine = 64 << 10

// parser counts messages in what a client of NATS writes: lines of text, of which
// those that publish are followed by a payload. What JetStream is asked for and
// what is acknowledged are messages too. Pings are not counted.
type parser struct {
	line []byte
	skip int // bytes of payload and line end still to come
}

// Parse reads the next piece of what the client writes.
func (r *parser) Parse(data []byte) (out stores.Parsed, ok bool) {
	for len(data) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(data))
			r.skip -= n
			data = data[n:]
			if r.skip == 0 {
				out.Commands++
			}
			continue
		}
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			r.line = append(r.line, data...)
			return out, len(r.line) <= longestLine
		}
		r.line = append(r.line, data[:end]...)
		data = data[end+1:]
		fields := bytes.Fields(r.line)
		r.line = r.line[:0]
		if len(fields) == 0 {
			return out, false
		}
		switch string(bytes.ToUpper(fields[0])) {
		case "PUB", "HPUB":
			n, err := strconv.Atoi(string(fields[len(fields)-1]))
			if err != nil || n < 0 || len(fields) < 3 {
				return out, false
			}
			r.skip = n + len("\r\n")
		case "CONNECT", "SUB", "UNSUB":
			out.Setup++
		case "PING", "PONG":
		default:
			return out, false
		}
	}
	return out, true
}
