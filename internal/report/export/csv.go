package export

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// column is one column of a table over rows of T.
type column[T any] struct {
	name string // with its unit
	of   func(row T) string
}

// table renders rows as RFC 4180 has it, except for line ends of one character.
func table[T any](columns []column[T], rows []T) ([]byte, error) {
	lines := make([][]string, 1+len(rows))
	for _, column := range columns {
		lines[0] = append(lines[0], format.Cell(column.name))
		for i, row := range rows {
			lines[1+i] = append(lines[1+i], column.of(row))
		}
	}
	var buffer bytes.Buffer
	err := csv.NewWriter(&buffer).WriteAll(lines)
	return buffer.Bytes(), err
}

// word is a column of text that may come from anywhere.
func word[T any](name string, of func(T) string) column[T] {
	return column[T]{name, func(row T) string { return format.Cell(format.Plain(of(row))) }}
}

func whole[T any, N int | int64](name string, of func(T) N) column[T] {
	return column[T]{name, func(row T) string { return strconv.FormatInt(int64(of(row)), 10) }}
}

func decimal[T any](name string, of func(T) float64) column[T] {
	return column[T]{name, func(row T) string { return strconv.FormatFloat(of(row), 'f', -1, 64) }}
}

func flag[T any](name string, of func(T) bool) column[T] {
	return column[T]{name, func(row T) string { return strconv.FormatBool(of(row)) }}
}

// optional leaves a cell empty if the row has no such part.
func optional[T any](c column[T], has func(T) bool) column[T] {
	of := c.of
	c.of = func(row T) string {
		if !has(row) {
			return ""
		}
		return of(row)
	}
	return c
}

// RunsCSV renders a row per run and round. An open loop next to a closed one is a row of
// its own, after that. Columns that end in _ns are nanoseconds, in _s seconds, in _per_s
// per second, and costs are per decision. What a run does not have is empty. Columns that
// begin with all_ are of all kept rounds together, as reports show them, and the same in
// every row of a strategy.
func RunsCSV(file *results.File) ([]byte, error) {
	var rows []*results.Run
	of := map[*run]*results.Summary{}
	for _, group := range grouped(file) {
		for _, run := range group.runs {
			of[run] = group.summary
		}
	}
	for i := range file.Runs {
		rows = append(rows, &file.Runs[i])
		if run := file.Runs[i].Paced; run != nil {
			rows = append(rows, run)
		}
	}
	columns := []column[*run]{word("kind", func(*run) string { return file.Kind })}
	columns = slices.Concat(columns, setting, counted("requests"), counted("speed"), kept(of), counted("latency"),
		counted("delay"))
	columns = slices.Concat(columns, counted("correctness"), []column[*run]{guarantee}, counted("cost"),
		counted("settlement"))
	return table(columns, rows)
}

// counted are the columns of a group of figures that have one.
func counted(name string) (out []column[*run]) {
	group := figures.Group(name)
	for i := range group {
		if figure := &group[i]; figure.CSV != "" {
			value := decimal(figure.CSV, func(r *run) float64 { value, _ := figure.Round(r); return value })
			out = append(out, optional(value, func(r *run) bool { _, ok := figure.Round(r); return ok }))
		}
	}
	return out
}

type run = results.Run

var setting = []column[*run]{
	word("strategy", func(r *run) string { return r.Params.Label }),
	word("form", func(r *run) string { return r.Form }),
	word("policy", func(r *run) string { return r.Policy }),
	word("workload", func(r *run) string { return r.Workload }),
	whole("limit", func(r *run) int64 { return r.Params.Limit }),
	word("unit", func(r *run) string { return r.Params.Unit }),
	word("window", func(r *run) string { return r.Params.Window }),
	word("loop", func(r *run) string { return r.Params.Loop }),
	optional(decimal("rate_per_s", func(r *run) float64 {
		return r.Params.RatePerS
	}), func(r *run) bool { return r.Params.RatePerS > 0 }),
	whole("workers", func(r *run) int { return r.Params.Workers }),
	whole("instances", func(r *run) int { return r.Params.Instances }),
	whole("subjects", func(r *run) int { return r.Params.Subjects }),
	whole("round", func(r *run) int { return r.Repetition }),
	flag("partial", func(r *run) bool { return r.Partial }),
	flag("valid", func(r *run) bool { return r.Audit.Valid }),
	flag("disturbed", func(r *run) bool { return r.Audit.Disturbed() }),
	word("findings", func(r *run) string {
		var codes []string
		for _, reason := range r.Audit.Reasons {
			codes = append(codes, reason.Code)
		}
		return strings.Join(codes, " ")
	}),
}

