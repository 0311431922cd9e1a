package claims

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// faulty is a record of one strategy with these rounds, each valid unless it says otherwise.
func faulty(rounds ...results.Run) *Record {
	for i := range rounds {
		r := &rounds[i]
		r.Strategy = "planted"
		r.Repetition = i + 1
		r.Issued = 600
		r.Admitted = 360
		r.Audit.Valid = len(r.Audit.Reasons) == 0 || r.Audit.Reasons[0].Discards != codes.DiscardsCorrectness
	}
	f := &results.File{Kind: results.Measured, Runs: rounds}
	f.Summaries = results.Summarise(rounds)
	return &Record{File: f}
}

// TestCells plants what a strategy did under a fault, and wants the verdict on what it declares.
func TestCells(t *testing.T) {
	leak := func(verdict string) []results.Clause {
		return []results.Clause{{Property: string(quota.PropertyLeak), Formula: "L", Verdict: verdict, Certain: 7, Possible: 9}}
	}
	promised := func(verdict string, run results.Run) results.Run {
		run.Guarantee = leak(verdict)
		return run
	}
	degraded := func(all, admitted int64) (run results.Run) {
		run.Degraded = all
		run.DegradedAdmitted = admitted
		return run
	}
	overwritten := func(run results.Run) results.Run {
		run.Overwritten = 4
		return run
	}
	away := func(admitted, rejected int64) (run results.Run) {
		run.Outages = []results.Span{{Store: "redis", Admitted: admitted, Rejected: rejected, AdmittedByStore: admitted,
			RejectedByStore: rejected}}
		return run
	}
	invalid := results.Audit{Reasons: []results.Reason{{Code: "broken", Detail: "it broke",
		Discards: codes.DiscardsCorrectness}}}
	for _, c := range []struct {
		name, down string
		rounds     []results.Run
		want       Verdict
		why        string
		close      bool
	}{
		{"closed, and rejects", "closed", []results.Run{degraded(9, 0)}, Holds, "", false},
		{"closed, and ends in errors", "closed", []results.Run{{Requests: results.Requests{Errors: 9}}}, Holds, "", false},
		{"closed, and spends a lease", "closed",
			[]results.Run{{Disruption: results.Disruption{Outages: []results.Span{{Store: "redis", Admitted: 5}}},
				Requests: results.Requests{Degraded: 1}}}, Holds, "", false},
		{"closed, and admits", "closed", []results.Run{degraded(9, 2)}, Refuted,
			"fail closed, and admitted 2 requests", false},
		{"closed, and admits as if Redis had", "closed", []results.Run{away(3, 0)}, Refuted, "admitted 3 requests",
			false},
		{"open, and admits", "open", []results.Run{degraded(9, 9)}, Holds, "", false},
		{"open, and admits as if Redis had", "open", []results.Run{away(9, 0)}, Holds, "", false},
		{"open, and callers are killed", "open", []results.Run{{
			Requests:   results.Requests{Degraded: 9, Errors: 4, ErrorKinds: &results.ErrorKinds{Killed: 4}},
			Disruption: results.Disruption{DegradedAdmitted: 9},
		}}, Holds, "", false},
		{"open, and rejects", "open", []results.Run{degraded(9, 8)}, Refuted,
			"fail open, and did not admit 1 request ", false},
		{"open, and rejects as if Redis had", "open", []results.Run{away(0, 4)}, Refuted,
			"did not admit 4 requests", false},
		{"open, and ends in errors", "open", []results.Run{{Requests: results.Requests{Errors: 3}}}, Refuted,
			"did not admit 3 requests", false},
		{"no fault", "open", []results.Run{{}}, Undeclared, "", false},
		{"a limit that holds", "", []results.Run{promised(results.Kept, results.Run{})}, Holds, "", false},
		{"a limit that does not", "", []results.Run{promised(results.Broken, results.Run{})}, Refuted,
			"leak L; 7 units certain, 9 possible", false},
		{"closed, and leaks", "closed", []results.Run{promised(results.Broken, degraded(1, 0))}, Refuted, "leak L",
			false},
		{"nobody knows", "closed", []results.Run{promised(results.Undecided, degraded(1, 0))}, Undecided, "leak L",
			false},
		{"no load", "", []results.Run{promised(results.NotExercised, results.Run{})}, Undecided,
			"could not have broken", false},
		{"nothing but errors of its own", "", []results.Run{promised(results.NotExercised, results.Run{
			Requests: results.Requests{Errors: 600}, Audit: results.Audit{
				Reasons: []results.Reason{{Code: "prescribed-errors", Detail: "CROSSSLOT"}}}})}, Undecided, "CROSSSLOT", false},
		{"not tolerated", "", []results.Run{{Promises: results.Promises{NotPromised: []string{"eviction"}}}}, Undeclared,
			"tolerates eviction", false},
		{"overwritten", "closed", []results.Run{promised(results.Undecided, overwritten(results.Run{}))}, Undeclared,
			"somebody else changes", false},
		{"overwritten, and admits", "closed", []results.Run{overwritten(degraded(2, 2))}, Refuted,
			"fail closed", false},
		{"an invalid round", "closed", []results.Run{{Audit: invalid}, degraded(9, 0)}, Holds, "", false},
		{"no valid round", "closed", []results.Run{{Audit: invalid}}, Undecided, "it broke", false},
		{"a round that could not break it", "",
			[]results.Run{promised(results.Kept, results.Run{}), promised(results.NotExercised, results.Run{})}, Holds,
			"not in each", true},
		{"rounds that differ", "",
			[]results.Run{promised(results.Kept, results.Run{}), promised(results.Broken, results.Run{}),
				promised(results.Kept, results.Run{})},
			Refuted, "leak L", true},
	} {
		f := &File{Record: "fault"}
		for i := range c.rounds {
			c.rounds[i].Params.Unit = "units"
		}
		j, err := f.Judge(&Claim{ID: "planted", Cell: &Cell{Run: "r", Label: "planted", Down: c.down}},
			map[string]*Record{"r": faulty(c.rounds...)})
		if err != nil || j.Verdict != c.want || !strings.Contains(j.Why, c.why) || (c.why == "") != (j.Why == "") ||
			j.Close != c.close ||
			j.Fails() != (c.want == Refuted) {
			t.Errorf("%s: %v, %+v, want %s, %q", c.name, err, j, c.want, c.why)
		}
	}
}

