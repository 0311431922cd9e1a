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
func bulk(text string) Reply   { return Reply{Kind: Bulk, Text: text} }
func status(text string) Reply { return Reply{Kind: Status, Text: text} }
func fault(text string) Reply  { return Reply{Kind: Err, Text: text} }

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
func (r Reply) appendTo(data []byte, null string) []byte {
	switch r.Kind {
	case Int:
		return append(strconv.AppendInt(append(data, ':'), r.Int, 10), '\r', '\n')
	case Status:
		return append(append(append(data, '+'), r.Text...), '\r', '\n')
	case Err:
		return append(append(append(data, '-'), r.Text...), '\r', '\n')
	case Bulk:
		data = append(strconv.AppendInt(append(data, '$'), int64(len(r.Text)), 10), '\r', '\n')
		return append(append(data, r.Text...), '\r', '\n')
	case Array:
		data = append(strconv.AppendInt(append(data, '*'), int64(len(r.Array)), 10), '\r', '\n')
		for _, reply := range r.Array {
			data = reply.appendTo(data, null)
		}
		return data
	default:
		return append(data, null...)
	}
}
