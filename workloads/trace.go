package workloads

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/quota"
)

func init() {
	Register(Meta{
		Name: "trace",
		Doc:  "replays the requests of a recorded trace",
		Loop: Closed,
		Options: slices.Concat(
			[]quota.Option{
				{Name: "trace", Type: "file", Required: true,
					Doc: "trace `file` to replay: an access log, JSON lines or CSV, also compressed by gzip"},
				{Name: "trace-fields", Check: readable(parseTraceFields),
					Doc: "`fields` of the trace to read, as in time=ts,subject=user_id,cost=tokens"},
				{Name: speedOption, Type: "float", Min: "0", Default: "0",
					Doc: "replay at so many times the recorded speed, windows shrunk alike; 0 for full speed"},
			},
			subjectOptions(100, "zipf:1"),
			[]quota.Option{costOption("recorded"), fillOption(), overQuotaOption(0)},
		),
		NeedsTrace: true,
		Make:       newTrace,
	})
}

// replay is the stream of a trace's rows in the order of their time.
type replay struct {
	filled
	rows  []row
	names []string
}

// row is a usable row of a trace.
type row struct {
	at      int64 // ns since the Unix epoch
	units   int64
	subject uint32
}

var (
	_ Bounded   = (*replay)(nil)
	_ Prefilled = (*replay)(nil)
)

func newTrace(params Params) (Stream, Info, error) {
	given, err := parseTraceFields(params.Options["trace-fields"])
	if err != nil {
		return nil, Info{}, err
	}
	t, err := readTraceFile(params.Options["trace"], given)
	if err != nil {
		return nil, Info{}, err
	}
	// Logs are written when a request ends, so neighbours can be out of order.
	// Rows of the same moment stay as they stand in the file.
	slices.SortStableFunc(t.rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	info := Info{Loop: Closed, Trace: &TraceInfo{
		File: filepath.Base(params.Options["trace"]), Format: t.String(),
		Rows: len(t.rows) + t.dropped, Used: len(t.rows), Dropped: t.dropped,
		Damaged: t.damaged,
		First:   time.Unix(0, t.rows[0].at).UTC(),
		Span:    time.Duration(t.rows[len(t.rows)-1].at - t.rows[0].at),
	}}
	if params.Speed() > 0 {
		info.Loop = Open
	}
	if given.subject == "" {
		info.Warnings = t.doubts(info.Trace.File)
	}
	s := &replay{rows: t.rows, names: t.names}
	for _, step := range []func(*trace, Params) ([]string, error){s.assign, s.price, s.fill} {
		notes, err := step(t, params)
		if err != nil {
			return nil, Info{}, err
		}
		info.Notes = append(info.Notes, notes...)
	}
	if n := params.Requests; n > 0 && n < int64(len(s.rows)) {
		info.Notes = append(info.Notes, fmt.Sprintf("only the first %d of %d usable rows are replayed", n, len(s.rows)))
		s.rows = s.rows[:n]
	}
	return s, info, nil
}

// leastDoubtful requests of one subject are unlikely in a log of many clients.
const leastDoubtful = 100

// doubts says if the subject looks like that of another field, such as a host or a proxy.
func (t *trace) doubts(file string) []string {
	if len(t.names) != 1 || len(t.rows) < leastDoubtful {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s requests of 1 subject: if %q is not the client, say which field is: "+
		"--trace-fields subject=FIELD, one of %s", file, format.Count(int64(len(t.rows))), t.names[0],
		strings.Join(t.shape.fields(), ", "))}
}

// assign gives every row of a trace without subjects one, in the order of time.
func (s *replay) assign(t *trace, params Params) (notes []string, err error) {
	if !t.anonymous {
		if params.Given("subjects") || params.Given("popularity") {
			return nil, errors.New("the trace names its subjects: their number and popularity are as recorded")
		}
		return nil, nil
	}
	popular, subjects, err := params.popularity()
	if err != nil {
		return nil, err
	}
	s.names = subjectNames(subjects)
	table := newAlias(popular.weights(subjects))
	who := newStream(params.Seed, seed.Subjects)
	for i := range s.rows {
		s.rows[i].subject = table.draw(who.at(uint64(i)))
	}
	return []string{fmt.Sprintf("the trace names no subjects: its rows were assigned to %d subjects at random from the "+
		"seed, popularity %v",
		subjects, popular)}, nil
}

// price replaces the recorded costs if others were asked for.
func (s *replay) price(t *trace, params Params) (notes []string, err error) {
	form, err := parseCost(params.Options["cost"])
	if err != nil {
		return nil, err
	}
	if form.name != "recorded" {
		prices, err := form.prices(params.Policy)
		if err != nil {
			return nil, err
		}
		what := newStream(params.Seed, seed.Costs)
		for i := range s.rows {
			s.rows[i].units = prices.draw(what.at(uint64(i)))
		}
		return []string{"the recorded costs are replaced: " + prices.describe(params.Policy.Unit)}, nil
	}
	if t.unit == "" {
		return nil, nil
	}
	notes = []string{"the cost of a request is " + t.costIs}
	if params.Policy.Unit != t.unit {
		notes = append(notes, fmt.Sprintf("policy %s counts %s, but the costs of this trace are %s", params.Policy.Name,
			params.Policy.Unit, t.unit))
	}
	return notes, nil
}

// fill says what subjects have used at the start. Which of them are full goes by
// their share of the rows.
func (s *replay) fill(_ *trace, params Params) (notes []string, err error) {
	counts := make([]uint64, len(s.names))
	for _, row := range s.rows {
		counts[row.subject]++
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
	s.filled, err = newFilled(params, weights)
	if err != nil {
		return nil, err
	}
	if s.full != nil {
		full := make([]bool, len(s.names))
		for r, f := range s.full {
			full[ranked[r]] = f
		}
		s.full = full
	}
	return s.notes("rows", params.Policy.Unit), nil
}

func (s *replay) At(i int64, op *Op) {
	row := &s.rows[i]
	*op = Op{Subject: row.subject, Units: row.units, At: time.Duration(row.at - s.rows[0].at)}
}

func (s *replay) Len() int64                 { return int64(len(s.rows)) }
func (s *replay) Subjects() int              { return len(s.names) }
func (s *replay) Name(subject uint32) string { return s.names[subject] }

// inRange reports whether a recorded moment can be kept in nanoseconds.
func inRange(t time.Time) bool {
	return t.Unix() >= 0 && t.Unix() < math.MaxInt64/int64(time.Second)
}