// TestLonger plants cells that a run leaves undecided. Each is measured once more, alone and for longer; a violation in
// either run refutes it, and it holds if the longer one could have broken it. The records alone say the same.
func TestLonger(t *testing.T) {
	clause := func(verdict string) results.Run {
		leak := results.Clause{Property: string(quota.PropertyLeak), Formula: "L", Verdict: verdict, Certain: 7, Possible: 9}
		return results.Run{Promises: results.Promises{Guarantee: []results.Clause{leak}}}
	}
	invalid := results.Run{Audit: results.Audit{Reasons: []results.Reason{{Code: "broken", Detail: "it broke",
		Discards: codes.DiscardsCorrectness}}}}
	f := &File{Record: "fault", Longer: "9s",
		Runs: map[string]Run{"r": {Command: "run all", Quick: "--policy \"9 x\" --duration 3s"}}}
	type runs struct {
		first, longer results.Run
		want          Verdict
		why           string
	}
	idle := clause(results.NotExercised)
	open := clause(results.Undecided)
	planted := map[string]runs{
		"idle-holds":  {idle, clause(results.Kept), Holds, "not in each round: the load could not"},
		"idle-breaks": {idle, clause(results.Broken), Refuted, "7 x certain"},
		"open-holds":  {open, clause(results.Kept), Holds, "not in each round: declared is leak L; 7 x certain, 9 possible"},
		"open-stays":  {open, open, Undecided, "9 possible"}, "idle-stays": {idle, idle, Undecided, "could not have broken"},
		"invalid-holds": {invalid, clause(results.Kept), Holds, ""},
		"invalid-stays": {open, invalid, Undecided, "9 possible"},
		"holds":         {first: clause(results.Kept), want: Holds},
		"breaks":        {first: clause(results.Broken), want: Refuted, why: "7 x"},
	}
	names := slices.Sorted(maps.Keys(planted))
	for _, name := range names {
		f.Claims = append(f.Claims, Claim{ID: name, Cell: &Cell{Run: "r", Label: name}})
	}
	records := map[string]*Record{}
	record := func(name string, r results.Run) *Record {
		r.Params.Unit = "x"
		r.Params.Label = name
		x := faulty(r)
		x.File.Runs[0].Strategy = name
		x.File.Summaries = results.Summarise(x.File.Runs)
		return x
	}
	made := 0
	p := &Pass{
		Files: []*File{f}, Begin: func(int, int, []string) {}, Read: func(dir string) *Record { return records[dir] },
		Run: func(_ context.Context, args []string) (int, string) {
			made++
			dir := args[len(args)-1]
			if args[1] != "all" {
				if want := []string{"run", args[1], "--policy", "9 x", "--duration", "3s", "--duration", "9s", "--out",
					dir}; !slices.Equal(args, want) {
					t.Errorf("%q, want %q", args, want)
				}
				records[dir] = record(args[1], planted[args[1]].longer)
				return 0, ""
			}
			whole := &Record{File: &results.File{Kind: results.Measured}}
			for _, name := range names {
				whole.File.Runs = append(whole.File.Runs, record(name, planted[name].first).File.Runs...)
			}
			records[dir] = whole
			return 0, ""
		},
	}
	r, err := p.Judge(t.Context())
	if err != nil || made != 8 || r.Runs != 8 || len(r.Claims) != len(names) {
		t.Fatalf("%v, %d runs made, %+v", err, made, r)
	}
	again, err := (&Pass{Files: []*File{f}, Earlier: r, Read: p.Read}).Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		want := planted[name]
		j := r.Claims[i]
		if j.ID != name || j.Verdict != want.want || !strings.Contains(j.Why, want.why) ||
			(want.why == "") != (j.Why == "") ||
			len(j.Directories) != len(j.Commands) ||
			(len(j.Directories) == 2) != (want.longer.Guarantee != nil || want.longer.Audit.Reasons != nil) {
			t.Errorf("%s: %+v, want %s: %s", name, j, want.want, want.why)
		}
		if !reflect.DeepEqual(again.Claims[i], j) {
			t.Errorf("%s from its records: %+v, want %+v", name, again.Claims[i], j)
		}
	}
}

