package harness

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// TestPlantedFigures plants 5 leaked units and two false rejects of 2 units each in
// one window of four subjects.
func TestPlantedFigures(t *testing.T) {
	f := planted(t, second,
		takes(0, 0, 13, oracle.Admitted), takes(0, 1000, 7, oracle.Rejected), // 3 over, 10 over the quota
		takes(1, 0, 10, oracle.Admitted), takes(1, 1000, 5, oracle.RejectedDegraded), // none over
		[]oracle.Event{take(2, 0, 2, oracle.Admitted), take(2, 10, 2, oracle.Admitted), take(2, 20, 2, oracle.Admitted),
			take(2, 30, 2, oracle.Admitted)},
		takes(3, 0, 3, oracle.Admitted),
		[]oracle.Event{take(3, 1000, 2, oracle.Rejected), take(3, 1010, 2, oracle.Rejected), take(3, 2000, 1, oracle.Failed)},
	)
	f.Initial = func(s uint32) int64 { return map[uint32]int64{2: 4}[s] } // 4 + 8 units: 2 over
	f.Counts.Degraded = 5
	f.Counts.FirstError = errors.New("gone")
	f.Partial = true
	seen := map[uint32]int{}
	r, v := judged(t, f, func(events []oracle.Event) { seen[events[0].Subject] = len(events) })
	leak := results.Leak{
		Units: 5, Possible: 5, PctOfLimit: 100 * 5. / 30, PctOfOverQuota: 100 * 5. / 17, OverQuotaUnits: 17,
		Requests: 4, WorstUnits: 3, Subjects: 2, Trials: 3, LeakedTrials: 2, MedianUnits: 2,
	}
	if r.Leak != leak {
		t.Errorf("leak\n%+v, want\n%+v", r.Leak, leak)
	}
	given := int64(4) // of the 7 units that subject 3 left, as many as it was refused
	if want := (results.FalseRejects{Count: 2, Possible: 2, Units: 4, NeverGiven: &given, LongestNS: 11,
		PctOfValid: 100 * 2. / 28}); !reflect.DeepEqual(r.FalseRejects, want) {
		t.Errorf("false rejects %+v, want %+v", r.FalseRejects, want)
	}
	if r.Issued != 45 || r.Admitted != 30 || r.Rejected != 14 || r.Errors != 1 || r.Degraded != 5 ||
		r.FirstError != "gone" || !r.Partial {
		t.Errorf("counts: %+v", r)
	}
	if v.LeakUnits != 5 || r.Drift != nil || r.Rolling != nil || r.Settlement != nil {
		t.Errorf("leak of %d in the verdict, drift %+v, rolling %+v, settlement %+v", v.LeakUnits, r.Drift, r.Rolling,
			r.Settlement)
	}
	if want := map[uint32]int{0: 20, 1: 15, 2: 4, 3: 6}; !reflect.DeepEqual(seen, want) {
		t.Errorf("visitors saw %v, want %v", seen, want)
	}
}

