package workloads

import (
	"time"

	"github.com/quotabench/quotabench/quota"
)

// OpKind says what an operation asks a strategy to do.
type OpKind uint8

// Take asks for units, which is what every operation of the built-in workloads
// does.
const Take OpKind = iota

// Fate says what becomes of an operation once it is admitted. A rejected one has
// none.
type Fate uint8

// The fates.
const (
	// FateNone: the units are used up by being admitted; nothing follows.
	FateNone Fate = iota
	// FateCommit: the work succeeds and the units are committed. Where [Op.Hold]
	// is set, what they paid for is deleted later, which gives them back.
	FateCommit
	// FateFail: the work fails and the units are given back.
	FateFail
	// FateAbandon: the caller is never heard of again; nobody settles.
	FateAbandon
)

// Op is one operation of a stream.
type Op struct {
	// Subject is a number; [Stream.Name] has the name.
	Subject uint32
	Kind    OpKind
	Fate    Fate
	// Units asked for, at least 1.
	Units int64
	// At is the recorded moment of a trace's row, counted from its first row and
	// in the trace's own time. It is 0 in generated streams, whose moments come
	// from [Arrivals].
	At time.Duration
	// Actual units that [FateCommit] commits, at least 1; fewer or more than
	// Units where the request misjudged them. Deleting gives these back. It is 0
	// with other fates.
	Actual int64
	// Settle is the time from admission to commit or failure; 0 is at once, and
	// with the fates that never settle.
	Settle time.Duration
	// Hold is the time from commit to deletion; 0 means that nothing is deleted.
	Hold time.Duration
}

// Stream is the sequence of operations of one run. All methods may be called
// concurrently.
type Stream interface {
	// At fills in operation i, counted from 0. It is a pure function of the
	// parameters and i, so that every strategy gets the same operations however
	// many workers fetch them, and does not allocate. With a bounded stream i
	// must be below Len.
	At(i int64, op *Op)
	// Len is the number of operations, or 0 for a stream that has no end.
	Len() int64
	// Name of a subject, unique within the stream.
	Name(subject uint32) string
}

// Bounded is a stream whose subjects are known in advance: 0 to Subjects()-1.
type Bounded interface {
	Subjects() int
}

// Crosser is a stream of crossings: stretches of consecutive operations on a
// subject of their own, which together ask for more than the limit.
type Crosser interface {
	// OpsPerCrossing is the length of a stretch; crossing c is operations
	// c*OpsPerCrossing() and following, on subject c.
	OpsPerCrossing() int64
}

// Prefilled is a stream that expects subjects to have used something already.
type Prefilled interface {
	// Initial is the number of units that the subject has used at the start.
	Initial(subject uint32) int64
}

// Subjects is the number of subjects of a stream, or 0 where they are not known
// in advance.
func Subjects(s Stream) int {
	if b, ok := s.(Bounded); ok {
		return b.Subjects()
	}
	return 0
}

// Initial is the number of units that a subject of the stream has used at the
// start.
func Initial(s Stream, subject uint32) int64 {
	if p, ok := s.(Prefilled); ok {
		return p.Initial(subject)
	}
	return 0
}

// OpsPerCrossing is the length of a crossing, or 0 where the stream has none.
func OpsPerCrossing(s Stream) int64 {
	if c, ok := s.(Crosser); ok {
		return c.OpsPerCrossing()
	}
	return 0
}