// TestCellsOfWhoTookNoPart: a strategy that was left out is no failure, and a run that left no record is one.
func TestCellsOfWhoTookNoPart(t *testing.T) {
	claim := &Claim{ID: "other", Cell: &Cell{Run: "r", Label: "other"}}
	r := faulty(results.Run{})
	r.File.Skipped = []results.Skipped{{Strategy: "other", Reason: "it sends no command"}}
	for _, c := range []struct {
		record *Record
		want   Verdict
		why    string
		fails  bool
	}{{r, NotHere, "it sends no command", false}, {&Record{Why: "no server"}, Undecided, "no server", true}} {
		j, err := new(File).Judge(claim, map[string]*Record{"r": c.record})
		if err != nil || j.Verdict != c.want || !strings.Contains(j.Why, c.why) || j.Fails() != c.fails {
			t.Errorf("%v, %+v, want %s", err, j, c.want)
		}
	}
}

// TestRecordWithoutFigures: the reason for a figure that an interrupted run does not have is a whole sentence.
func TestRecordWithoutFigures(t *testing.T) {
	summary, got := (&Record{File: &results.File{}}).Summary("planted")
	want := "the record has no figures: its run ended before them"
	if summary != nil || got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestStrategyNotReached: what a run that has ended early did not measure is undecided, and not left out.
func TestStrategyNotReached(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		r := faulty(results.Run{})
		r.File.Interrupted = interrupted
		j, err := new(File).Judge(&Claim{Cell: &Cell{Run: "r", Label: "another"}}, map[string]*Record{"r": r})
		if want := map[bool]Verdict{false: NotHere, true: Undecided}[interrupted]; err != nil || j.Verdict != want {
			t.Errorf("%v, %+v, want %s", err, j, want)
		}
	}
}

