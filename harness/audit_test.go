package harness

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// TestAudit has one finding in each run, or none, and says which figures stand.
func TestAudit(t *testing.T) {
	ok := takes(0, 0, 10, oracle.Admitted)
	crossing := append(slices.Clone(ok), take(0, 1000, 1, oracle.Rejected))
	later := takes(1, 1500*ms, 1, oracle.Admitted)
	for _, c := range []struct {
		name   string
		window quota.Window
		events []oracle.Event
		plant  func(f *Facts)
		want   string // code and detail; "" for none
		note   bool
	}{
		{name: "nothing", window: second, events: ok},
		{name: "admitted", window: second, events: ok, plant: func(f *Facts) { f.Counts.Admitted-- },
			want: "count-mismatch callers counted 9 issued, 9 admitted, 0 rejected, 0 errors; the history holds 10, 10, 0, 0 " +
				"and 0 malformed"},
		{name: "kinds of decisions", window: second, events: crossing, plant: func(f *Facts) {
			f.Counts.Admitted = 9
			f.Counts.Rejected = 2
		},
			want: "count-mismatch callers counted 11 issued, 9 admitted, 2 rejected"},
		{name: "rejected or failed", window: second,
			events: append(takes(0, 0, 1000, oracle.Admitted), take(0, 20_000, 1, oracle.Rejected)), plant: func(f *Facts) {
				f.Counts.Rejected = 0
				f.Counts.Errors.Other = 1
			},
			want: "count-mismatch callers counted 1001 issued, 1000 admitted, 0 rejected, 1 errors; the history holds 1001, " +
				"1000, 1, 0"},
		{name: "malformed", window: second,
			events: append(slices.Clone(ok), oracle.Event{Kind: oracle.Refund, Call: 9, Reply: 8}),
			want: "count-mismatch callers counted 10 issued, 10 admitted, 0 rejected, 0 errors; the history holds 10, 10, " +
				"0, 0 and 1 malformed"},
		{name: "cells agree", window: quota.Window{}, events: ok, plant: func(f *Facts) { f.Cells = cells(10) }},
		{name: "cells disagree", window: quota.Window{}, events: ok, plant: func(f *Facts) { f.Cells = cells(9) },
			want: "oracles-disagree the online count and the history disagree in 1 places: subject 0, window 0: admitted 9 " +
				"units online, 10 in the history"},
		{name: "nothing issued", window: second, want: "nothing-issued no request was issued"},
		{name: "nothing issued in time", window: second, plant: func(f *Facts) { f.Partial = true }},
		{name: "limit never crossed", window: second, events: ok, plant: func(f *Facts) { f.Plan.Workload.Crosses = true },
			want: "limit-never-crossed no subject was asked for more than its limit of 10 units"},
		{name: "limit not crossed in time", window: second, events: ok, plant: func(f *Facts) {
			f.Plan.Workload.Crosses = true
			f.Partial = true
		}},
		{name: "limit crossed", window: second, events: crossing, plant: func(f *Facts) { f.Plan.Workload.Crosses = true }},
		{name: "boundary missed", window: second, events: ok, plant: func(f *Facts) { f.Plan.Workload.Boundary = true },
			want: "boundary-missed no request came after the window's end"},
		{name: "boundary met", window: second, events: later, plant: func(f *Facts) { f.Plan.Workload.Boundary = true }},
		{name: "boundary crossed by a reply", window: second,
			events: []oracle.Event{{Call: 999 * ms, Reply: 1001 * ms, Units: 1}},
			plant:  func(f *Facts) { f.Plan.Workload.Boundary = true }},
		{name: "no reset", window: second, events: later, plant: func(f *Facts) {
			f.Selection.Reset = strategies.ResetsNever
		},
			want: "window-crossed the run crossed into another fixed window, which this strategy has no reset for"},
		{name: "no reset was needed", window: second, events: ok, plant: func(f *Facts) {
			f.Selection.Reset = strategies.ResetsNever
		}},
		{name: "exact", window: second, events: crossing, plant: func(f *Facts) {
			f.Selection.Control = strategies.ControlExact
		}},
		{name: "exact and leaking", window: second, events: takes(0, 0, 12, oracle.Admitted), plant: func(f *Facts) {
			f.Selection.Control = strategies.ControlExact
		},
			want: "control-failed the exact control leaked 2 units and rejected 0 requests wrongly: the instrument is wrong"},
		{name: "exact and rejecting", window: second, events: takes(0, 0, 1, oracle.Rejected), plant: func(f *Facts) {
			f.Selection.Control = strategies.ControlExact
		},
			want: "control-failed the exact control leaked 0 units and rejected 1 request wrongly: the instrument is wrong"},
		{name: "exact and drifting", window: quota.Window{}, events: ok, plant: func(f *Facts) {
			f.Selection.Control = strategies.ControlExact
			f.Readings = []Readings{{At: AtRest,
				List: []Reading{{Call: 5000, Reply: 5001, Tier: "redis", Units: 7, Known: true}}}}
		}, want: "control-failed the exact control drifted by -3 units: the instrument is wrong"},
		{name: "exact and read", window: quota.Window{}, events: ok, plant: func(f *Facts) {
			f.Selection.Control = strategies.ControlExact
			f.Readings = []Readings{{At: AtRest,
				List: []Reading{{Call: 5000, Reply: 5001, Tier: "redis", Units: 10, Known: true}}}}
		}},
		{name: "open", window: second, events: takes(0, 0, 12, oracle.Admitted), plant: func(f *Facts) {
			f.Selection.Control = strategies.ControlOpen
		}},
		{name: "open and rejecting", window: second, events: crossing, plant: func(f *Facts) {
			f.Selection.Control = strategies.ControlOpen
		},
			want: "control-failed the control that admits everything rejected 1 request"},
		{name: "jobs", window: second, events: ok, plant: func(f *Facts) {
			f.FailedRounds = 2
			f.JobError = errors.New("gone")
		},
			want: "jobs-failed 2 rounds of background jobs failed, the first: gone", note: true},
		{name: "tiers", window: second, events: ok, plant: func(f *Facts) { f.TiersFolded = 1 },
			want: "tiers-folded 1 decision of tiers beyond those that a run tells apart; they are counted under no name",
			note: true},
		{name: "stores apart", window: second, events: ok, plant: func(f *Facts) {
			f.StoresApart, f.Selection.Guarantee = true, []quota.Clause{quota.Exactly()}
		},
			want: "guarantee-not-judged what it declares is about one store", note: true},
		{name: "stores apart, nothing declared", window: second, events: ok, plant: func(f *Facts) { f.StoresApart = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := planted(t, c.window, c.events)
			if c.plant != nil {
				c.plant(f)
			}
			r, _ := judged(t, f)
			found(t, &r.Audit, c.want, c.note)
		})
	}
}

