package verdict_test

import (
	"reflect"
	"testing"
	"time"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/internal/verdict"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// leaked is the verdict on a history in which one window leaked between so many units for certain and at most.
func leaked(certain, possible int64) *oracle.Verdict {
	return &oracle.Verdict{LeakWorst: certain, LeakPossibleWorst: possible, Crossings: 1}
}

func bounded(units int64) func(quota.Params) int64 { return func(quota.Params) int64 { return units } }

// TestClausesByVerdict: which of the three verdicts a clause is checked against, and which clauses are left out.
func TestClausesByVerdict(t *testing.T) {
	own := leaked(1, 1)
	byStores := leaked(2, 2)
	rolling := leaked(3, 3)
	crash := []quota.Fault{quota.FaultCrash}
	both := []quota.Fault{quota.FaultCrash, quota.FaultClock}
	for name, c := range map[string]struct {
		clause   quota.Clause
		happened []quota.Fault
		verdicts verdict.Verdicts
		certain  int64 // -1 if the clause is left out
	}{
		"by the instances' clocks": {clause: quota.Clause{Clock: "instance"}, certain: 1},
		"by no clock":              {certain: 1},
		"by a store's clock":       {clause: quota.Clause{Clock: "redis"}, certain: 2},
		"of this kind":             {clause: quota.Clause{Kinds: []quota.Kind{quota.Fixed}}, certain: 1},
		"of another kind":          {clause: quota.Clause{Kinds: []quota.Kind{quota.Bucket}}, certain: -1},
		"of rolling windows":       {clause: quota.Clause{Kinds: []quota.Kind{quota.Rolling}}, certain: 3},
		"of both kinds":            {clause: quota.Clause{Kinds: []quota.Kind{quota.Rolling, quota.Fixed}}, certain: 1},
		"of rolling windows that are not judged": {clause: quota.Clause{Kinds: []quota.Kind{quota.Rolling}},
			verdicts: verdict.Verdicts{Own: own, Stores: byStores}, certain: -1},
		"under a fault":                   {happened: crash, certain: -1},
		"under a fault that it tolerates": {clause: quota.Clause{Tolerates: both}, happened: crash, certain: 1},
		"under one fault too many":        {clause: quota.Clause{Tolerates: crash}, happened: both, certain: -1},
	} {
		c.clause.Property = quota.PropertyLeak
		c.clause.Bound = bounded(0)
		if c.verdicts.Own == nil {
			c.verdicts = verdict.Verdicts{Own: own, Stores: byStores, Rolling: rolling}
		}
		got := verdict.Clauses([]quota.Clause{c.clause}, quota.Fixed, c.happened, quota.Params{}, c.verdicts)
		switch {
		case c.certain < 0 && len(got) > 0:
			t.Errorf("%s: %+v, want none", name, got)
		case c.certain >= 0 && (len(got) != 1 || got[0].Certain != c.certain):
			t.Errorf("%s: %+v, want one with %d units", name, got, c.certain)
		}
	}
}

// TestDecision: what a record says of a clause, by its bound and by what happened.
func TestDecision(t *testing.T) {
	offered := func(params quota.Params) int64 { return params.Offered }
	params := quota.Params{Limit: 10, Offered: 50}
	for name, c := range map[string]struct {
		bound   func(quota.Params) int64
		verdict *oracle.Verdict
		units   int64
		want    string
	}{
		"kept":              {bounded(2), leaked(1, 2), 2, results.Kept},
		"broken":            {bounded(2), leaked(3, 4), 2, results.Broken},
		"undecided":         {bounded(2), leaked(2, 3), 2, results.Undecided},
		"not exercised":     {bounded(2), &oracle.Verdict{}, 2, results.NotExercised},
		"all that is asked": {offered, leaked(9, 9), quota.Unbounded, results.NoPromise},
		"of the parameters": {func(params quota.Params) int64 { return params.Limit }, leaked(9, 9), 10, results.Kept},
	} {
		clause := quota.Clause{Property: quota.PropertyLeak, Formula: "B", Source: "ADR-1", Says: "it holds",
			Tolerates: []quota.Fault{quota.FaultCrash}, Bound: c.bound}
		want := results.Clause{Property: "leak", Formula: "B", Source: "ADR-1", Says: "it holds", Tolerates: []string{"crash"},
			Bound: c.units, Certain: c.verdict.LeakWorst, Possible: c.verdict.LeakPossibleWorst, Verdict: c.want}
		got := verdict.Clauses([]quota.Clause{clause}, quota.Fixed, nil, params, verdict.Verdicts{Own: c.verdict})
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestParams(t *testing.T) {
	policy := quota.Policy{Limit: 7}
	got := verdict.Params(&policy, &oracle.Verdict{MaxCost: 2, MaxDeciding: 1, MaxInFlight: 3, MaxOffered: 4, MaxSpan: 5})
	want := quota.Params{Limit: 7, MaxCost: 2, Deciding: 1, InFlight: 3, Offered: 4, Unsynced: 5, Policy: &policy}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLengths(t *testing.T) {
	february := time.Date(2027, time.February, 10, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"5 calls per calendar month":   28 * 24 * time.Hour,
		"5 calls per fixed 90s":        90 * time.Second,
		"5 calls per rolling 15m":      15 * time.Minute,
		"10 calls refilling 5 per 1s":  2 * time.Second,
		"5 calls at a time":            0,
		"5 calls per first-request 1h": time.Hour,
	} {
		policy := testkit.Policy(t, text)
		if got := verdict.Length(&policy, february); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	month := quota.Window{Kind: quota.CalendarMonth}
	want := quota.Window{Kind: quota.Rolling, Length: 28 * 24 * time.Hour}
	if got := verdict.RollingWindow(month, february); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestByOwnClocks shifts events by clocks that are ahead by 10 ns and behind by 5 ns. An event while a clock steps is
// as long as both clocks allow.
func TestByOwnClocks(t *testing.T) {
	skews := []time.Duration{10, -5}
	stepped := []int64{100, 100}
	for name, c := range map[string]struct {
		instance              uint8
		from                  []int64
		call, reply           int64
		wantedCall, wantedEnd int64
	}{
		"ahead":                {0, nil, 1, 2, 11, 12},
		"behind":               {1, nil, 1, 2, -4, -3},
		"no clock":             {2, nil, 1, 2, 1, 2},
		"before the step":      {0, stepped, 98, 99, 98, 99},
		"after the step":       {0, stepped, 100, 101, 110, 111},
		"amid a step":          {0, stepped, 99, 100, 99, 110},
		"amid a step backward": {1, stepped, 99, 100, 94, 100},
	} {
		take := oracle.Event{Instance: c.instance, Call: c.call, Reply: c.reply, TakeCall: 3, TakeReply: 4}
		refund := oracle.Event{Instance: c.instance, Kind: oracle.Refund, Call: 101, Reply: 102, TakeCall: c.call,
			TakeReply: c.reply}
		events := []oracle.Event{take, refund}
		verdict.ByOwnClocks(events, skews, c.from)
		take.Call = c.wantedCall
		take.Reply = c.wantedEnd
		if events[0] != take {
			t.Errorf("%s: a take is %+v, want %+v", name, events[0], take)
		}
		if events[1].TakeCall != c.wantedCall || events[1].TakeReply != c.wantedEnd {
			t.Errorf("%s: the take of a refund is %+v, want %+v", name, events[1], take)
		}
	}
}

func TestMaxSkew(t *testing.T) {
	for _, c := range []struct {
		skews     []time.Duration
		instances int
		want      time.Duration
	}{
		{nil, 3, 0},
		{[]time.Duration{5}, 1, 0},
		{[]time.Duration{5}, 2, 5},
		{[]time.Duration{-3, 4}, 3, 7},
		{[]time.Duration{2, 4}, 2, 2},
		{[]time.Duration{2, 4, 90}, 2, 2},
	} {
		if got := verdict.MaxSkew(c.skews, c.instances); got != c.want {
			t.Errorf("%v of %d instances: %v, want %v", c.skews, c.instances, got, c.want)
		}
	}
}
