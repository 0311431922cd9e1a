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

// cut reads an event and returns the data behind it, or nil if the event has no valid
// form.
func (c *codec) cut(data []byte, event *Event) []byte {
	head := data[0]
	in := fields{data: data[1:]}
	*event = Event{
		Kind: Kind(head & 3), Outcome: Outcome(head >> 2 & 3),
		Units: 1, Subject: c.subject, Tier: c.tier, Instance: c.instance,
	}
	if head&bitRaw != 0 {
		kind, outcome := in.pair()
		event.Kind = Kind(kind)
		event.Outcome = Outcome(outcome)
	}
	event.Call = c.call + in.number()
	event.Reply = event.Call + in.number()
	if head&bitSubject == 0 {
		event.Subject = in.subject(c.subject)
	}
	if head&bitUnit == 0 {
		event.Units = in.number()
	}
	if head&bitSame == 0 {
		event.Tier, event.Instance = in.pair()
	}
	if event.Kind != Take {
		event.TakeCall = event.Call - in.number()
		event.TakeReply = event.TakeCall + in.number()
	}
	if in.invalid {
		return nil
	}
	*c = codec{call: event.Call, subject: event.Subject, tier: event.Tier, instance: event.Instance}
	return in.data
}

// fields reads the fields of an event. What it reads is 0 if a field is invalid.
type fields struct {
	data    []byte
	invalid bool // some field was
}

// pair reads two bytes.
func (f *fields) pair() (first, second byte) {
	if len(f.data) < 2 {
		f.invalid = true
		return 0, 0
	}
	first = f.data[0]
	second = f.data[1]
	f.data = f.data[2:]
	return first, second
}

// number reads a signed variable-length integer.
func (f *fields) number() int64 {
	value, size := binary.Varint(f.data)
	if size <= 0 {
		f.invalid = true
		return 0
	}
	f.data = f.data[size:]
	return value
}

// subject reads a subject as the difference to the one before.
func (f *fields) subject(before uint32) uint32 {
	number := int64(before) + f.number()
	subject := uint32(number)
	if number != int64(subject) {
		f.invalid = true
	}
	return subject
}

// extent is the subjects of a frame of events, by the lowest and the highest number. A
// frame begins with it, so that frames of other subjects can be passed over.
type extent struct{ low, high uint32 }

var everySubject = extent{0, math.MaxUint32}

func (x extent) append(data []byte) []byte {
	data = binary.AppendUvarint(data, uint64(x.low))
	return binary.AppendUvarint(data, uint64(x.high-x.low))
}

func (x *extent) widen(subject uint32) {
	x.low = min(x.low, subject)
	x.high = max(x.high, subject)
}

func (x extent) overlaps(other extent) bool { return x.low <= other.high && x.high >= other.low }

func (x extent) contains(subject uint32) bool { return x.low <= subject && subject <= x.high }

// cutExtent reads an extent and returns the data behind it.
func cutExtent(data []byte) (x extent, rest []byte, err error) {
	low, lowSize := binary.Uvarint(data)
	rest = data[max(lowSize, 0):]
	more, moreSize := binary.Uvarint(rest) // it has no size either if low has none
	if moreSize <= 0 || low > math.MaxUint32 || more > math.MaxUint32-low {
		return x, nil, errEvents
	}
	return extent{uint32(low), uint32(low + more)}, rest[moreSize:], nil
}

// decodeEvents visits the events of a frame, unless none is of the subjects wanted.
func decodeEvents(data []byte, want extent, visit func(*Event) error) error {
	frame, data, err := cutExtent(data)
	if err != nil || !frame.overlaps(want) {
		return err
	}
	var c codec
	var event Event
	for len(data) > 0 {
		data = c.cut(data, &event)
		if data == nil || !frame.contains(event.Subject) {
			return errEvents
		}
		if err := visit(&event); err != nil {
			return err
		}
	}
	return nil
}