// found requires that finding alone, and that it discards what it has to.
func found(t *testing.T, a *results.Audit, want string, note bool) {
	t.Helper()
	var all []string
	for _, r := range a.Reasons {
		all = append(all, r.Code+" "+r.Detail)
		if discards := r.Discards; (discards == codes.DiscardsNothing) != note || !note &&
			discards != codes.DiscardsCorrectness {
			t.Errorf("%s discards %s", r.Code, discards)
		}
	}
	if want == "" && all != nil || want != "" && (len(all) != 1 || !strings.HasPrefix(all[0], want)) {
		t.Errorf("found %q, want %q", all, want)
	}
	if a.Valid != (want == "" || note) || a.Disturbed() {
		t.Errorf("%q: valid %t, disturbed %t", all, a.Valid, a.Disturbed())
	}
}

// cells counted so many admitted units of subject 0.
func cells(admitted int64) iter.Seq2[oracle.Key, *oracle.Cell] {
	return func(yield func(oracle.Key, *oracle.Cell) bool) {
		var c oracle.Cell
		c.Begin(admitted)
		c.Admit(admitted)
		yield(oracle.Key{}, &c)
	}
}

// TestAuditOfErrors: one request in a thousand may fail for no reason. Errors that
// an outage or the strategy's source explains are not among them.
func TestAuditOfErrors(t *testing.T) {
	const planned = "planned-errors 2 requests ended in an error during a planned outage or restart"
	for _, c := range []struct {
		name               string
		failed, prescribed int
		outage             bool
		want               []string
	}{
		{"one in a thousand", 1, 0, false, nil},
		{"two", 2, 0, false, []string{"errors 0.20 % of requests ended in an error, the first: gone"}},
		{"during an outage", 2, 0, true, []string{planned}},
		{"also outside of it", 4, 0, true, []string{"errors 0.20 % of requests ended in an error, the first: gone", planned}},
		{"one outside of it", 3, 0, true, []string{planned}},
		{"prescribed", 2, 1, false, []string{"prescribed-errors 1 request ended in an error that the strategy's source " +
			"asks for: gone"}},
		{"prescribed and planned", 5, 2, true,
			[]string{planned, "prescribed-errors 2 requests ended in an error that the strategy's source asks for: gone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Of the give-backs that fail in the outage, none is a request.
			failing := give(oracle.Refund, take(0, 0, 1, oracle.Admitted), 505*ms, 1)
			failing.Outcome = oracle.Failed
			events := [][]oracle.Event{takes(0, 0, 1000-c.failed, oracle.Admitted), {failing, failing, failing}}
			for i := range c.failed {
				at := 500*ms + int64(i)*10
				if i >= 2 {
					at = 700*ms + int64(i)
				}
				events = append(events, takes(0, at, 1, oracle.Failed))
			}
			f := planted(t, quota.Window{}, events...)
			f.Policy.Limit = 2000
			f.Counts.FirstError = errors.New("gone")
			f.Counts.Prescribed.Other = int64(c.prescribed)
			if c.outage {
				f.Outages = []results.Span{{Store: "other", FromNS: 100 * ms, ToNS: 200 * ms},
					{Store: "redis", FromNS: 490 * ms, ToNS: 510 * ms}}
			}
			r, _ := judged(t, f)
			var got []string
			for _, x := range r.Audit.Reasons {
				got = append(got, x.Code+" "+x.Detail)
				if discarded := x.Code == "errors"; discarded != (x.Discards == codes.DiscardsCorrectness) || !discarded &&
					x.Discards != codes.DiscardsNothing {
					t.Errorf("%s discards %s", x.Code, x.Discards)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestAuditOfResults: contention and time-outs are what a strategy does, unless a store
// may be behind the latter. Of 1,000 requests, 20 fail, and the bound is 1.
func TestAuditOfResults(t *testing.T) {
	outages := func(f *Facts) { f.Outages = []results.Span{{Store: "redis", FromNS: 1, ToNS: 2}} }
	for _, c := range []struct {
		name      string
		errors    results.ErrorKinds
		change    func(*Facts)
		discarded string
	}{
		{"contention", results.ErrorKinds{Contention: 20}, nil, ""},
		{"contention beside an outage", results.ErrorKinds{Contention: 20}, outages, ""},
		{"time-outs", results.ErrorKinds{TimeOuts: 20}, nil, ""},
		{"time-outs beside an outage", results.ErrorKinds{TimeOuts: 20}, outages, "2.00 %"},
		{"time-outs of a store that is not watched", results.ErrorKinds{TimeOuts: 20}, func(f *Facts) {
			f.Unwatched = true
		}, "2.00 %"},
		{"prescribed ones of it", results.ErrorKinds{TimeOuts: 20}, func(f *Facts) {
			f.Unwatched = true
			f.Counts.Prescribed.TimeOuts = 20
		}, ""},
		{"store", results.ErrorKinds{Store: 20}, nil, "2.00 %"},
		{"all", results.ErrorKinds{Contention: 5, TimeOuts: 5, Store: 5, Other: 5}, nil, "1.00 %"},
	} {
		f := planted(t, quota.Window{}, takes(0, 0, 980, oracle.Admitted), takes(0, 500*ms, 20, oracle.Failed))
		f.Policy.Limit = 2000
		f.Counts.Errors = c.errors
		if c.change != nil {
			c.change(f)
		}
		r, _ := judged(t, f)
		detail := ""
		for _, x := range r.Audit.Reasons {
			if x.Code == "errors" {
				detail = x.Detail
			}
		}
		if r.Audit.Valid != (c.discarded == "") || !strings.HasPrefix(detail, c.discarded) || *r.ErrorKinds != c.errors {
			t.Errorf("%s: %+v, audit %+v, want %q", c.name, r.ErrorKinds, r.Audit, c.discarded)
		}
	}
}

// TestErrorsKeepBelowTheLimit: of 16 units asked for, 8 were decided on, and the limit
// is 10. Errors that are the strategy's own are no mistake of the run.
func TestErrorsKeepBelowTheLimit(t *testing.T) {
	for _, c := range []struct {
		name   string
		failed int
		want   string
	}{
		{"contention keeps it", 8, codes.DiscardsNothing},
		{"too little was asked for", 2, codes.DiscardsCorrectness},
	} {
		f := planted(t, second, takes(0, 0, 8, oracle.Admitted), takes(0, ms, c.failed, oracle.Failed))
		f.Counts.Errors = results.ErrorKinds{Contention: int64(c.failed)}
		f.Plan.Workload.Crosses = true
		r, _ := judged(t, f)
		discards := ""
		for _, x := range r.Audit.Reasons {
			if x.Code == "limit-never-crossed" {
				discards = x.Discards
			}
		}
		if discards != c.want || r.Audit.Valid != (c.want == codes.DiscardsNothing) {
			t.Errorf("%s: %+v", c.name, r.Audit)
		}
	}
}

// TestFailures: what counts as a result, and what is suspect.
func TestFailures(t *testing.T) {
	var f Failures
	odd := errors.New("odd")
	for _, err := range []error{
		fmt.Errorf("lost: %w", strategies.ErrContention), strategies.ErrPrescribed,
		fmt.Errorf("%w: %w", strategies.ErrPrescribed, context.DeadlineExceeded),
		fmt.Errorf("late: %w", context.DeadlineExceeded), odd,
	} {
		f.Count(err)
	}
	var all Failures
	all.Add(f)
	all.Add(Failures{Errors: results.ErrorKinds{Store: 1}, Suspect: odd})
	if want := (results.ErrorKinds{Contention: 1, TimeOuts: 2, Store: 1, Other: 2}); all.Errors != want {
		t.Errorf("errors %+v, want %+v", all.Errors, want)
	}
	if want := (results.ErrorKinds{Contention: 1, TimeOuts: 1, Other: 1}); all.Prescribed != want {
		t.Errorf("prescribed %+v, want %+v", all.Prescribed, want)
	}
	if !errors.Is(all.Suspect, context.DeadlineExceeded) {
		t.Errorf("suspect %v", all.Suspect)
	}
}

// TestNothingAdmitted: that no limit was crossed discards a run that was to cross
// one, unless the strategy's source asked for an error each time.
func TestNothingAdmitted(t *testing.T) {
	const never = "limit-never-crossed"
	for _, c := range []struct {
		name               string
		failed, prescribed int
		want               []string
		valid              bool
	}{
		{"all prescribed", 20, 20, []string{"prescribed-errors", "nothing-admitted"}, true},
		{"one not prescribed", 20, 19, []string{"errors", "prescribed-errors", never}, false},
		{"half of them prescribed", 20, 10, []string{"errors", "prescribed-errors", never}, false},
		{"nothing issued", 0, 0, []string{"nothing-issued", never}, false},
	} {
		f := planted(t, second, takes(0, 0, c.failed, oracle.Failed))
		f.Counts.FirstError = errors.New("gone")
		f.Counts.Prescribed.Other = int64(c.prescribed)
		f.Plan.Workload.Crosses = true
		r, _ := judged(t, f)
		var got []string
		for _, x := range r.Audit.Reasons {
			got = append(got, x.Code)
		}
		if !slices.Equal(got, c.want) || r.Audit.Valid != c.valid {
			t.Errorf("%s: found %v, want %v, valid %t", c.name, got, c.want, r.Audit.Valid)
		}
	}
}

// TestOutageExplains has errors at the ends of an outage from 100 to 200 ns, of
// which broken connections are found for 20 more.
func TestOutageExplains(t *testing.T) {
	for _, c := range []struct {
		call, reply int64
		want        bool
	}{{90, 99, false}, {90, 100, true}, {150, 160, true}, {220, 300, true}, {221, 300, false}} {
		e := oracle.Event{Call: c.call, Reply: c.reply}
		if got := explains(results.Span{FromNS: 100, ToNS: 200}, &e, 20); got != c.want {
			t.Errorf("an error in [%d, %d] is explained: %t", c.call, c.reply, got)
		}
	}
}

// TestAway counts what was answered while a store was away for all or for some, and when it decided again.
func TestAway(t *testing.T) {
	f := &Facts{Tiers: []string{"", "process", "redis"}, Outages: []results.Span{
		{Store: "redis.2", FromNS: 100, ToNS: 200, Away: [2]int64{110, 190}},
		{Store: "redis", Network: "redis/1:loss=1", FromNS: 100, ToNS: 200}, {Store: "postgres", FromNS: 100, ToNS: 200},
	}}
	j := judgement{Facts: f, recovered: make([]int64, 3)}
	for _, e := range []oracle.Event{
		{Call: 101, Reply: 150, Outcome: oracle.Admitted, Tier: 2}, // perhaps before it went
		{Call: 120, Reply: 150, Outcome: oracle.Admitted, Tier: 2},
		{Call: 120, Reply: 150, Outcome: oracle.Rejected, Tier: 2},
		{Call: 120, Reply: 150, Outcome: oracle.Admitted, Tier: 1},
		{Call: 120, Reply: 150, Outcome: oracle.RejectedDegraded, Tier: 1},
		// perhaps when it was back
		{Call: 120, Reply: 150, Outcome: oracle.Failed}, {Call: 120, Reply: 195, Outcome: oracle.Rejected, Tier: 2},
		{Call: 210, Reply: 220, Outcome: oracle.RejectedDegraded, Tier: 2},
		{Call: 210, Reply: 230, Outcome: oracle.Admitted, Tier: 1},
		{Call: 180, Reply: 260, Outcome: oracle.Rejected, Tier: 2},
		{Call: 210, Reply: 240, Outcome: oracle.Admitted, Tier: 2},
	} {
		for k := range f.Outages {
			j.away(k, &e)
		}
	}
	for k, want := range [][6]int64{{3, 3, 1, 1, 1, 40}, {3, 3, 1, 0, 0, 0}, {3, 3, 1, 0, 0, 0}} {
		s := &f.Outages[k]
		if got := [6]int64{s.Admitted, s.Rejected, s.Errors, s.AdmittedByStore, s.RejectedByStore,
			j.recovered[k]}; got != want {
			t.Errorf("%s: %v, want %v", s.Store, got, want)
		}
	}
}