// TestFiguresOfCells: a cell has the figures of its record, and none where there are no samples.
func TestFiguresOfCells(t *testing.T) {
	kept := results.Clause{Property: string(quota.PropertyLeak), Formula: "L", Verdict: results.Kept}
	r := results.Run{Requests: results.Requests{Errors: 60, RecoveredNS: 5e6},
		Promises: results.Promises{Guarantee: []results.Clause{kept}}}
	r.Leak.Units = 12
	r.Leak.Possible = 12
	r.Cost.KeysAtEnd = 8
	r.Cost.KeysWithoutTTL = 3
	r.Audit.Reasons = []results.Reason{{Code: "busy", Discards: codes.DisturbsTimings}}
	j, err := new(File).Judge(&Claim{Cell: &Cell{Run: "r", Label: "planted", Down: "closed"}},
		map[string]*Record{"r": faulty(r)})
	if err != nil || j.Promised != "leak L; fail-closed" {
		t.Fatalf("%v, %+v", err, j)
	}
	got := map[string]string{}
	for _, f := range j.Figures {
		got[f.Key] = f.Text
		if (f.Text == "" || f.Text == "-" || f.Text == "no counter") != (f.Value == nil) {
			t.Errorf("%+v", f)
		}
	}
	for key, want := range map[string]string{"leak": "12", "errors-pct": "10.0 %", "recovery": "5.00 ms",
		"service.p99": "-"} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// TestDisturbedFigures: a figure whose text is marked says so.
func TestDisturbedFigures(t *testing.T) {
	summary := &results.Summary{}
	summary.Service.P50 = results.Percentile{Figure: results.Figure{Value: 1e6, Rounds: 1, Disturbed: true}}
	var j Judgement
	j.figures(summary)
	marked := 0
	for _, shown := range j.Figures {
		if strings.HasPrefix(shown.Text, figures.Mark) != shown.Disturbed {
			t.Errorf("%+v", shown)
		}
		if shown.Disturbed {
			marked++
		}
	}
	if marked != 1 {
		t.Errorf("%d of %+v are disturbed", marked, j.Figures)
	}
}

// TestRunsAtTheSameTime: as many runs as are asked for begin before the first one ends, no more, and each record goes
// to the cell whose run it is. One that fails, and one that ends before all was measured, is made again, alone.
func TestRunsAtTheSameTime(t *testing.T) {
	const runs, parallel = 7, 3
	f := &File{Record: "fault", Runs: map[string]Run{}}
	for i := range runs {
		name := fmt.Sprintf("r%d", i)
		f.Runs[name] = Run{Command: "run " + name}
		f.Claims = append(f.Claims, Claim{ID: name, Cell: &Cell{Run: name, Label: "planted"}})
	}
	var mu sync.Mutex
	made := map[string]int{}
	alone := false
	underWay := 0
	most := 0
	var failed []string
	all := make(chan bool) // is closed when so many have begun
	ready := sync.OnceFunc(func() { close(all) })
	p := &Pass{
		Files: []*File{f}, Dir: "d", Parallel: parallel, Begin: func(int, int, []string) {}, Failed: func(why string) {
			failed = append(failed, why)
		},
		Run: func(ctx context.Context, args []string) (int, string) {
			mu.Lock()
			made[args[1]]++
			underWay++
			most = max(most, underWay)
			if most == parallel {
				ready()
			}
			mu.Unlock()
			select {
			case <-all:
			case <-ctx.Done():
			}
			mu.Lock()
			defer mu.Unlock()
			underWay--
			if args[1] == "r2" && made["r2"] == 1 {
				return exit.Usage, "quotabench: no server"
			}
			if args[1] == "r4" && made["r4"] == 1 {
				return exit.Failed, "a note\nquotabench: redis has ended"
			}
			alone = underWay == 0
			return 0, ""
		},
		Read: func(dir string) *Record {
			r := faulty(results.Run{Promises: results.Promises{NotPromised: []string{dir}}})
			mu.Lock()
			defer mu.Unlock()
			r.File.Interrupted = dir == "d/r4" && made["r4"] == 1
			return r
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := p.Judge(ctx)
	if err != nil || r.Interrupted || most != parallel || len(r.Claims) != runs || made["r2"] != 2 || made["r4"] != 2 ||
		len(made) != runs || !alone {
		t.Fatalf("%v, %d at the same time, %v, %+v", err, most, made, r)
	}
	if want := []string{"quotabench run r2: quotabench: no server",
		"quotabench run r4: quotabench: redis has ended"}; !slices.Equal(failed, want) {
		t.Errorf("told of %q, want %q", failed, want)
	}
	for _, j := range r.Claims {
		if want := "d/" + j.ID; !strings.HasSuffix(j.Why, " "+want) {
			t.Errorf("%s: %s, want that of %s", j.ID, j.Why, want)
		}
	}
}

// TestSimulationsTogether: nothing runs next to what measures, and two simulations run at the same time.
func TestSimulationsTogether(t *testing.T) {
	f := &File{Record: "both", Runs: map[string]Run{}}
	for i, command := range []string{"sim a", "run b", "sim c", "explore d", "sim e"} {
		name := fmt.Sprintf("r%d", i)
		f.Runs[name] = Run{Command: command}
		f.Claims = append(f.Claims, Claim{ID: name, Cell: &Cell{Run: name, Label: "planted"}})
	}
	var underWay, together atomic.Int64
	both := make(chan bool) // is closed when two simulations have begun
	ready := sync.OnceFunc(func() { close(both) })
	var ends sync.Mutex
	var ended []int
	p := &Pass{
		Files: []*File{f}, Dir: "d", Simulated: 2,
		Begin: func(n, of int, _ []string) {
			ends.Lock()
			defer ends.Unlock()
			ended = append(ended, n)
			if of != len(f.Runs) {
				t.Errorf("%d runs in all, want %d", of, len(f.Runs))
			}
		},
		Run: func(ctx context.Context, args []string) (int, string) {
			count := underWay.Add(1)
			defer underWay.Add(-1)
			if args[0] != "sim" && count > 1 {
				t.Errorf("%s runs next to %d others", args, count-1)
			}
			if args[0] == "sim" {
				together.Store(max(together.Load(), count))
				if count == 2 {
					ready()
				}
				select {
				case <-both:
				case <-ctx.Done():
				}
			}
			return 0, ""
		},
		Read: func(string) *Record { return faulty(results.Run{}) },
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := p.Judge(ctx)
	if err != nil || report.Interrupted || together.Load() != 2 {
		t.Fatalf("%v, %d simulations at the same time", err, together.Load())
	}
	if len(ended) != len(f.Runs) || !slices.Equal(ended[:3], []int{0, 1, 2}) || slices.Max(ended) >= len(f.Runs) {
		t.Errorf("runs begin when %d have ended", ended)
	}
}
