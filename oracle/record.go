package oracle

// record is a take as a history keeps it, in 32 bytes. Of a give-back, subject
// numbers the take that it is about; see [group].
type record struct {
	call, reply, units int64
	subject            uint32
	kind               Kind
	outcome            Outcome
	tier, instance     uint8
}

func pack(e *Event) record {
	return record{e.Call, e.Reply, e.Units, e.Subject, e.Kind, e.Outcome, e.Tier, e.Instance}
}

func (r *record) event() Event {
	return Event{
		Call: r.call, Reply: r.reply, Units: r.units, Subject: r.subject,
		Kind: r.kind, Outcome: r.outcome, Tier: r.tier, Instance: r.instance,
	}
}

// block is a full chunk of a worker, of one of the two kinds.
type block struct {
	takes []record
	gives []Event
}

func (b *block) len() int64 { return int64(len(b.takes) + len(b.gives)) }

// each visits the events of a block. The event is the visitor's until it returns.
func (b *block) each(visit func(*Event) error) error {
	var e Event
	for i := range b.takes {
		e = b.takes[i].event()
		if err := visit(&e); err != nil {
			return err
		}
	}
	for i := range b.gives {
		if err := visit(&b.gives[i]); err != nil {
			return err
		}
	}
	return nil
}
