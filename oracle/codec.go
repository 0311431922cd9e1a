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

func (c *codec) append(data []byte, event *Event) []byte {
	head := byte(event.Kind&3) | byte(event.Outcome&3)<<2
	raw := event.Kind >= kinds || event.Outcome > 3
	if raw {
		head |= bitRaw
	}
	if event.Units == 1 {
		head |= bitUnit
	}
	same := event.Tier == c.tier && event.Instance == c.instance
	if same {
		head |= bitSame
	}
	if event.Subject == c.subject {
		head |= bitSubject
	}
	data = append(data, head)
	if raw {
		data = append(data, byte(event.Kind), byte(event.Outcome))
	}
	data = binary.AppendVarint(data, event.Call-c.call)
	data = binary.AppendVarint(data, event.Reply-event.Call)
	if event.Subject != c.subject {
		data = binary.AppendVarint(data, int64(event.Subject)-int64(c.subject))
	}
	if event.Units != 1 {
		data = binary.AppendVarint(data, event.Units)
	}
	if !same {
		data = append(data, event.Tier, event.Instance)
	}
	if event.Kind != Take {
		data = binary.AppendVarint(data, event.Call-event.TakeCall)
		data = binary.AppendVarint(data, event.TakeReply-event.TakeCall)
	}
	*c = codec{call: event.Call, subject: event.Subject, tier: event.Tier, instance: event.Instance}
	return data
}

// cut reads an event and returns what follows it, or nil if there is none.
func (c *codec) cut(data []byte, event *Event) []byte {
	head := data[0]
	data = data[1:]
	*event = Event{Kind: Kind(head & 3), Outcome: Outcome(head >> 2 & 3), Units: 1, Subject: c.subject, Tier: c.tier,
		Instance: c.instance}
	ok := true
	pair := func() (first, second byte) {
		if len(data) < 2 {
			ok = false
			return 0, 0
		}
		first = data[0]
		second = data[1]
		data = data[2:]
		return first, second
	}
	number := func() int64 {
		v, n := binary.Varint(data)
		if n <= 0 {
			ok = false
			return 0
		}
		data = data[n:]
		return v
	}
	if head&bitRaw != 0 {
		kind, outcome := pair()
		event.Kind = Kind(kind)
		event.Outcome = Outcome(outcome)
	}
	event.Call = c.call + number()
	event.Reply = event.Call + number()
	if head&bitSubject == 0 {
		s := int64(c.subject) + number()
		event.Subject = uint32(s)
		ok = ok && s == int64(event.Subject)
	}
	if head&bitUnit == 0 {
		event.Units = number()
	}
	if head&bitSame == 0 {
		event.Tier, event.Instance = pair()
	}
	if event.Kind != Take {
		event.TakeCall = event.Call - number()
		event.TakeReply = event.TakeCall + number()
	}
	if !ok {
		return nil
	}
	*c = codec{call: event.Call, subject: event.Subject, tier: event.Tier, instance: event.Instance}
	return data
}

// extent is what a frame of events begins with: the subjects that it is about, so
// that frames about others can be passed over.
type extent struct{ low, high uint32 }

var everySubject = extent{0, math.MaxUint32}

func (x extent) append(data []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(data, uint64(x.low)), uint64(x.high-x.low))
}

func (x *extent) widen(s uint32) {
	x.low = min(x.low, s)
	x.high = max(x.high, s)
}

// cutExtent returns what follows the extent.
func cutExtent(data []byte) (x extent, rest []byte, err error) {
	low, n := binary.Uvarint(data)
	more, m := binary.Uvarint(data[max(n, 0):])
	if m <= 0 || low > math.MaxUint32 || more > math.MaxUint32-low {
		return x, nil, errEvents
	}
	return extent{uint32(low), uint32(low + more)}, data[n+m:], nil
}

// decodeEvents visits the events of a frame, unless none is about the subjects
// wanted.
func decodeEvents(data []byte, want extent, visit func(*Event) error) error {
	x, data, err := cutExtent(data)
	if err != nil || x.low > want.high || x.high < want.low {
		return err
	}
	var c codec
	var event Event
	for len(data) > 0 {
		data = c.cut(data, &event)
		if data == nil || event.Subject < x.low || event.Subject > x.high {
			return errEvents
		}
		if err := visit(&event); err != nil {
			return err
		}
	}
	return nil
}
