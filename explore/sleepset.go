package explore

import (
	"slices"

	"github.com/quotabench/quotabench/explore/internal/engine"
)

// sleepSets know which steps need not be tried, as sleep sets do (Godefroid). If two steps
// of a state are apart, one after the other they lead to one state in either order. Of the
// two orders that come to it the later one is left out: its last step is asleep.
//
// Sleep sets pass on what was tried before, and have to open a state again that is met
// once more with fewer steps asleep. Here a step is asleep only if it is known which
// step of a state of the same depth, that is tried before it or is asleep itself, leads to
// the same state. So each state that is met, by which step it is met first, and whatever
// is found is as if all steps were tried, also if some steps of a state are left out
// because another client could take them.
type sleepSets struct {
	// feet are the footprints met so far, and numbers their places in there.
	feet    []engine.Footprint
	numbers map[engine.Footprint]uint32
	// rows are where the steps of the states of this depth lead to.
	rows [][]reached
	// met are the places of open states among those of the next depth.
	met map[engine.Digest]int32
	// held are the bytes of the rows and of met.
	held int64
}

// reached is what is known of a step.
type reached struct {
	to   int32  // place of the state among those of the next depth, -1 for any other
	foot uint32 // number of the footprint
}

// asleep says of a step which other one stands for it.
type asleep struct {
	of     int32  // place of its state among those of the same depth, -1 if none stands for it
	number uint32 // of the step among those of that state
	foot   uint32
}

// What is held in memory, in bytes: of a step of a row, of a row itself, of a step's list
// of who stands for it, and of a footprint with its number.
const rowBytes, listBytes, asleepBytes, footBytes = 8, 24, 12, 128

// newSleepSets is nil if the engine does not tell footprints, or is not to.
func (w *stateSearch) newSleepSets() *sleepSets {
	brancher, ok := w.Engine.(engine.Brancher)
	if !ok {
		return nil
	}
	w.traced = !w.cfg.everyOrder && !w.counts
	brancher.Trace(w.traced)
	if !w.traced {
		return nil
	}
	return &sleepSets{numbers: map[engine.Footprint]uint32{}}
}

// nextDepth begins the next depth, of so many states.
func (s *sleepSets) nextDepth(g *graph, states int) {
	g.held -= s.held
	s.held = 0
	s.rows = make([][]reached, states)
	s.met = map[engine.Digest]int32{}
	s.holds(g, listBytes*int64(states))
}

// awake reports whether a step has to be tried.
func (o *open) awake(step int) bool { return o.asleep == nil || o.asleep[step].of < 0 }

// asleepBefore is how many steps are asleep before one.
func (o *open) asleepBefore(step int) (n int64) {
	for i := range step {
		if !o.awake(i) {
			n++
		}
	}
	return n
}

// learn notes what a step has led to. opened is set if that is a new state which is
// open, and at its place then.
func (s *sleepSets) learn(g *graph, e *edge, at int32, opened bool) {
	to := at
	if opened {
		s.met[e.hash] = at
		s.holds(g, stateBytes)
	} else if old, ok := s.met[e.hash]; ok {
		to = old
	} else {
		to = -1
	}
	n, ok := s.numbers[e.foot]
	if !ok {
		n = uint32(len(s.feet))
		s.feet = append(s.feet, e.foot)
		s.numbers[e.foot] = n
		g.held += footBytes
	}
	s.row(g, e.at, e.open)[e.number] = reached{to, n}
}

func (s *sleepSets) holds(g *graph, bytes int64) {
	s.held = s.held + bytes
	g.held = g.held + bytes
}

// row is where the steps of the state at a place lead to.
func (s *sleepSets) row(g *graph, at int, o *open) []reached {
	if s.rows[at] == nil {
		s.rows[at] = make([]reached, len(o.next))
		s.holds(g, rowBytes*int64(len(o.next)))
	}
	return s.rows[at]
}

// propagate is called once all steps of a state that are not asleep have been tried. It
// returns how many are, and puts steps of the states to which they lead to sleep.
func (s *sleepSets) propagate(g *graph, at int, o *open, next []open) (left int64) {
	row := s.row(g, at, o)
	for i := range o.asleep {
		if asleep := &o.asleep[i]; asleep.of >= 0 {
			row[i] = reached{s.rows[asleep.of][asleep.number].to, asleep.foot}
			left++
		}
	}
	for j := range row {
		for i := range j {
			reached := row[i]
			b := row[j]
			if reached.to < 0 || b.to < 0 || !s.feet[reached.foot].Apart(&s.feet[b.foot]) {
				continue
			}
			s.putToSleep(g, next, taken{o.next[i], reached}, taken{o.next[j], b})
		}
	}
	return left
}

// taken is a step, and what it led to.
type taken struct {
	step uint32
	reached
}

// putToSleep puts the last step of the later of two orders to sleep: of step a and then b, and
// of b and then a.
func (s *sleepSets) putToSleep(g *graph, next []open, a, b taken) {
	// In the first order b comes last, in the second one a.
	first := a.to
	second := b.to
	foot := a.foot
	one := slices.Index(next[first].next, b.step)
	other := slices.Index(next[second].next, a.step)
	if one < 0 || other < 0 {
		return // it is left out for another reason, and none stands for the other one
	}
	if second < first || second == first && other < one {
		first, second = second, first
		one, other = other, one
		foot = b.foot
	}
	later := &next[second]
	if !later.awake(other) || later.paused < next[first].paused { // a schedule that holds calls up less counts
		return
	}
	if later.asleep == nil {
		g.held -= later.bytes()
		later.asleep = make([]asleep, len(later.next))
		for i := range later.asleep {
			later.asleep[i].of = -1
		}
		g.held += later.bytes()
	}
	later.asleep[other] = asleep{first, uint32(one), foot}
}