// Params are what a workload is made from. Only Policy is required: the zero
// value of every other field stands for the workload's default.
type Params struct {
	Seed uint64
	// Policy with the limit in force.
	Policy *quota.Policy
	// Subjects is the number of subjects to generate or to assign.
	Subjects int
	// Requests bounds the stream; 0 leaves it to the workload.
	Requests int64
	// Popularity of the subjects, in one of [PopularityForms]; "" is the default.
	Popularity string
	// Cost of the requests, in one of [CostForms]; "" is the default.
	Cost string
	// Fill is the share of its limit, 0 to 1, that every subject has used at the
	// start.
	Fill float64
	// OverQuota is the share of checks, 0 to 1, on subjects that start with
	// their quota used up; nil is the default.
	OverQuota *float64
	// FailShare and AbandonShare of the sessions, 0 to 1 together, fail or are
	// abandoned; the others commit. nil is the default.
	FailShare, AbandonShare *float64
	// MisjudgedShare of the commits, 0 to 1, are of half to one and a half times
	// the units asked for; nil is the default.
	MisjudgedShare *float64
	// Settle and Hold are the means of [Op.Settle] and [Op.Hold], which are
	// distributed exponentially. A Hold of 0 deletes nothing. nil is the default.
	Settle, Hold *time.Duration
	// Trace is the file to replay.
	Trace string
	// Speed is recorded seconds per second of a paced replay; 0 replays as fast
	// as the workers can.
	Speed float64

	given given // filled in by Meta.New
}

// Info describes a stream that was made.
type Info struct {
	// Loop in which the stream is meant to be issued.
	Loop Loop
	// Notes are lines for the header of reports.
	Notes []string
	// Trace describes the file of a replay; nil otherwise.
	Trace *TraceInfo
}

// TraceInfo says what was found in a trace.
type TraceInfo struct {
	File   string // base name
	Format string
	// Rows of the file, blank lines and the header not counted.
	Rows int
	// Used rows can be issued; Dropped ones have no usable time or no usable
	// subject. Together they are Rows.
	Used, Dropped int
	// Damaged lists every row that could not be read whole, in the file's order.
	Damaged []DamagedRow
	// First is the moment of the first used row, in UTC.
	First time.Time
	// Span is the recorded time from the first used row to the last.
	Span time.Duration
}

// DamagedRow is a row of a trace that could not be read whole.
type DamagedRow struct {
	Line   int // from 1
	Reason string
	// Used is set where the row still had a time and a subject.
	Used bool
}

// Loop says what starts an operation.
type Loop string

// The loops.
const (
	// Closed: a worker starts an operation when its previous one has ended.
	Closed Loop = "closed"
	// Open: an operation starts at its intended moment, whatever the others do.
	Open Loop = "open"
)

// Meta describes a workload. It is data: nothing else in the module knows a
// workload's name.
type Meta struct {
	// Name is the public name, e.g. "hot-key".
	Name string
	// Doc is one line for people, without a full stop.
	Doc string
	// Loop by default; [Info] has the one that the parameters ask for.
	Loop Loop
	// Rate is the default of the arrivals in open loop, in operations per second.
	Rate float64
	// Kinds of windows that it makes sense with; nil is all of them.
	Kinds []quota.Kind
	// Subjects is the default number; 0 where the workload decides, which then
	// takes none of the parameters Subjects, Popularity and OverQuota.
	Subjects int
	// Popularity, Cost and OverQuota are the defaults of the parameters of the
	// same name; an empty Cost stands for "policy".
	Popularity, Cost string
	OverQuota        float64
	// GivesBack is set where operations have fates, which only strategies that
	// can take units back can serve. Without it the parameters from FailShare to
	// Hold are refused.
	GivesBack bool
	// FailShare, AbandonShare, MisjudgedShare, Settle and Hold are the defaults
	// of the parameters of the same name.
	FailShare, AbandonShare, MisjudgedShare float64
	Settle, Hold                            time.Duration
	// Boundary is set where a window must end in mid-run for the workload to show
	// what it is made to show.
	Boundary bool
	// Crosses declares that some subject is asked for more than its limit in
	// every run; one in which none was is invalid.
	Crosses bool
	// NeedsTrace is set where Params.Trace is required; elsewhere it and
	// Params.Speed are refused.
	NeedsTrace bool
	// Make makes a stream of parameters that are checked and whose defaults are
	// filled in: no pointer is nil and no form empty. Callers use [Meta.New].
	Make func(p Params) (Stream, Info, error)
}