// TestPlantedLeakOfTiers: the cache lets 3 units through over the limit of one subject and 2 of another, the
// database 1; the filter decides and lets none through. A kept history says the same.
func TestPlantedLeakOfTiers(t *testing.T) {
	by := func(tier uint8, events []oracle.Event) []oracle.Event {
		for i := range events {
			events[i].Tier = tier
		}
		return events
	}
	f := planted(t, second, by(2, takes(0, 0, 10, oracle.Admitted)), by(3, takes(0, 1000, 1, oracle.Admitted)),
		by(2, takes(0, 2000, 3, oracle.Admitted)),
		by(1, takes(0, 3000, 5, oracle.Rejected)), by(2, takes(1, 0, 12, oracle.Admitted)))
	f.Tiers = []string{"", "filter", "cache", "database"}
	f.Plan.Archive = t.TempDir()
	r, _ := judged(t, f)
	want := map[string]int64{"filter": 0, "cache": 5, "database": 1}
	if r.Leak.Units != 6 || !maps.Equal(r.LeakTiers, want) {
		t.Errorf("%d units leaked, by tier %v, want %v", r.Leak.Units, r.LeakTiers, want)
	}
	summary := results.Summarise([]results.Run{r, r})[0]
	if summary.LeakTiers["cache"] != 10 || r.LeakTiers["cache"] != 5 {
		t.Errorf("two rounds leaked %v", summary.LeakTiers)
	}
	file, err := oracle.OpenHistory(filepath.Join(f.Plan.Archive, r.HistoryName()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if again, err := JudgeFile(file); err != nil || !maps.Equal(again.LeakTiers, want) {
		t.Errorf("judged again: %v, %v", again.LeakTiers, err)
	}
}

// TestPlantedLongestWrong: the filter rejects the first of 10 units for 2,001 ns, and the cache one of them once.
func TestPlantedLongestWrong(t *testing.T) {
	var events []oracle.Event
	for i, at := range []int64{0, 1000, 2000, 9000} {
		e := takes(0, at, 1, oracle.Rejected)[0]
		e.Tier = []uint8{1, 1, 1, 2}[i]
		events = append(events, e)
	}
	f := planted(t, second, events)
	f.Tiers = []string{"", "filter", "cache"}
	r, _ := judged(t, f)
	want := events[2].Reply - events[0].Call
	shorter := r
	shorter.FalseRejects.LongestNS = want / 2
	shorter.FalseRejects.LongestTier = "cache"
	s := results.Summarise([]results.Run{shorter, r, shorter})[0]
	for _, x := range []results.FalseRejects{r.FalseRejects, s.FalseRejects} {
		if want < 2000 || x.LongestNS != want || x.LongestTier != "filter" {
			t.Errorf("%d ns by %q, want %d by the filter", x.LongestNS, x.LongestTier, want)
		}
	}
}

// TestPlantedOutages: requests count in an outage that they were made and answered in.
func TestPlantedOutages(t *testing.T) {
	astride := take(1, 995, 1, oracle.Admitted)
	astride.Reply = 1005
	f := planted(t, second,
		takes(0, 0, 2, oracle.Admitted), takes(0, 1000, 3, oracle.Admitted), takes(0, 1100, 4, oracle.Rejected),
		takes(0, 1200, 5, oracle.RejectedDegraded), takes(0, 1300, 6, oracle.Failed), takes(0, 2500, 7, oracle.Rejected),
		[]oracle.Event{astride},
	)
	f.Outages = []results.Span{{Store: "redis", FromNS: 1000, ToNS: 2000}, {Store: "postgres", FromNS: 2500, ToNS: 2521}}
	r, _ := judged(t, f)
	want := []results.Span{
		{Store: "redis", FromNS: 1000, ToNS: 2000, Admitted: 3, Rejected: 9, Errors: 6},
		{Store: "postgres", FromNS: 2500, ToNS: 2521, Rejected: 3},
	}
	if !reflect.DeepEqual(r.Outages, want) {
		t.Errorf("outages\n%+v, want\n%+v", r.Outages, want)
	}
}

// TestNoFigures: shares of nothing are 0.
func TestNoFigures(t *testing.T) {
	r, _ := judged(t, planted(t, second))
	if r.Leak != (results.Leak{}) || r.FalseRejects.PctOfValid != 0 || r.Issued != 0 || r.FirstError != "" || r.Partial {
		t.Errorf("%+v", r)
	}
	r, _ = judged(t, planted(t, second, takes(0, 0, 10, oracle.Admitted)))
	if r.Leak != (results.Leak{}) || !r.FalseRejects.Explained {
		t.Errorf("leak %+v, false rejects %+v", r.Leak, r.FalseRejects)
	}
}

// TestPlantedExcursion has 2 units above the limit for a second and a half, and a
// commit that uses 3 more than it reserved.
func TestPlantedExcursion(t *testing.T) {
	over := take(0, 10, 2, oracle.Admitted)
	overran := take(1, 0, 1, oracle.Admitted)
	f := planted(t, quota.Window{},
		[]oracle.Event{take(0, 0, 10, oracle.Admitted), over, give(oracle.Refund, over, 11+1500*ms, 2)},
		[]oracle.Event{overran, give(oracle.Commit, overran, 100, -3)})
	run := results.Run{Correctness: results.Correctness{Settlement: &results.Settlement{Commits: 1}}}
	if _, err := judge(&run, f, t.Context().Err, nil); err != nil {
		t.Fatal(err)
	}
	if l := run.Leak; l.Excursions != 1 || !near(l.UnitSeconds, 3) || l.Units != 2 {
		t.Errorf("leak %+v", l)
	}
	if want := (results.Settlement{Commits: 1, OverrunUnits: 3}); !reflect.DeepEqual(*run.Settlement, want) {
		t.Errorf("settlement %+v", run.Settlement)
	}
}

// TestPlantedBurst has the limit used up on both sides of a window's end, which
// only rolling windows can see.
func TestPlantedBurst(t *testing.T) {
	burst := func(last int) [][]oracle.Event {
		return [][]oracle.Event{takes(0, 900*ms, 10, oracle.Admitted), takes(0, 1100*ms, last, oracle.Admitted)}
	}
	judge := func(w quota.Window, boundary bool, events [][]oracle.Event) *results.Rolling {
		f := planted(t, w, events...)
		f.Plan.Workload = &workloads.Meta{Name: "burst", Boundary: boundary}
		r, v := judged(t, f)
		if v.LeakUnits != 0 && w.Kind == quota.Fixed {
			t.Errorf("%d units leaked in fixed windows", v.LeakUnits)
		}
		return r.Rolling
	}
	if r := judge(second, true, burst(10)); r == nil ||
		*r != (results.Rolling{WorstUnits: 20, Multiple: 2, Units: 10, Possible: 10}) {
		t.Errorf("a burst of twice the limit: %+v", r)
	}
	if r := judge(second, true, burst(0)); r == nil || *r != (results.Rolling{WorstUnits: 10, Multiple: 1}) {
		t.Errorf("the limit: %+v", r)
	}
	if r := judge(second, true, [][]oracle.Event{takes(0, 0, 4, oracle.Admitted)}); r == nil ||
		*r != (results.Rolling{WorstUnits: 4, Multiple: 0.4}) {
		t.Errorf("less than the limit: %+v", r)
	}
	if r := judge(second, false, burst(10)); r != nil {
		t.Errorf("no boundary was asked for: %+v", r)
	}
	for _, kind := range []quota.Kind{quota.Standing, quota.Rolling} {
		if r := judge(quota.Window{Kind: kind, Length: time.Second}, true, burst(10)); r != nil {
			t.Errorf("%v windows have no ends: %+v", kind, r)
		}
	}
}

// TestOwnClocks: instance 1 is ahead by 0.6 s, so by its own clock what it
// admits in the second half of window 0 belongs to window 1.
func TestOwnClocks(t *testing.T) {
	ten := take(0, 500*ms, 10, oracle.Admitted)
	gave := []oracle.Event{ten, give(oracle.Refund, ten, 600*ms, 5), take(0, 700*ms, 5, oracle.Admitted)}
	var params quota.Params
	clauses := []quota.Clause{
		{Property: quota.PropertyLeak, Formula: "own", Tolerates: []quota.Fault{quota.FaultClock},
			Bound: func(p quota.Params) int64 {
				params = p
				return 3
			}},
		quota.Exactly(quota.FaultOutage),
	}
	f := planted(t, second, takes(0, 0, 8, oracle.Admitted), by(1, gave), takes(0, 1200*ms, 4, oracle.Admitted),
		by(2, takes(1, 0, 1, oracle.Admitted)))
	f.Selection.Guarantee = clauses
	f.Instances = 3
	f.Skews = []time.Duration{0, 600 * time.Millisecond}
	r, v := judged(t, f)
	if v.LeakUnits != 8 {
		t.Errorf("%d units leaked, want 8: of 8, 10 and 5 at once, 5 are given back", v.LeakUnits)
	}
	// By its own clock, window 1 has 10 - 5 + 5 of instance 1 and 4 of instance 0.
	want := []results.Clause{{Property: "leak", Formula: "own", Tolerates: []string{"clock"}, Bound: 3, Certain: 4,
		Possible: 4, Verdict: results.Broken}}
	if !reflect.DeepEqual(r.Guarantee, want) {
		t.Errorf("guarantee %+v", r.Guarantee)
	}
	if params.Skew != 600*time.Millisecond {
		t.Errorf("a skew of %v", params.Skew)
	}
	found := results.Reason{
		Code: codes.ClocksDiffer, Discards: codes.DiscardsNothing, Short: "instances' clocks differ by up to 600ms",
		Detail: "instances' clocks differ by up to 600ms: by their own clocks, the leak is 4 units, and false rejects are 0",
	}
	if len(r.Audit.Reasons) != 1 || r.Audit.Reasons[0] != found || !r.Audit.Valid {
		t.Errorf("audit %+v", r.Audit)
	}
}

// TestOwnClocksAreInOrder: by the clock of instance 0 its requests came before those of instance 1, in another window.
func TestOwnClocksAreInOrder(t *testing.T) {
	f := planted(t, second, takes(0, 1100*ms, 5, oracle.Admitted), by(1, takes(0, 1100*ms+15, 10, oracle.Admitted)),
		takes(0, 1100*ms+200, 5, oracle.Admitted))
	f.Selection.Guarantee = []quota.Clause{quota.Exactly(quota.FaultClock)}
	f.Instances = 2
	f.Skews = []time.Duration{-time.Second}
	if r, v := judged(t, f); v.LeakUnits != 10 || len(r.Guarantee) != 1 || r.Guarantee[0].Certain != 0 {
		t.Errorf("leak %d, guarantee %+v, want 10 units by the true clock and none by their own", v.LeakUnits, r.Guarantee)
	}
}

// TestOwnClocksOfReplies: the moments of replies and of takes that are given back
// are moved like those of calls.
func TestOwnClocksOfReplies(t *testing.T) {
	e := oracle.Event{Instance: 1, Kind: oracle.Refund, Call: 100, Reply: 130, TakeCall: 50, TakeReply: 70, Units: 1}
	f := planted(t, second, []oracle.Event{e, {Instance: 2, Call: 200, Reply: 210}, {Instance: 1, Call: 300, Reply: 340}})
	f.Skews = []time.Duration{5, 7}
	j := judgement{Facts: f}
	var got []oracle.Event
	for events, err := range j.shifted() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, events...)
	}
	e.Call = 107
	e.Reply = 137
	e.TakeCall = 57
	e.TakeReply = 77
	if want := []oracle.Event{e, {Instance: 2, Call: 200, Reply: 210},
		{Instance: 1, Call: 307, Reply: 347}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for range j.shifted() {
		break // a consumer may stop
	}
}

// TestOwnClocksThatStep: what a clock showed after it stepped is moved, and what was asked meanwhile may have been
// decided by either.
func TestOwnClocksThatStep(t *testing.T) {
	f := planted(t, second, []oracle.Event{
		{Call: 100, Reply: 199}, {Call: 150, Reply: 250}, {Call: 200, Reply: 260}, {Instance: 1, Call: 100, Reply: 110},
		{Instance: 2, Call: 190, Reply: 210},
		{Kind: oracle.Refund, Call: 300, Reply: 310, TakeCall: 100, TakeReply: 199, Units: 1},
	})
	f.Instances = 4
	f.Skews = []time.Duration{-50, 7, 40}
	f.SkewFrom = []int64{200, math.MinInt64, 200}
	want := []oracle.Event{
		{Call: 100, Reply: 199}, {Call: 100, Reply: 250}, {Instance: 1, Call: 107, Reply: 117}, {Call: 150, Reply: 210},
		{Instance: 2, Call: 190, Reply: 250},
		{Kind: oracle.Refund, Call: 250, Reply: 260, TakeCall: 100, TakeReply: 199, Units: 1},
	}
	j := judgement{Facts: f}
	for got, err := range j.shifted() {
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
		}
	}
	if j.skew() != 90 {
		t.Errorf("clocks differ by %v, want 90 ns, from 50 behind to 40 ahead", j.skew())
	}
	f.Instances = 1
	f.Skews = []time.Duration{-50}
	f.SkewFrom = []int64{200}
	if j.skew() != 50 {
		t.Errorf("one that stepped differs from itself by %v", j.skew())
	}
}

