package fakeredis

import "strconv"

// ReplyKind is the kind of a [Reply].
type ReplyKind uint8

// The kinds.
const (
	Nil ReplyKind = iota
	Int
	Bulk
	Status
	Err
	Array
)

// Reply is what a command answers.
type Reply struct {
	Kind  ReplyKind
	Int   int64
	Text  string // of Bulk, Status and Err
	Array []Reply
}

func intReply(n int64) Reply { return Reply{Kind: Int, Int: n} }

func boolReply(b bool) Reply {
	if b {
		return intReply(1)
	}
	return intReply(0)
}
func bulk(s string) Reply   { return Reply{Kind: Bulk, Text: s} }
func status(s string) Reply { return Reply{Kind: Status, Text: s} }
func fault(s string) Reply  { return Reply{Kind: Err, Text: s} }

var (
	nilReply     = Reply{}
	emptyArray   = Reply{Kind: Array}
	okReply      = status("OK")
	wrongType    = fault("WRONGTYPE Operation against a key holding the wrong kind of value")
	notInteger   = fault("ERR value is not an integer or out of range")
	overflow     = fault("ERR increment or decrement would overflow")
	syntaxError  = fault("ERR syntax error")
	notAHashInt  = fault("ERR hash value is not an integer")
	decrOverflow = fault("ERR decrement would overflow")
)

// nullRESP2 is no value in RESP2.
const nullRESP2 = "$-1\r\n"

// appendTo writes the reply, with null for no value.
func (r Reply) appendTo(b []byte, null string) []byte {
	switch r.Kind {
	case Int:
		return append(strconv.AppendInt(append(b, ':'), r.Int, 10), '\r', '\n')
	case Status:
		return append(append(append(b, '+'), r.Text...), '\r', '\n')
	case Err:
		return append(append(append(b, '-'), r.Text...), '\r', '\n')
	case Bulk:
		b = append(strconv.AppendInt(append(b, '$'), int64(len(r.Text)), 10), '\r', '\n')
		return append(append(b, r.Text...), '\r', '\n')
	case Array:
		b = append(strconv.AppendInt(append(b, '*'), int64(len(r.Array)), 10), '\r', '\n')
		for _, x := range r.Array {
			b = x.appendTo(b, null)
		}
		return b
	default:
		return append(b, null...)
	}
}
