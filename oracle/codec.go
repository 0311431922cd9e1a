package oracle

import (
	"encoding/binary"
	"errors"
	"math"
)

// Bits of the byte that begins an event.
const (
	bitUnit    = 1 << 4 // one unit
	bitSame    = 1 << 5 // tier and instance of the event before
	bitSubject = 1 << 6 // subject of the event before
	bitRaw     = 1 << 7 // kind and outcome in bytes of their own
)

var errEvents = errors.New("an event is cut off or has no valid form")

// codec writes and reads events as differences to the event before.
type codec struct {
	call           int64
	subject        uint32
	tier, instance uint8
}

func (c *codec) append(b []byte, e *Event) []byte {
	head := byte(e.Kind&3) | byte(e.Outcome&3)<<2
	raw := e.Kind >= kinds || e.Outcome > 3
	if raw {
		head |= bitRaw
	}
	if e.Units == 1 {
		head |= bitUnit
	}
	same := e.Tier == c.tier && e.Instance == c.instance
	if same {
		head |= bitSame
	}
	if e.Subject == c.subject {
		head |= bitSubject
	}
	b = append(b, head)
	if raw {
		b = append(b, byte(e.Kind), byte(e.Outcome))
	}
	b = binary.AppendVarint(b, e.Call-c.call)
	b = binary.AppendVarint(b, e.Reply-e.Call)
	if e.Subject != c.subject {
		b = binary.AppendVarint(b, int64(e.Subject)-int64(c.subject))
	}
	if e.Units != 1 {
		b = binary.AppendVarint(b, e.Units)
	}
	if !same {
		b = append(b, e.Tier, e.Instance)
	}
	if e.Kind != Take {
		b = binary.AppendVarint(b, e.Call-e.TakeCall)
		b = binary.AppendVarint(b, e.TakeReply-e.TakeCall)
	}
	*c = codec{call: e.Call, subject: e.Subject, tier: e.Tier, instance: e.Instance}
	return b
}

// cut reads an event and returns what follows it, or nil if there is none.
func (c *codec) cut(b []byte, e *Event) []byte {
	head := b[0]
	b = b[1:]
	*e = Event{Kind: Kind(head & 3), Outcome: Outcome(head >> 2 & 3), Units: 1, Subject: c.subject, Tier: c.tier, Instance: c.instance}
	ok := true
	pair := func() (first, second byte) {
		if len(b) < 2 {
			ok = false
			return 0, 0
		}
		first = b[0]
		second = b[1]
		b = b[2:]
		return first, second
	}
	number := func() int64 {
		v, n := binary.Varint(b)
		if n <= 0 {
			ok = false
			return 0
		}
		b = b[n:]
		return v
	}
	if head&bitRaw != 0 {
		kind, outcome := pair()
		e.Kind = Kind(kind)
		e.Outcome = Outcome(outcome)
	}
	e.Call = c.call + number()
	e.Reply = e.Call + number()
	if head&bitSubject == 0 {
		s := int64(c.subject) + number()
		e.Subject = uint32(s)
		ok = ok && s == int64(e.Subject)
	}
	if head&bitUnit == 0 {
		e.Units = number()
	}
	if head&bitSame == 0 {
		e.Tier, e.Instance = pair()
	}
	if e.Kind != Take {
		e.TakeCall = e.Call - number()
		e.TakeReply = e.TakeCall + number()
	}
	if !ok {
		return nil
	}
	*c = codec{call: e.Call, subject: e.Subject, tier: e.Tier, instance: e.Instance}
	return b
}

// extent is what a frame of events begins with: the subjects that it is about, so
// that frames about others can be passed over.
type extent struct{ low, high uint32 }

var everySubject = extent{0, math.MaxUint32}

func (x extent) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(x.low)), uint64(x.high-x.low))
}

func (x *extent) widen(s uint32) {
	x.low = min(x.low, s)
	x.high = max(x.high, s)
}

// cutExtent returns what follows the extent.
func cutExtent(b []byte) (x extent, rest []byte, err error) {
	low, n := binary.Uvarint(b)
	more, m := binary.Uvarint(b[max(n, 0):])
	if m <= 0 || low > math.MaxUint32 || more > math.MaxUint32-low {
		return x, nil, errEvents
	}
	return extent{uint32(low), uint32(low + more)}, b[n+m:], nil
}

// decodeEvents visits the events of a frame, unless none is about the subjects
// wanted.
func decodeEvents(b []byte, want extent, visit func(*Event) error) error {
	x, b, err := cutExtent(b)
	if err != nil || x.low > want.high || x.high < want.low {
		return err
	}
	var c codec
	var e Event
	for len(b) > 0 {
		b = c.cut(b, &e)
		if b == nil || e.Subject < x.low || e.Subject > x.high {
			return errEvents
		}
		if err := visit(&e); err != nil {
			return err
		}
	}
	return nil
}
