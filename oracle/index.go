package oracle

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

const (
	// subjectLimit is the number of events of one subject that are judged of a
	// history that is not in memory as a whole.
	subjectLimit = 4 << 20
	// groupEvents are brought into memory at a time: 192 MiB.
	groupEvents = 6 << 20
	// judgeBytes are needed at most to judge one event in addition to those: 550 were
	// measured as the growth of the peak resident memory by 4 million events of one
	// subject under a rolling window, 281 under a tumbling one and 248 without one.
	judgeBytes = 550
)

var errChanged = errors.New("the history has changed since it was opened")

// index knows how many events each subject has, so that all of a group of
// subjects can be brought together in one pass over the events. Passes are many
// if a history is long, but there are neither temporary files nor a merge.
type index struct {
	each   func(extent, func(*Event) error) error
	blocks func() iter.Seq[block] // all events, if they are in memory
	perSubject
	order  []uint32       // subjects with high numbers
	place  map[uint32]int // their place after the dense ones
	total  int64
	until  int64 // last reply
	groups int64 // events in memory at a time, at least
	// scatter is a directory for temporary files of groups; "" reads all events for each.
	scatter string
	apart   scattered
}

func newIndex(each func(extent, func(*Event) error) error) (*index, error) {
	x := &index{each: each, groups: groupEvents}
	err := each(everySubject, func(event *Event) error {
		x.add(event)
		return nil
	})
	if err != nil {
		return nil, err
	}
	x.close()
	return x, nil
}

func (x *index) add(event *Event) {
	x.total++
	x.until = max(x.until, event.Reply)
	x.perSubject.add(event.Subject)
}

func (x *index) close() {
	x.order = slices.Sorted(maps.Keys(x.far))
	x.place = make(map[uint32]int, len(x.order))
	for i, s := range x.order {
		x.place[s] = len(x.dense) + i
	}
}

// subjects are numbered by place: without gaps, in order.
func (x *index) places() int { return len(x.dense) + len(x.order) }

func (x *index) subject(place int) uint32 {
	if place < len(x.dense) {
		return uint32(place)
	}
	return x.order[place-len(x.dense)]
}

func (x *index) events(place int) int64 {
	if place < len(x.dense) {
		return int64(x.dense[place])
	}
	return int64(x.far[x.order[place-len(x.dense)]])
}

// at is the place of a subject; behind all places, if it had no events.
func (x *index) at(subject uint32) int {
	if int(subject) < len(x.dense) {
		return int(subject)
	}
	if p, ok := x.place[subject]; ok {
		return p
	}
	return x.places()
}

// used is the number of subjects that have events.
func (x *index) used() (n int64) {
	for place := range x.places() {
		n += min(1, x.events(place))
	}
	return n
}

// check returns the number of events of the largest subject, and refuses what
// would not fit into memory.
func (x *index) check(limit int64) (most int64, err error) {
	const mib = 1 << 20
	for place := range x.places() {
		events := x.events(place)
		most = max(most, events)
		if events > limit {
			return most, fmt.Errorf("subject %d has %d events; one subject is judged in memory at up to %d bytes an event, "+
				"%d MiB for this one, and at most %d events (%d MiB) are allowed",
				x.subject(place), events, judgeBytes, events*judgeBytes/mib, limit, limit*judgeBytes/mib)
		}
	}
	return most, nil
}

// subjects yields each subject's events, ordered by call, until told to stop.
func (x *index) subjects(limit int64, yield func([]Event, error) bool) {
	most, err := x.check(limit)
	if err != nil {
		yield(nil, err)
		return
	}
	held := group{
		records: make([]compact, max(most, min(x.groups, x.total))),
		events:  make([]Event, 0, most),
	}
	begins := x.grouped()
	if len(begins) > 1 && x.scatter != "" {
		x.apart, err = x.scatterTo(begins)
		defer func() {
			_ = x.apart.close() // the files are temporary
			x.apart = nil
		}()
		if err != nil {
			yield(nil, fmt.Errorf("put a history in the order of its subjects: %w", err))
			return
		}
	}
	for i, first := range begins {
		last := x.places()
		if i+1 < len(begins) {
			last = begins[i+1]
		}
		held.number = i
		if err := held.gather(x, first, last); err != nil {
			yield(nil, err)
			return
		}
		for place := range last - first {
			events := held.take(x.subject(first+place), place)
			if len(events) > 0 && !yield(events, nil) {
				return
			}
		}
	}
}

// grouped are the places at which groups of subjects begin that are brought into memory at
// a time.
func (x *index) grouped() (begins []int) {
	held := int64(0) // events of the group at hand
	for place := range x.places() {
		events := x.events(place)
		if place == 0 || held > 0 && held+events > x.groups {
			begins = append(begins, place)
			held = 0
		}
		held += events
	}
	return begins
}