// TestOneWrongClock: a clock is wrong though there is no other one that it could differ from, and a clause is judged by
// it alone.
func TestOneWrongClock(t *testing.T) {
	f := planted(t, second, takes(0, 0, 10, oracle.Admitted), takes(0, 600*ms, 10, oracle.Admitted))
	f.Selection.Guarantee = []quota.Clause{quota.Exactly(), quota.Exactly(quota.FaultClock)}
	f.Skews = []time.Duration{500 * time.Millisecond}
	f.SkewFrom = []int64{math.MinInt64}
	r, v := judged(t, f)
	if v.LeakUnits != 10 || len(r.Guarantee) != 1 || r.Guarantee[0].Certain != 0 || len(r.Guarantee[0].Tolerates) != 1 {
		t.Errorf("a leak of %d, guarantee %+v: want 10 units by the true clock, and none by its own", v.LeakUnits,
			r.Guarantee)
	}
}

func TestSkew(t *testing.T) {
	for _, c := range []struct {
		instances int
		skews     []time.Duration
		want      time.Duration
	}{
		{1, []time.Duration{5}, 0}, {2, []time.Duration{5, 5}, 0}, {2, []time.Duration{5}, 5}, {3, []time.Duration{5, -2}, 7},
		{2, []time.Duration{-5, -3}, 2}, {2, []time.Duration{3, 5, 50}, 2}, {0, nil, 0},
	} {
		j := judgement{Facts: &Facts{Instances: c.instances, Skews: c.skews}}
		if got := j.skew(); got != c.want {
			t.Errorf("clocks of %d instances that are ahead by %v differ by %v, want %v", c.instances, c.skews, got, c.want)
		}
	}
}

