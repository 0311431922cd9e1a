package redis

import "github.com/quotabench/quotabench/stores"

// respParser counts Redis commands in what a client writes: arrays of bulk
// strings. It steps over payloads without looking at them, but for the first
// few bytes of a command's name.
type respParser struct {
	state respState
	num   int64 // being read
	args  int64 // of this command still to come
	skip  int64 // bytes of payload and line end still to come
	digit bool  // num has at least one
	first bool  // the next payload is the command's name
	name  [8]byte
	len   int
}

type respState uint8

const (
	respStart   respState = iota // at '*'
	respCount                    // in the number of arguments
	respCountNL                  // at the line feed after it
	respBulk                     // at '$'
	respLen                      // in an argument's length
	respLenNL                    // at the line feed after it
	respPayload                  // in an argument
)

// respSetup are the commands with which a client makes a connection ready, or finds
// out if servers are. No strategy has a use for them.
func respSetup(name []byte) bool {
	switch string(name) { // does not allocate
	case "hello", "auth", "select", "client", "cluster", "command", "readonly", "sentinel":
		return true
	}
	return false
}

// Parse reads the next piece of what the client writes.
func (r *respParser) Parse(p []byte) (out stores.Parsed, ok bool) {
	for i := 0; i < len(p); {
		b := p[i]
		switch r.state {
		case respStart, respBulk:
			want := byte('*')
			if r.state == respBulk {
				want = '$'
			}
			if b != want {
				return out, false
			}
			r.num, r.digit = 0, false
			r.state++
			i++
		case respCount, respLen:
			i++
			if b == '\r' && r.digit {
				r.state++
				continue
			}
			// 512 MB is Redis' own limit for both.
			if b < '0' || b > '9' || r.num > 512<<20 {
				return out, false
			}
			r.num, r.digit = r.num*10+int64(b-'0'), true
		case respCountNL, respLenNL:
			if b != '\n' {
				return out, false
			}
			i++
			if r.state == respCountNL {
				r.args, r.first, r.len = r.num, true, 0
				r.state = respBulk
				if r.args == 0 { // an empty command is answered by nothing
					r.state = respStart
				}
				continue
			}
			r.skip = r.num + 2
			r.state = respPayload
		case respPayload:
			n := min(r.skip, int64(len(p)-i))
			if r.first {
				r.keepName(p[i : i+int(n)])
			}
			i += int(n)
			r.skip -= n
			if r.skip > 0 {
				continue
			}
			r.first = false
			r.args--
			r.state = respBulk
			if r.args == 0 {
				r.state = respStart
				if respSetup(r.name[:r.len]) {
					out.Setup++
				} else {
					out.Commands++
				}
			}
		}
	}
	return out, true
}

// keepName collects the first bytes of a command's name in lower case. skip is
// what was left of the payload, its line end included, before p.
func (r *respParser) keepName(p []byte) {
	n := min(int(r.skip)-2, len(p))
	for _, b := range p[:max(n, 0)] {
		if r.len == len(r.name) {
			return
		}
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		r.name[r.len] = b
		r.len++
	}
}
