package oracle

import (
	"maps"
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Config says what a history is judged against. The window need not be the one
// that the strategy enforced: a fixed window can be judged as a rolling one.
type Config struct {
	Window quota.Window
	// Limit in units, per subject and window; at least 0. It is the one before the
	// first change.
	Limit int64
	// Changes of the limit for all subjects, ordered by From and not overlapping: the
	// next may begin where the last one ends. nil means that the limit stays. The size
	// of a bucket cannot change: files and [History.Judge] refuse such changes, and
	// [Judge] must not be given any.
	Changes []LimitChange
	// Initial is what a subject had in use at the epoch, in units; it belongs to
	// the window that contains the epoch. nil means none.
	Initial func(subject uint32) int64
	// Epoch is the moment of nanosecond 0.
	Epoch time.Time
	// Brief leaves the verdict's Windows empty: they take 104 bytes for each
	// subject-window, which for a long history is more than all the rest.
	Brief bool
	// From and Below bound the numbers of the subjects that are judged; others are left
	// out, such as those of another policy. A Below of 0 is no bound.
	From, Below uint32
	// Span is the length of time of the verdict's MaxSpan; 0 leaves that out.
	Span time.Duration
	// Rejected is told of each rejection whether this quota had room for it all the time, and at some moment, and returns
	// which of the two is to count. It is asked about rejections by another quota ([Elsewhere]), too: one that both could
	// have made is no false reject if only one of them was full. nil judges the rejections of this quota alone.
	Rejected func(event *Event, always, once bool) (wrong, possiblyWrong bool)
}

// about reports whether the subject of these events is judged.
func (c *Config) about(events []Event) bool {
	n := events[0].Subject
	return n >= c.From && (c.Below == 0 || n < c.Below)
}

// amount is a number of requests and the sum of their units.
type amount struct {
	Requests, Units int64
}

func (c *amount) add(units int64) {
	c.Requests++
	c.Units += units
}

// Verdict is the judgement of one history. A subject-window is one window of one
// subject; under standing and rolling policies every subject has exactly one,
// with index 0.
type Verdict struct {
	// Issued is the sum of the three others.
	Issued, Admitted, Rejected, Failed amount
	// Malformed events were left out: their reply precedes their call, or a field
	// has no valid value. More than 0 is a bug of the recorder.
	Malformed int64

	// LeakUnits is the certain leak, LeakPossible a bound above what any order of
	// the operations explains. Under a rolling policy the certain leak is a lower
	// bound of the fewest units that would have to go, and equal to that if requests of
	// one unit come strictly one after the other. If the limit is lowered,
	// units that were rightly in use before do not leak.
	LeakUnits, LeakPossible int64
	// LeakWorst and LeakPossibleWorst are those of a single subject-window.
	LeakWorst, LeakPossibleWorst int64
	// LeakedRequests are the admitted requests that the leaked units belong to,
	// when those answered last count as the leaking ones.
	LeakedRequests int64
	// LeakTiers are the leaked units by the number of the tier that admitted them. Of a
	// request that leaked in part, the part counts.
	LeakTiers    map[uint8]int64
	LeakSubjects int64

	// Crossings counts subject-windows in which more units than the limit were
	// answered, the initial ones included; under a rolling policy the disjoint
	// stretches of one window's length. If the limit changes, it is the one under
	// which the last of them were asked for. LeakWindows are those of them that
	// certainly leaked, never more.
	Crossings, LeakWindows int64
	// CrossingLeaks is the certain leak of each crossing, by subject and window.
	// Under a rolling policy a subject's stretches that leaked come first.
	CrossingLeaks []int64
	// OverOffered is the units asked for over the limit. If units were given back, it is
	// the units that leaked or were rightly rejected.
	OverOffered int64

	// FalseRejects are rejections although there was room: certainly, at every
	// moment of the request and in each window that it touched, under the lowest
	// limit that can have been in force while it was under way; possibly, at some
	// moment under the highest.
	FalseRejects, FalseRejectsPossible         int64
	FalseRejectUnits, FalseRejectUnitsPossible int64
	// FalseRejectWorst and FalseRejectPossibleWorst are units of the worst
	// subject-window.
	FalseRejectWorst, FalseRejectPossibleWorst int64
	// LongestWrong is the longest time, in nanoseconds, in which a tier of an instance gave one subject nothing but
	// certain false rejects, and LongestTier is its number.
	LongestWrong int64
	LongestTier  uint8
	// NeverGiven is refused units that fitted next to all admitted units for certain.
	// Under a tumbling policy they are units that were free when their window ended or,
	// if its limit changed, units with room under the limits of their time. Under a
	// rolling policy they had room in every window that they could lie in. Room counts
	// once, however often it was asked for. It is 0 for other windows.
	NeverGiven int64

	Linear   Linear
	Standing standing
	// Overrun is what commits used beyond their reservations, in units.
	Overrun int64

	// MaxDeciding is the most requests of one subject that were being decided at once, and
	// MaxInFlight the most with those whose work was under way: admitted, and neither committed
	// nor given back, if they are settled at all. MaxCost is the units of the largest request,
	// MaxOffered the most units asked of one subject in one window.
	MaxDeciding, MaxInFlight, MaxCost, MaxOffered int64
	// MaxSpan is the most units that one subject's requests were admitted that overlap any
	// length of time of [Config].Span and its longest request.
	MaxSpan int64

	// Touched says which windows requests touched.
	Touched touched
	// Windows holds every subject-window that a request touched, by subject and
	// window. Of windows that requests only passed through, one stands for those that follow it.
	Windows []windowVerdict

	// unexplained is set if no order was found that explains every rejection.
	unexplained bool
}

// With is the verdict with the leak and the false rejects of another quota of the same requests
// added to its own. A request that is over both limits counts twice.
func (v Verdict) With(verdict *Verdict) Verdict {
	v.LeakUnits = v.LeakUnits + verdict.LeakUnits
	v.LeakPossible = v.LeakPossible + verdict.LeakPossible
	v.LeakWorst = max(v.LeakWorst, verdict.LeakWorst)
	v.LeakPossibleWorst = max(v.LeakPossibleWorst, verdict.LeakPossibleWorst)
	v.LeakedRequests = v.LeakedRequests + verdict.LeakedRequests
	v.LeakSubjects = v.LeakSubjects + verdict.LeakSubjects
	v.LeakTiers = byTier(maps.Clone(v.LeakTiers), verdict.LeakTiers)
	v.Crossings = v.Crossings + verdict.Crossings
	v.LeakWindows = v.LeakWindows + verdict.LeakWindows
	v.CrossingLeaks = slices.Concat(v.CrossingLeaks, verdict.CrossingLeaks)
	v.OverOffered = v.OverOffered + verdict.OverOffered
	v.NeverGiven = v.NeverGiven + verdict.NeverGiven
	v.FalseRejects = v.FalseRejects + verdict.FalseRejects
	v.FalseRejectsPossible = v.FalseRejectsPossible + verdict.FalseRejectsPossible
	if verdict.LongestWrong > v.LongestWrong {
		v.LongestWrong = verdict.LongestWrong
		v.LongestTier = verdict.LongestTier
	}
	v.FalseRejectUnits += verdict.FalseRejectUnits
	v.FalseRejectUnitsPossible += verdict.FalseRejectUnitsPossible
	v.unexplained = v.unexplained || verdict.unexplained
	return v
}

// touched are the windows that requests touched: how many subject-windows, and of the
// windows the first and the last index. Crossed is set if one was answered in another
// window than it was called in.
type touched struct {
	Windows, First, Last int64
	Crossed              bool
}

func (t *touched) add(verdict *windowVerdict) {
	if t.Windows == 0 {
		t.First = verdict.Index
		t.Last = verdict.Index
	}
	t.Windows += 1 + verdict.Alike
	t.First = min(t.First, verdict.Index)
	t.Last = max(t.Last, verdict.Index)
	t.Crossed = t.Crossed || verdict.Crossed
}

// standing is what only standing policies have.
type standing struct {
	// Excursions are stretches of time certainly above the limit.
	Excursions int64
	// UnitSeconds is their area; one still open is counted to the history's end.
	UnitSeconds float64
}

// windowVerdict is the judgement of one subject-window.
type windowVerdict struct {
	Subject uint32
	// Crossed is set if a request's reply lies in another window than its call.
	Crossed bool
	// GaveBack is set if units that were, or may have been, charged to this
	// window were given back while it lasted.
	GaveBack bool
	// Index is the window's, as [quota.Window.At] numbers it.
	Index int64
	// Alike is how many windows follow of which the same is true. Requests only pass through them.
	Alike int64
	// Admitted units of requests called in this window.
	Admitted int64
	// Leak and LeakPossible in units.
	Leak, LeakPossible int64
	// FalseRejects and FalseRejectsPossible are requests called in this window,
	// the units are theirs.
	FalseRejects, FalseRejectsPossible         int64
	FalseRejectUnits, FalseRejectUnitsPossible int64

	sure sure
}

// sure is what may be said of one window alone. Figures above are attributed to
// some window each, so that they add up; that another window took what crossed a
// boundary is left out of, or for the possible added to, these.
type sure struct {
	leak, falseRejects, falsePossible int64
}

// leakIsPlain reports whether admitted units less the limit are the leak if
// nothing crosses a boundary and nothing is given back.
func (c *Config) leakIsPlain() bool {
	return c.Window.Kind.Tumbling() || c.Window.Kind == quota.Standing
}

func (c *Config) initial(subject uint32) int64 {
	if c.Initial == nil {
		return 0
	}
	return c.Initial(subject)
}

// Broken is by how many units one subject and window broke a property, at worst:
// certainly and possibly. exercised is false if the history could not have
// broken it.
func (v *Verdict) Broken(property quota.Property) (certain, possible int64, exercised bool) {
	switch property {
	case quota.PropertyLeak:
		return v.LeakWorst, v.LeakPossibleWorst, v.Crossings > 0
	case quota.PropertyFalseReject:
		certain = v.FalseRejectWorst
		possible = v.FalseRejectPossibleWorst
		if v.Explained() {
			possible = certain
		}
		return certain, possible, v.Issued.Requests > v.Failed.Requests
	default:
		return 0, 0, false
	}
}

// Explained reports whether some order of the operations, in keeping with what
// every caller saw, has no rejection that was wrong. One by one, a rejection that
// overlaps with admissions can always be moved to before them, so false
// rejects stay possible however well a strategy works. Taken together, they are
// decided if every request is for one unit and none is given back: put every
// admission at its call and every rejection at its reply. If no rejection is
// certainly wrong, each then finds the limit used up.
func (v *Verdict) Explained() bool {
	return !v.unexplained && v.MaxCost <= 1 && v.FalseRejects == 0 && v.Failed.Requests == 0
}
