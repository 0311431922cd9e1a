package html

import (
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// costTable is what a decision costs, as a mean of the run and as a probe counted it.
func costTable(s *results.Summary) *table {
	t := newTable("Cost per decision", "of", "#commands", "#round trips", "#SQL", "#bytes", "#allocations")
	add := func(name string, c results.ProbeCost) {
		sql := format.TrimZeros(format.Per(c.SQL))
		if c.SQL == 0 && c.ModelSQL > 0 {
			sql = format.TrimZeros(format.Per(c.ModelSQL)) + "m"
			t.note([]string{"m statements to the in-process model, not to PostgreSQL"})
		}
		t.add(name, format.TrimZeros(format.Per(c.Commands)), format.TrimZeros(format.Per(c.RoundTrips)), sql, format.TrimZeros(format.Per(c.Bytes)), format.TrimZeros(format.Per(c.Allocs)))
	}
	c := &s.Cost
	add("mean of the run", results.ProbeCost{Commands: c.Commands, RoundTrips: c.RoundTrips, SQL: c.SQL, ModelSQL: c.ModelSQL, Bytes: c.Bytes, Allocs: c.Allocs})
	if p := c.Probe; p != nil {
		add("exact: a subject's first", p.First)
		if p.Admitted != nil {
			add("exact: admitted", *p.Admitted)
		}
		if p.Rejected != nil {
			add("exact: rejected", *p.Rejected)
		}
	}
	return t
}

// cpuTable has processor time and keys.
func cpuTable(s *results.Summary) *table {
	t := newTable("Processor time per decision, and keys", "figure", "#value")
	c := &s.Cost
	for _, x := range []struct {
		name string
		ns   float64
	}{{"client, load generator included", c.ClientCPU}, {"Redis", c.RedisCPU}, {"PostgreSQL", c.PostgresCPU}, {"client waiting for a core", c.RunQueue}} {
		if x.ns > 0 {
			t.add(x.name, format.NS(x.ns))
		}
	}
	if c.KeysWithoutTTL > 0 {
		t.add("keys without TTL", format.Count(c.KeysWithoutTTL)+" of "+format.Count(c.KeysAtEnd))
	}
	return t.orNil()
}

// storedTable is what the strategy kept in its stores.
func storedTable(s *results.Summary) *table {
	t := newTable("Kept in stores, in the round that kept most", "store", "#subjects", "#entries", "#bytes", "#bytes per subject")
	for _, k := range s.Stored {
		bytes, per := "-", "-"
		if k.Bytes > 0 {
			bytes, per = format.Count(k.Bytes), format.Count(int64(k.BytesPerSubject+0.5))
		}
		t.add(k.Store, format.Count(k.Subjects), format.Count(k.Entries), bytes, per)
	}
	return t.orNil()
}

// settlementTable is what became of admitted requests.
func settlementTable(s *results.Summary) *table {
	x := s.Settled
	if x == nil {
		return nil
	}
	t := newTable("Settlement of admitted requests", "figure", "#value")
	t.add("commits", format.Count(x.Commits))
	t.add("refunds", format.Count(x.Refunds))
	t.add("abandoned", format.Count(x.Abandoned))
	t.add("errors", format.Count(x.Errors))
	if x.OverrunUnits > 0 {
		t.add("used beyond reservations", format.Units(x.OverrunUnits, s.Params.Unit))
	}
	for _, p := range []struct {
		name string
		of   results.Percentile
	}{{"commit or refund, p50", x.Service.P50}, {"commit or refund, p99", x.Service.P99}} {
		cell, notes := percentileText(p.of)
		t.note(notes)
		t.add(p.name, cell)
	}
	return t
}
