package workloads

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"
)

func init() {
	Register(Meta{
		Name:       "trace",
		Doc:        "replays the requests of a recorded trace",
		Loop:       Closed,
		Subjects:   100,
		Zipf:       1,
		NeedsTrace: true,
		Make:       newTrace,
	})
}

// replay is the stream of a trace's rows in the order of their time.
type replay struct {
	limit int64
	rows  []row
	names []string
	full  []bool
}

// row is a usable row of a trace.
type row struct {
	at      int64 // ns since the Unix epoch
	units   int64
	subject uint32
}

var (
	_ Stream    = (*replay)(nil)
	_ Bounded   = (*replay)(nil)
	_ Prefilled = (*replay)(nil)
)

func newTrace(p Params) (Stream, Info, error) {
	t, err := readTraceFile(p.Trace)
	if err != nil {
		return nil, Info{}, err
	}
	// Logs are written when a request ends, so neighbours can be out of order.
	// Rows of the same moment stay as they stand in the file.
	slices.SortStableFunc(t.rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	info := Info{Loop: Closed, Trace: &TraceInfo{
		File: filepath.Base(p.Trace), Format: t.label,
		Rows: len(t.rows) + t.dropped, Used: len(t.rows), Dropped: t.dropped,
		Damaged: t.damaged,
		First:   time.Unix(0, t.rows[0].at).UTC(),
		Span:    time.Duration(t.rows[len(t.rows)-1].at - t.rows[0].at),
	}}
	if p.Speed > 0 {
		info.Loop = Open
	}
	s := &replay{limit: p.Policy.Limit, rows: t.rows, names: t.names}
	if t.anonymous {
		assign(s, p)
		info.Notes = append(info.Notes, fmt.Sprintf(
			"the trace names no subjects: its rows were assigned to %d subjects at random from the seed, popularity zipf %v", p.Subjects, *p.Zipf))
	}
	if t.unit != "" {
		info.Notes = append(info.Notes, "the cost of a request is "+t.costIs)
		if p.Policy.Unit != t.unit {
			info.Notes = append(info.Notes, fmt.Sprintf("policy %s counts %s, but the costs of this trace are %s", p.Policy.Name, p.Policy.Unit, t.unit))
		}
	}
	s.fill(*p.OverQuota, newStream(p.Seed, forFull))
	if n := p.Requests; n > 0 && n < int64(len(s.rows)) {
		info.Notes = append(info.Notes, fmt.Sprintf("only the first %d of %d usable rows are replayed", n, len(s.rows)))
		s.rows = s.rows[:n]
	}
	return s, info, nil
}

// assign gives every row a subject, in the order of time.
func assign(s *replay, p Params) {
	s.names = subjectNames(p.Subjects)
	table := newAlias(zipfWeights(p.Subjects, *p.Zipf))
	who := newStream(p.Seed, forSubjects)
	for i := range s.rows {
		s.rows[i].subject = table.draw(who.at(uint64(i)))
	}
}

// fill chooses the subjects that start with their quota used up, by their share
// of the rows.
func (s *replay) fill(share float64, order stream) {
	s.full = make([]bool, len(s.names))
	if share == 0 {
		return
	}
	counts := make([]uint64, len(s.names))
	for _, r := range s.rows {
		counts[r.subject]++
	}
	ranked := make([]int, len(counts))
	for i := range ranked {
		ranked[i] = i
	}
	slices.SortStableFunc(ranked, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	weights := make([]uint64, len(counts))
	for r, i := range ranked {
		weights[r] = counts[i]
	}
	for r, full := range chooseFull(weights, share, order) {
		s.full[ranked[r]] = full
	}
}

func (s *replay) At(i int64, op *Op) {
	r := &s.rows[i]
	*op = Op{Subject: r.subject, Kind: Take, Units: r.units, At: time.Duration(r.at - s.rows[0].at)}
}

func (s *replay) Len() int64                 { return int64(len(s.rows)) }
func (s *replay) Subjects() int              { return len(s.names) }
func (s *replay) Name(subject uint32) string { return s.names[subject] }

func (s *replay) Initial(subject uint32) int64 {
	if s.full[subject] {
		return s.limit
	}
	return 0
}

// inRange reports whether a recorded moment can be kept in nanoseconds.
func inRange(t time.Time) bool {
	return t.Unix() >= 0 && t.Unix() < math.MaxInt64/int64(time.Second)
}