// kept are the rounds behind the timings of reports, and the latency that these have.
func kept(of map[*run]*results.Summary) []column[*run] {
	out := []column[*run]{
		flag("kept", func(r *run) bool { return of[r].Keeps(r.Repetition) }),
		whole("kept_rounds", func(r *run) int { return of[r].Timed }),
		whole("run_rounds", func(r *run) int { return of[r].Rounds }),
	}
	for _, key := range []string{"p50", "p99"} {
		at := func(r *run) results.Percentile { return figures.Of(key).Percentile(of[r]) }
		shown := func(r *run) bool { percentile := at(r); return percentile.Shown() }
		interval := func(r *run) bool { return shown(r) && at(r).Coverage > 0 }
		out = append(out,
			word("all_"+key, func(r *run) string { return figures.Of(key).Timing(of[r]).String() }),
			optional(decimal("all_"+key+"_ns", func(r *run) float64 { return at(r).Value }), shown),
			optional(decimal("all_"+key+"_lo_ns", func(r *run) float64 { return at(r).Lo }), interval),
			optional(decimal("all_"+key+"_hi_ns", func(r *run) float64 { return at(r).Hi }), interval))
	}
	return out
}

var guarantee = word("guarantee", func(r *run) string {
	var verdicts []string
	for _, clause := range r.Guarantee {
		verdicts = append(verdicts, clause.Property+" "+clause.Verdict)
	}
	return strings.Join(verdicts, ", ")
})

// sought is one property of one search.
type sought struct {
	search   *results.Search
	property results.Property
	finding  *results.Finding // nil if no schedule broke it
}

// ExplorationCSV renders a row per search and property that was looked for: whether a
// schedule breaks it, and the shortest one that was found.
func ExplorationCSV(exploration *results.Exploration) ([]byte, error) {
	var rows []sought
	for _, search := range exploration.Searches {
		for _, property := range search.Properties {
			rows = append(rows, sought{search, property, search.Found(property)})
		}
	}
	found := func(r sought) bool { return r.finding != nil }
	return table([]column[sought]{
		word("strategy", func(r sought) string { return r.search.Strategy }),
		word("policy", func(r sought) string { return r.search.Policy }),
		whole("limit", func(r sought) int64 { return r.search.Limit }),
		word("unit", func(r sought) string { return r.search.Unit }),
		whole("clients", func(r sought) int { return r.search.Clients }),
		whole("instances", func(r sought) int { return r.search.Instances }),
		word("faults_allowed", func(r sought) string { return strings.Join(format.Strings(r.search.Faults), " ") }),
		word("property", func(r sought) string { return string(r.property) }),
		word("outcome", outcome),
		optional(whole("steps", func(r sought) int { return len(r.finding.Steps) }), found),
		optional(whole("units", func(r sought) int64 { return r.finding.Units }), found),
		optional(word("faults", func(r sought) string { return strings.Join(format.Strings(r.finding.Faults), " ") }), found),
		whole("runs", func(r sought) int64 { return r.search.Runs }),
		whole("states", func(r sought) int { return r.search.States }),
		whole("longest_steps", func(r sought) int { return r.search.Depth }),
		word("ended_before_its_end", func(r sought) string { return r.search.Capped }),
		optional(word("token", func(r sought) string { return r.finding.Token }), found),
	}, rows)
}

// outcome says what a search may say about a property.
func outcome(r sought) string {
	switch {
	case r.finding != nil:
		return "broken"
	case r.property == "false-reject" && r.search.AllowedBy != "":
		return "as declared"
	case len(r.search.Withheld) > 0:
		return "withheld"
	case r.search.Capped != "":
		return "not found"
	default:
		return "kept"
	}
}
