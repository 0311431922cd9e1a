package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text"
	"github.com/quotabench/quotabench/strategies"
)

// A page that was written by hand has figures of strategies beside each other between
// these two lines. What stands there is made anew with the other pages.
const (
	besideFrom = "<!-- make pages: figures of "
	besideTo   = "<!-- make pages: end of figures -->"
)

// fill makes the figures of a page that was written by hand anew. It returns nil where it
// has none.
func (e *Evidence) fill(p *Page) ([]byte, error) {
	var out bytes.Buffer
	rest := string(p.Bytes)
	for {
		before, from, ok := strings.Cut(rest, besideFrom)
		if !ok {
			break
		}
		list, from, named := strings.Cut(from, " -->\n")
		_, after, ended := strings.Cut(from, besideTo)
		names := strings.Fields(list)
		if !named || !ended || len(names) == 0 {
			return nil, fmt.Errorf("%s: figures begin with %qNAMES -->, and end with %q, on lines of their own", p.Name, besideFrom, besideTo)
		}
		fmt.Fprintf(&out, "%s%s%s -->\n\n", before, besideFrom, list)
		if err := e.beside(&out, names); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		fmt.Fprint(&out, besideTo)
		rest = after
	}
	if out.Len() == 0 {
		return nil, nil
	}
	out.WriteString(rest)
	return out.Bytes(), nil
}

// beside shows what strategies cost with their default options, in each measured record
// that has more than one of them.
func (e *Evidence) beside(b *bytes.Buffer, names []string) error {
	shown := false
	for i := range e.Runs {
		if f := &e.Runs[i]; f.Kind == results.Measured {
			if rows := e.rows(f, names); len(rows) > 1 {
				shown = true
				compare(b, rows)
			}
		}
	}
	if !shown && len(e.Runs) > 0 {
		return fmt.Errorf("no measured record has several of %s", strings.Join(names, ", "))
	}
	return nil
}

func (e *Evidence) rows(f *results.File, names []string) (rows []figure) {
	for _, name := range names {
		of := e.figures(name)
		if i := slices.IndexFunc(of, func(x figure) bool { return x.file == f }); i >= 0 {
			rows = append(rows, of[i])
		}
	}
	return rows
}

// compare is a table of what strategies cost.
func compare(b *bytes.Buffer, rows []figure) {
	fmt.Fprintf(b, "%s %s\n\n", rows[0].setting(), origin(rows[0].file, new(strategies.Meta)))
	columns := []string{"strategy", "leak", "trials that leaked", "worst window, bound", "false rejects", "decisions/s", "p50", "p99", "rounds kept", "commands, SQL, trips: saturated", "admitted", "rejected"}
	line(b, columns)
	line(b, slices.Repeat([]string{"---"}, len(columns)))
	for _, r := range rows {
		s := r.summary
		lat := s.Latency()
		cells := []string{cell(s.Label), "invalid", "-", "-", "-"}
		if s.Counts() {
			cells = []string{cell(s.Label), format.Range(s.Leak.Units, s.Leak.Possible), text.Trials(s.Leak.Leak), worst(s), text.FalseRejects(s)}
		}
		cells = append(cells, perS(s), percentile(lat.P50), percentile(lat.P99), kept(s), work(s.Cost.Commands, s.Cost.SQL, s.Cost.RoundTrips))
		if p := s.Cost.Probe; p != nil {
			cells = append(cells, probed(p.Admitted), probed(p.Rejected))
		} else {
			cells = append(cells, "-", "-")
		}
		line(b, cells)
	}
	fmt.Fprint(b, "\nCommands to Redis, statements of SQL and round trips are means per decision: of the saturated run, jobs and waits for others included, and of single\nrequests one after the other.\n\n")
}

// worst is the leak of the worst window, and the strictest declared bound on it.
func worst(s *results.Summary) string {
	bound := int64(quota.Unbounded)
	for _, c := range s.Guarantee {
		if c.Property == results.LeakProperty {
			bound = min(bound, c.Bound)
		}
	}
	if bound == quota.Unbounded {
		return format.Count(s.Leak.WorstUnits) + ", none"
	}
	return format.Count(s.Leak.WorstUnits) + ", " + format.Count(bound)
}

func probed(c *results.ProbeCost) string {
	if c == nil {
		return "-"
	}
	return work(c.Commands, c.SQL, c.RoundTrips)
}

func work(commands, sql, trips float64) string {
	return fmt.Sprintf("%s, %s, %s", format.Per(commands), format.Per(sql), format.Per(trips))
}