func (x *index) judge(cfg Config, limit int64, visit []Visitor) (Verdict, error) {
	j := newJudge(cfg, x.until)
	if !cfg.Brief {
		j.out.Windows = slices.Grow(j.out.Windows, int(x.used()))
	}
	var failed error
	x.subjects(limit, func(events []Event, err error) bool {
		failed = err
		if failed != nil {
			return false
		}
		if !cfg.about(events) {
			return true
		}
		j.subject(events)
		for _, see := range visit {
			failed = see(events)
			if failed != nil {
				return false
			}
		}
		return true
	})
	if failed != nil {
		return Verdict{}, failed
	}
	return j.finish(), nil
}

// group is the records that a pass has brought into memory: of neighbouring subjects,
// and of one subject next to each other. A record's subject is known by its place, so
// in a give-back the field numbers the take.
type group struct {
	number  int
	records []compact
	start   []int // of each subject's records, and the end of the last one's
	next    []int // where each subject's next record goes
	taken   []interval
	events  []Event
}

func (g *group) gather(idx *index, first, last int) error {
	g.start = append(g.start[:0], 0)
	g.taken = g.taken[:0]
	for place := first; place < last; place++ {
		g.start = append(g.start, g.start[place-first]+int(idx.events(place)))
	}
	g.next = append(g.next[:0], g.start[:last-first]...)
	if err := g.fill(idx, first, last); err != nil {
		return err
	}
	if !slices.Equal(g.next, g.start[1:]) {
		return errChanged
	}
	return nil
}

func (g *group) fill(idx *index, first, last int) error {
	if idx.apart != nil {
		return idx.apart[g.number].each(everySubject, func(event *Event) error { return g.add(idx, first, event) })
	}
	if idx.blocks == nil {
		return idx.each(extent{idx.subject(first), idx.subject(last - 1)}, func(event *Event) error {
			return g.add(idx, first, event)
		})
	}
	for block := range idx.blocks() {
		if err := g.addBlock(idx, first, &block); err != nil {
			return err
		}
	}
	return nil
}

// addBlock is add for all events of a block.
func (g *group) addBlock(idx *index, first int, b *block) error {
	next := g.next
	records := g.records
	for i := range b.takes {
		record := &b.takes[i]
		place := idx.at(record.subject) - first
		if uint(place) >= uint(len(next)) {
			continue
		}
		at := next[place]
		if at >= len(records) {
			return errChanged
		}
		records[at] = *record
		next[place] = at + 1
	}
	for i := range b.gives {
		if err := g.add(idx, first, &b.gives[i]); err != nil {
			return err
		}
	}
	return nil
}

// add puts an event where its subject's belong. Others' are passed over.
func (g *group) add(idx *index, first int, event *Event) error {
	place := idx.at(event.Subject) - first
	if uint(place) >= uint(len(g.next)) {
		return nil
	}
	at := g.next[place]
	if at >= len(g.records) {
		return errChanged
	}
	record := pack(event)
	if event.Kind != Take {
		record.subject = uint32(len(g.taken))
		g.taken = append(g.taken, interval{event.TakeCall, event.TakeReply})
	}
	g.records[at] = record
	g.next[place]++
	return nil
}

// take returns the events of the subject at a place of the group.
func (g *group) take(subject uint32, place int) []Event {
	g.events = g.events[:0]
	records := g.records[g.start[place]:g.start[place+1]]
	for i := range records {
		record := &records[i]
		event := record.event()
		if event.Kind != Take {
			event.TakeCall = g.taken[record.subject].call
			event.TakeReply = g.taken[record.subject].reply
		}
		event.Subject = subject
		g.events = append(g.events, event)
	}
	if !slices.IsSortedFunc(g.events, compare) {
		slices.SortFunc(g.events, compare)
	}
	return g.events
}

// denseSubjects are counted by number, all others by name of their number.
const denseSubjects = 1 << 22

// perSubject counts events by subject.
type perSubject struct {
	dense []uint32          // by number
	far   map[uint32]uint32 // of subjects with high numbers
}

// add counts one more event of a subject, and returns how many that makes.
func (c *perSubject) add(subject uint32) uint32 { return c.addAll(subject, 1) }

// addAll is add for n events.
func (c *perSubject) addAll(subject, n uint32) uint32 {
	if subject >= denseSubjects {
		if c.far == nil {
			c.far = map[uint32]uint32{}
		}
		c.far[subject] += n
		return c.far[subject]
	}
	for int(subject) >= len(c.dense) {
		c.dense = append(c.dense, 0)
	}
	c.dense[subject] += n
	return c.dense[subject]
}
