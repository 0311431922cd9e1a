package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/strategies"
)

var began = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// handed are directories as n generators hand them back that each made so many requests, one each
// 10 µs, of subjects that have 200 each. 107 of those are admitted with a limit of 100. Generator g
// begins g*ms later.
func handed(t testing.TB, n, requests int) (dirs []string) {
	t.Helper()
	for g := range n {
		dirs = append(dirs, hand(t, g, requests, nil, func(i int) oracle.Event {
			number := i*n + g
			at := int64(i) * 10_000
			e := oracle.Event{Call: at, Reply: at + 9_000, Units: 1, Subject: uint32(number / 200)}
			if number%200 >= 107 {
				e.Outcome = oracle.Rejected
			}
			return e
		}))
	}
	return dirs
}

// hand is the directory that a generator hands back, which made requests by at.
func hand(t testing.TB, g, requests int, change func(*results.Run, *oracle.Header, *known),
	at func(i int) oracle.Event) string {
	t.Helper()
	dir := t.TempDir()
	late := time.Duration(g)
	h := oracle.NewHistory(oracle.HistoryOptions{Workers: 1, Dir: dir})
	admitted := int64(0)
	for i := range requests {
		e := at(i)
		if e.Outcome == oracle.Admitted {
			admitted++
		}
		h.Append(0, e)
	}
	f := fixture.New(1, fixture.Strategies[3])
	r := &f.Runs[0]
	r.Paced = nil
	r.Guarantee = []results.Clause{}
	r.Issued = int64(requests)
	r.Admitted = admitted
	r.Rejected = int64(requests) - admitted
	r.Errors = 0
	r.ElapsedNS = int64(requests) * 10_000
	f.Provenance.Time = f.Provenance.Time.Add(late)
	ahead := (late - 1) * time.Millisecond
	head := oracle.Header{
		Strategy: r.Params.Label, Policy: quota.Policy{Limit: 100, Unit: "requests"},
		Epoch: began.Add(ahead + late*time.Millisecond),
	}
	k := known{Label: r.Params.Label, Repetition: r.Repetition, Ahead: ahead, Wrong: 180 * time.Microsecond}
	if change != nil {
		change(r, &head, &k)
	}
	k.Label = r.Params.Label
	p := peers{known: []known{k}}
	if err := p.write(dir); err != nil {
		t.Fatal(err)
	}
	write(t, dir, r, head, h)
	b, err := codec.Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, dir string, r *results.Run, head oracle.Header, h *oracle.History) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, historyDir), 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := os.Create(filepath.Join(dir, historyDir, r.HistoryName()))
	if err != nil {
		t.Fatal(err)
	}
	if err := oracle.WriteHistory(w, head, h); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func history(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, historyDir, "*"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// TestMergeJudgesAll: 7 units leak of each of 10 subjects, in no part by itself. What was decided in the time that
// all had in common is the throughput.
func TestMergeJudgesAll(t *testing.T) {
	f, err := merge(t.Context(), handed(t, 4, 500))
	if err != nil || len(f.Runs) != 1 {
		t.Fatalf("%d runs, %v", len(f.Runs), err)
	}
	r := &f.Runs[0]
	if r.Leak.Units != 70 || r.Leak.Possible != 70 || r.Leak.Trials != 10 || r.Leak.LeakedTrials != 10 || !r.Audit.Valid ||
		f.Summaries[0].Leak.Units != 70 {
		t.Errorf("%+v, %+v", r.Leak, r.Audit)
	}
	// Of 5 ms, the last one had 2 ms in common with the first: each made 200 requests then.
	if want := 4 * 200 / 0.002; r.ThroughputPerS != want || r.ElapsedNS != 8e6 {
		t.Errorf("%g decisions per second for %v, should be %g", r.ThroughputPerS, time.Duration(r.ElapsedNS), want)
	}
	var text strings.Builder
	if n := report(&text, &f); n != 0 ||
		!strings.Contains(text.String(), "round 1 of 4 generators: leak: certain 70, possible 70, clock error ±180µs") {
		t.Errorf("%d undecided: %s", n, text.String())
	}
}

// bounded is a clause of any process that allows so much.
func bounded(p quota.Property, formula string, bound func(quota.Params) int64) quota.Clause {
	return quota.Clause{Property: p, Formula: formula, Bound: bound}
}

var promising = strategies.Meta{
	Name: "promising", Doc: "has its promises judged", Form: strategies.Baseline,
	Kinds:  []quota.Kind{quota.Fixed, quota.Standing},
	Counts: quota.CountsAdmitted, Open: func(context.Context, strategies.Env) (strategies.Strategy, error) {
		return nil, nil
	},
	Guarantee: []quota.Clause{
		quota.Exactly(), quota.Weighted(),
		bounded(quota.PropertyLeak, "4 more for each instance", func(p quota.Params) int64 { return 4 * p.Instances }),
		bounded(quota.PropertyLeak, "6 within a round", func(p quota.Params) int64 {
			return int64(p.SyncPeriod / time.Second)
		}),
		bounded(quota.PropertyFalseReject, "3", func(quota.Params) int64 { return 3 }),
		bounded(quota.PropertyFalseReject, "5", func(quota.Params) int64 { return 5 }),
	},
	About: strategies.About{Record: []quota.Clause{quota.Exactly().From("ADR-1", "never more")}},
}

func init() { strategies.Register(promising) }

// promised are directories of two generators of the strategy under a limit of 100. In the first of two windows of a
// second, one subject is admitted 107 units and another 90, which is rejected 5 units without reason; in the second one
// 100 and 90. Within a second across the end of the first window, the first subject has 207 units. Its counter has 4
// units too many.
func promised(t testing.TB, change func(*results.Run, *oracle.Header, *known)) (dirs []string) {
	t.Helper()
	const second = int64(time.Second)
	var events []oracle.Event
	add := func(subject uint32, from int64, n int, o oracle.Outcome) {
		for i := range int64(n) {
			events = append(events, oracle.Event{Subject: subject, Call: from + i*1_000_000, Reply: from + i*1_000_000 + 100_000,
				Units: 1, Outcome: o})
		}
	}
	add(0, second/2, 107, oracle.Admitted)
	add(1, second/2, 90, oracle.Admitted)
	add(1, second*3/4, 5, oracle.Rejected)
	add(0, second+second/5, 100, oracle.Admitted)
	add(1, second+second/2, 90, oracle.Admitted)
	for g := range 2 {
		dirs = append(dirs, hand(t, g, len(events)/2, func(r *results.Run, h *oracle.Header, k *known) {
			r.Strategy = promising.Name
			r.Workload = "boundary"
			r.Params.Instances = 1
			r.Params.Label = promising.Name
			k.SyncPeriod = time.Duration(g+5) * time.Second
			for _, c := range promising.Guarantee {
				r.Guarantee = append(r.Guarantee,
					results.Clause{Property: string(c.Property), Formula: c.Formula, Verdict: results.Undecided})
			}
			r.Record = []results.Clause{{Property: "leak", Formula: "L", Source: promising.Record[0].Source,
				Verdict: results.Undecided}}
			if g == 0 {
				at := second * 19 / 10
				k.Readings = []harness.Reading{{Subject: 0, Call: at, Reply: at + 1000, Tier: "redis", Units: 104, Known: true},
					{Subject: 1, Call: at, Reply: at + 1000, Tier: "redis", Units: 90, Known: true}}
			}
			h.Strategy = promising.Name
			h.Policy.Window = quota.Window{Kind: quota.Fixed, Length: time.Second,
				Timeline: quota.Timeline{Real: began.Add(k.Ahead), Policy: began}}
			h.Counts = quota.CountsAdmitted
			if change != nil {
				change(r, h, k)
			}
		}, func(i int) oracle.Event {
			e := events[2*i+g]
			e.Call = e.Call - int64(g)*1_000_000
			e.Reply = e.Reply - int64(g)*1_000_000 // by its epoch
			return e
		}))
	}
	return dirs
}

// TestMergeJudgesPromises: what two processes have done together is held against each clause, with what is known of
// both, and a counter that one of them has read against the requests of both.
func TestMergeJudgesPromises(t *testing.T) {
	f, err := merge(t.Context(), promised(t, nil))
	if err != nil || len(f.Runs) != 1 {
		t.Fatalf("%d runs, %v", len(f.Runs), err)
	}
	r := &f.Runs[0]
	want := []results.Clause{
		{Property: "leak", Formula: "L", Bound: 0, Certain: 7, Possible: 7, Verdict: results.Broken},
		{Property: "leak", Formula: "2 L - 1", Bound: 99, Certain: 107, Possible: 107, Verdict: results.Broken},
		{Property: "leak", Formula: "4 more for each instance", Bound: 8, Certain: 7, Possible: 7, Verdict: results.Kept},
		{Property: "leak", Formula: "6 within a round", Bound: 6, Certain: 7, Possible: 7, Verdict: results.Broken},
		{Property: "false-reject", Formula: "3", Bound: 3, Certain: 5, Possible: 5, Verdict: results.Broken},
		{Property: "false-reject", Formula: "5", Bound: 5, Certain: 5, Possible: 5, Verdict: results.Kept},
	}
	if !reflect.DeepEqual(r.Guarantee, want) {
		t.Errorf("got  %+v\nwant %+v", r.Guarantee, want)
	}
	if len(r.Record) != 1 || r.Record[0].Verdict != results.Broken || r.Record[0].Source != promising.Record[0].Source {
		t.Errorf("the record's promise: %+v", r.Record)
	}
	if d := r.Drift; d == nil || d.Units != 4 || len(d.Tiers) != 1 || d.Tiers[0].Readings != 2 ||
		d.Tiers[0].Drifting != 1 {
		t.Errorf("drift %+v", d)
	}
	if r.Rolling == nil || r.Rolling.WorstUnits != 207 || !r.Audit.Valid || r.Audit.Has("sources-not-judged") {
		t.Errorf("rolling %+v, %+v", r.Rolling, r.Audit)
	}
}

// TestMergeSaysWhatItCannotJudge: a clause without a verdict stays undecided, and the audit says why.
func TestMergeSaysWhatItCannotJudge(t *testing.T) {
	for want, change := range map[string]func(*results.Run, *oracle.Header, *known){
		": this program has no strategy foreign": func(r *results.Run, _ *oracle.Header, _ *known) { r.Strategy = "foreign" },
		": clocks differ by 640µs at least, under which it promises nothing": func(_ *results.Run, h *oracle.Header,
			_ *known) {
			h.Policy.Window = quota.Window{Kind: quota.Standing} // a clock tells when to forget
		},
	} {
		f, err := merge(t.Context(), promised(t, change))
		if err != nil {
			t.Fatal(err)
		}
		r := &f.Runs[0]
		if len(r.Guarantee) != len(promising.Guarantee) || slices.ContainsFunc(r.Guarantee, func(c results.Clause) bool {
			return c.Verdict != results.Undecided
		}) {
			t.Errorf("%s: %+v", want, r.Guarantee)
		}
		if n := strings.Count(fmt.Sprint(r.Audit.Reasons), "is undecided: not judged over several generators"+
			want); n != len(promising.Guarantee)+1 {
			t.Errorf("%d say %q: %+v", n, want, r.Audit.Reasons)
		}
	}
}

// TestMergeCounts: generators that counted more than their histories hold are not believed.
func TestMergeCounts(t *testing.T) {
	f, err := merge(t.Context(), promised(t, func(r *results.Run, _ *oracle.Header, k *known) {
		if k.Readings == nil { // the second one
			r.Admitted++
			r.Issued++
		}
	}))
	if a := &f.Runs[0].Audit; err != nil || a.Valid || !a.Has("count-mismatch") {
		t.Errorf("%v, %+v", err, a)
	}
}

// TestMissingPartsAreUndecided: whatever is missing or damaged, there is no verdict, and the reason is told.
func TestMissingPartsAreUndecided(t *testing.T) {
	for want, damage := range map[string]func(dirs []string) []string{
		"1 of 4 generators handed nothing back": func(dirs []string) []string {
			dirs[0] += "-gone"
			return dirs
		},
		"says nothing of its clock": func(dirs []string) []string {
			if err := os.WriteFile(filepath.Join(dirs[1], knownName), []byte("[]"), 0o600); err != nil {
				t.Fatal(err)
			}
			return dirs
		},
		"the history of generator 3/4 is missing or damaged": func(dirs []string) []string {
			if err := os.Remove(history(t, dirs[2])); err != nil {
				t.Fatal(err)
			}
			return dirs
		},
		"the file is cut off": func(dirs []string) []string {
			if err := os.Truncate(history(t, dirs[3]), 500); err != nil {
				t.Fatal(err)
			}
			return dirs
		},
	} {
		f, err := merge(t.Context(), damage(handed(t, 4, 500)))
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		var text strings.Builder
		n := report(&text, &f)
		if r := &f.Runs[0]; n != 1 || r.Audit.Valid || r.Leak.Units != 0 || f.Summaries[0].Invalid != 1 ||
			!strings.Contains(text.String(), "undecided: ") ||
			!strings.Contains(text.String(), want) || strings.Count(text.String(), "\n") != 1 {
			t.Errorf("should be undecided since %s: %s %+v", want, text.String(), r.Audit)
		}
	}
	if _, err := merge(t.Context(), []string{t.TempDir()}); err == nil {
		t.Error("nothing was merged without a word")
	}
}

// TestMergeTakesMemoryByLength: twice as many requests take no more than twice the memory, of all that was ever asked
// for.
func TestMergeTakesMemoryByLength(t *testing.T) {
	var took [2]uint64
	for i := range took {
		dirs := handed(t, 4, 30_000<<i)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := merge(t.Context(), dirs)
		runtime.ReadMemStats(&after)
		if err != nil || f.Runs[0].Leak.Trials != int64(600<<i) || f.Runs[0].Leak.Units != int64(7*600<<i) {
			t.Fatalf("%v, %+v", err, f.Runs[0].Leak)
		}
		took[i] = after.TotalAlloc - before.TotalAlloc
	}
	if ratio := float64(took[1]) / float64(took[0]); ratio > 2.2 {
		t.Errorf("twice as many requests take %g times the memory: %d", ratio, took)
	}
}

// BenchmarkMerge says what merging takes; the growth of memory is that of its peak. QUOTABENCH_LONG=1 merges 40
// histories of 5 and of 10 million requests.
func BenchmarkMerge(b *testing.B) {
	n := 4
	lengths := []int{1_000_000, 2_000_000}
	if os.Getenv("QUOTABENCH_LONG") != "" {
		n = 40
		lengths = []int{5_000_000, 10_000_000}
	}
	for _, requests := range lengths {
		dirs := handed(b, n, requests)
		b.Run(fmt.Sprint(requests), func(b *testing.B) {
			for b.Loop() {
				f, err := merge(context.Background(), dirs)
				if err != nil || !f.Runs[0].Audit.Valid {
					b.Fatal(err, f.Runs[0].Audit)
				}
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
		})
	}
}
