package workloads

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Fate says what becomes of an operation once it is admitted. A rejected one has
// none.
type Fate uint8

// The fates.
const (
	// FateNone: the units are used up by being admitted; nothing follows.
	FateNone Fate = iota
	// FateCommit: the work succeeds and the units are committed. If [Op.Hold]
	// is set, what they paid for is deleted later, which gives them back.
	FateCommit
	// FateFail: the work fails and the units are given back.
	FateFail
	// FateAbandon: the caller never settles, and the units stay reserved.
	FateAbandon
)

// Op is one operation of a stream.
type Op struct {
	// Subject is a number; [Stream.Name] has the name.
	Subject uint32
	Fate    Fate
	// Units asked for, at least 1.
	Units int64
	// At is the recorded moment of a trace's row, counted from its first row and
	// in the trace's own time. It is 0 in generated streams, whose moments come
	// from [Arrivals].
	At time.Duration
	// Actual units that [FateCommit] commits, at least 1; fewer or more than
	// Units if the request misjudged them. Deleting gives these back. It is 0
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

// Subjects is the number of subjects of a stream, or 0 if they are not known
// in advance.
func Subjects(stream Stream) int {
	if bounded, ok := stream.(Bounded); ok {
		return bounded.Subjects()
	}
	return 0
}

// Initial is the number of units that a subject of the stream has used at the
// start.
func Initial(stream Stream, subject uint32) int64 {
	if prefilled, ok := stream.(Prefilled); ok {
		return prefilled.Initial(subject)
	}
	return 0
}

// OpsPerCrossing is the length of a crossing, or 0 if the stream has none.
func OpsPerCrossing(stream Stream) int64 {
	if crosser, ok := stream.(Crosser); ok {
		return crosser.OpsPerCrossing()
	}
	return 0
}

// Info describes a stream that was made.
type Info struct {
	// Loop in which the stream is meant to be issued.
	Loop Loop
	// Notes are lines for the header of reports.
	Notes []string
	// Warnings are lines for whoever is about to run the stream: it may not be what was meant.
	Warnings []string
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
	Damaged []damagedRow
	// First is the moment of the first used row, in UTC.
	First time.Time
	// Span is the recorded time from the first used row to the last.
	Span time.Duration
}

// damagedRow is a row of a trace that could not be read whole.
type damagedRow struct {
	Line   int // from 1
	Reason string
	// Used is set if the row still had a time and a subject.
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
	// Options that the workload takes, with their defaults. An option of the same
	// name must have the same Type in all workloads: it is one flag.
	Options []quota.Option
	// GivesBack is set if operations have fates, which only strategies that
	// can take units back can serve.
	GivesBack bool
	// Boundary is set if a window must end in mid-run for the workload to show
	// what it is made to show.
	Boundary bool
	// Crosses declares that some subject is asked for more than its limit in
	// every run; a run in which none was is invalid.
	Crosses bool
	// NeedsTrace is set if the operations have recorded moments.
	NeedsTrace bool
	// Make makes a stream of parameters that are checked and whose options are
	// complete. Callers use [Meta.New].
	Make func(params Params) (Stream, Info, error)
}

// Fingerprint identifies the first n operations of a stream, with their fates, the
// names of their subjects and what these have used at the start: streams with different
// fingerprints differ. A bounded stream may be shorter.
func Fingerprint(stream Stream, n int64) string {
	if l := stream.Len(); l > 0 {
		n = min(n, l)
	}
	hash := sha256.New()
	var buf []byte
	var op Op
	for i := range n {
		stream.At(i, &op)
		name := stream.Name(op.Subject)
		buf = append(buf[:0], byte(op.Fate)<<4)
		for _, v := range [...]uint64{uint64(op.Units), uint64(op.At), uint64(Initial(stream, op.Subject)),
			uint64(len(name))} {
			buf = binary.LittleEndian.AppendUint64(buf, v)
		}
		if op.Fate != FateNone { // prints of streams without fates predate them
			for _, v := range [...]uint64{uint64(op.Actual), uint64(op.Settle), uint64(op.Hold)} {
				buf = binary.LittleEndian.AppendUint64(buf, v)
			}
		}
		hash.Write(append(buf, name...))
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}