// TestBrokenHistories: what cannot be read is an error, and no figure.
func TestBrokenHistories(t *testing.T) {
	gone := errors.New("gone")
	for _, c := range []struct {
		name   string
		broken broken
		skews  []time.Duration
		want   string
	}{
		{"judge", broken{judge: gone}, nil, "judge the history: gone"},
		{"rolling", broken{judge: gone, judgements: 1}, nil, "judge the history with rolling windows: gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := planted(t, second, takes(0, 0, 1, oracle.Admitted))
			f.Plan.Workload = &workloads.Meta{Boundary: true}
			c.broken.history = f.History
			f.History = &c.broken
			var run results.Run
			if _, err := judge(&run, f, t.Context().Err, nil); !errors.Is(err, gone) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	f := planted(t, second, takes(0, 0, 1, oracle.Admitted))
	f.Instances = 2
	f.Skews = []time.Duration{5}
	f.History = &broken{history: f.History, subjects: gone}
	j := judgement{Facts: f, run: &results.Run{}}
	if _, err := j.ownClocks(); !errors.Is(err, gone) ||
		!strings.HasPrefix(err.Error(), "judge the history by the instances' clocks") {
		t.Errorf("%v", err)
	}
}

// TestRoomOfKinds: room that was never given is known of windows whose places do not depend on requests.
func TestRoomOfKinds(t *testing.T) {
	for _, k := range quota.Kinds() {
		var run results.Run
		correctness(&run, &oracle.Verdict{}, &quota.Policy{Window: quota.Window{Kind: k}})
		if known := run.FalseRejects.NeverGiven != nil; known != (k.Tumbling() || k == quota.Rolling) {
			t.Errorf("%v: known %t", k, known)
		}
	}
}

// answered is an error as clients of Redis return it.
type answered string

func (a answered) Error() string { return string(a) }
func (answered) RedisError()     {}

// TestRedisCode: an error of Redis has its code, whatever is wrapped around it, and others have none.
func TestRedisCode(t *testing.T) {
	f := planted(t, second)
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("reserving for a: %w", answered("CROSSSLOT Keys in request don't hash to the same slot")), "CROSSSLOT"},
		{answered("redis: nil"), ""},
		{errors.New("EOF is no answer"), ""},
	} {
		f.Counts.FirstError = c.err
		if r, _ := judged(t, f); r.FirstErrorCode != c.want {
			t.Errorf("%v has the code %q, want %q", c.err, r.FirstErrorCode, c.want)
		}
	}
}
