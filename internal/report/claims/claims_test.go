package claims

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/codes"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

var noted = []results.Property{"leak", "false-reject"}

// planted is a record of two strategies in n rounds of 1,000 and 4,000 decisions per second, give or take the round.
func planted(n int) *Record {
	f := &results.File{Kind: results.Measured, Skipped: []results.Skipped{{Strategy: "gone", Reason: "no server"}}}
	for round := range n {
		for i, label := range []string{"slow", "fast"} {
			r := results.Run{Identity: results.Identity{Strategy: label}, Repetition: round,
				Requests: results.Requests{Issued: 100, Admitted: 60, Rejected: 40}}
			r.Params.Label = label
			r.Params.Loop = codes.ClosedLoop
			r.ThroughputPerS = float64(1000+3000*i) * (1 + float64(round)/100)
			r.ElapsedNS = 1
			r.Audit = results.Audit{Valid: true}
			r.Leak = results.Leak{Units: int64(5 * i), Possible: int64(7 * i), WorstUnits: int64(3 * i)}
			r.LeakTiers = map[string]int64{"redis": int64(5 * i)}
			r.Meter = []results.Measure{{Name: "retries", Unit: "retries", Value: 200}}
			f.Runs = append(f.Runs, r)
		}
	}
	f.Summaries = results.Summarise(f.Runs)
	worst := func(n int64) results.Sample { return results.Sample{Counters: []results.Counter{{Worst: n}}} }
	series := results.Series{Strategy: "fast", Counters: []string{"redis"}, Samples: []results.Sample{worst(-2), worst(7)}}
	return &Record{File: f, Series: []results.Series{series}}
}

// decide is the verdict on a condition, and why.
func decide(t *testing.T, condition string, records map[string]*Record) Judgement {
	t.Helper()
	f, err := Parse("planted.yaml",
		[]byte("record: R\nruns: {a: run a, b: run b, s: explore s, sweep: run a --param share=0..1}\n"+
			"claims: [{id: X, says: something, holds: '"+condition+"'}]"), noted)
	if err != nil {
		t.Fatal(err)
	}
	j, err := f.Judge(&f.Claims[0], records)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func named(label string, of *results.Search) *results.Search {
	s := *of
	s.Strategy = label
	return &s
}

func TestConditions(t *testing.T) {
	complete := &results.Search{Strategy: "x", Properties: noted}
	leaks := &results.Search{Strategy: "y", Properties: noted,
		Findings: []results.Finding{{Property: "leak", Units: 2, Steps: make([]results.Step, 4)}}}
	capped := &results.Search{Strategy: "z", Properties: noted, Capped: "20,000 states"}
	records := map[string]*Record{
		"a": planted(6), "b": planted(6),
		"s": {Exploration: &results.Exploration{Searches: []*results.Search{
			complete, leaks, capped, // and two searches of each of these
			named("both", complete), named("both", leaks), named("partly", complete), named("partly", capped),
			named("clean", complete), named("clean", complete),
			named("found", capped), named("found", leaks), named("open", capped), named("open", complete),
			{Strategy: "withheld", Properties: noted, Withheld: []results.Withheld{{Detail: "it was not seen"}}},
			{Strategy: "unmet", Properties: noted, Unmet: []quota.Fault{quota.FaultCrash}},
			{Strategy: "allowed", Properties: noted, AllowedBy: "a clause"},
		}}},
	}
	for _, search := range records["s"].Exploration.Searches {
		search.Runs = 1
	}
	records["a"].Series = append(records["a"].Series,
		results.Series{Strategy: "slow", Counters: []string{"model", "redis"}, Samples: []results.Sample{
			{Counters: []results.Counter{{Worst: -9}, {Worst: -7}}}, {Counters: []results.Counter{{Worst: 0}, {Worst: 0}}},
		}})
	for condition, want := range map[string]Verdict{
		`a["slow"].issued == 600`: Holds,
		`a["slow"].issued > 600`:  Refuted,
		// The leak is known to be between 30 and 42 units.
		`a["fast"].leak <= 42`: Holds,
		`a["fast"].leak > 42`:  Refuted,
		`a["fast"].leak > 35`:  Undecided,
		`a["fast"].leak < 30`:  Refuted,
		// Of the worst window only the certain part is known.
		`a["fast"].leak_worst <= 3`: Undecided,
		`a["fast"].leak_worst < 3`:  Refuted,
		`a["slow"].leak == 0`:       Holds,
		// What else the record says beside a figure, and a counter by its name.
		`a["fast"].leak.possible == 42`:          Holds,
		`max(a["fast"].series.redis.worst) == 7`: Holds,
		`a["fast"].series.other.worst == 0`:      Undecided,
		// Rounds of one run are paired: the ratio is 4 in each, although both vary by 5 %.
		`a["fast"].throughput / a["slow"].throughput >= 3.999`: Holds,
		`a["fast"].throughput / a["slow"].throughput > 4.001`:  Refuted,
		`a["fast"].throughput >= 4100`:                         Undecided,
		`a["fast"].throughput / b["slow"].throughput >= 1`:     Undecided,
		`a["slow"].meter["retries"].per_decision == 2`:         Holds,
		`a["fast"].leak_tiers["redis"] == 30`:                  Holds,
		`a["slow"].leak_tiers["redis"] == 0`:                   Holds,
		`a["slow"].leak_tiers["sql"] == 0`:                     Undecided, // it decided nothing
		`max(a["slow"].runs.issued) == 100`:                    Holds,
		`share(a["slow"].admitted, a["slow"].issued) > 55`:     Holds,
		`share(a["slow"].admitted, a["slow"].issued) > 59`:     Undecided,
		`share(a["slow"].errors, a["slow"].issued) > 0`:        Undecided, // none of 600 is not few for certain
		`min(a["slow"].series["redis"].worst) == -7`:           Holds,
		`min(a["slow"].series["sql"].worst) == -7`:             Undecided,
		`a["gone"].leak == 0`:                                  Undecided,
		`a["slow"].leak == 0 || a["gone"].leak == 0`:           Holds,
		`a["fast"].leak == 0 && a["gone"].leak == 0`:           Refuted,
		`!(a["gone"].leak == 0)`:                               Undecided,
		`s["x"].leak == 0`:                                     Holds,
		`s["y"].leak == 0`:                                     Refuted,
		`s["y"].leak <= 2`:                                     Undecided, // another schedule may leak more
		`s["y"].steps == 4`:                                    Holds,
		`s["y"].counterexamples == 1`:                          Holds,
		`s["x"].steps >= 9`:                                    Holds, // no schedule is as short as none
		`s["z"].steps >= 9`:                                    Undecided,
		`s["z"].counterexamples == 0`:                          Undecided,
		`s["z"].leak == 0`:                                     Undecided,
		`s["both"].leak == 0`:                                  Refuted,
		`s["both"].steps == 4`:                                 Holds,
		`s["found"].leak > 0`:                                  Holds,
		`s["partly"].leak == 0`:                                Undecided,
		`s["open"].leak == 0`:                                  Undecided,
		`s["withheld"].leak == 0`:                              Undecided,
		`s["clean"].leak == 0`:                                 Holds,
		`s["unmet"].leak == 0`:                                 Undecided,
		`s["allowed"].false_reject == 0`:                       Refuted,
		`s["allowed"].leak == 0`:                               Holds,
		// A share of what is known in part lies between those of its ends.
		`share(a["fast"].leak, 1000) > 2`:   Holds,
		`share(a["fast"].leak, 1000) < 4.5`: Undecided,
		`share(a["fast"].leak, 1000) < 6`:   Holds,
		`10*us + 5*ns == 10005`:             Holds,
		`-2 * 3 < 0 - 5`:                    Holds,
	} {
		if j := decide(t, condition, records); j.Verdict != want || (want == Undecided) != (j.Why != "") {
			t.Errorf("%s: %s (%s), want %s", condition, j.Verdict, j.Why, want)
		}
	}
	if j := decide(t, `share(a["slow"].errors, a["slow"].issued) < 1`, records); j.Measured != "share(slow errors, slow issued) = 0 % (0 % to 0.64 %)" {
		t.Errorf("a share is shown as %q", j.Measured)
	}
}

// Two rounds say nothing about how much a timing varies, and a figure next to its limit is called close.
func TestTimings(t *testing.T) {
	if j := decide(t, `a["slow"].throughput > 1`, map[string]*Record{"a": planted(2)}); j.Verdict != Undecided {
		t.Errorf("two rounds: %s", j.Verdict)
	}
	few := planted(3)
	enough := planted(6)
	for r, n := range map[*Record]int{few: 3, enough: 6} {
		f := results.Figure{Value: 900, Lo: 800, Hi: 1000, Rounds: n}
		if n >= 6 {
			f.Coverage = 0.97
		}
		r.File.Summaries[0].Service.P99 = results.Percentile{Figure: f, Status: codes.Pooled}
	}
	for r, want := range map[*Record]Verdict{few: Undecided, enough: Holds} {
		if j := decide(t, `a["slow"].service_ns.p99 <= 1*us`, map[string]*Record{"a": r}); j.Verdict != want || j.Close != (want == Holds) {
			t.Errorf("a percentile of %d rounds: %+v", r.File.Summaries[0].Rounds, j)
		}
	}
	for condition, want := range map[string]bool{
		`a["slow"].throughput > 950`: true, `a["slow"].throughput > 500`: false,
	} {
		if j := decide(t, condition, map[string]*Record{"a": planted(6)}); j.Close != want || j.Verdict != Holds {
			t.Errorf("%s: %s, close %v", condition, j.Verdict, j.Close)
		}
	}
}

// TestLatencies: percentiles are divided round by round, and stand for all rounds together if they are compared with a
// time.
func TestLatencies(t *testing.T) {
	r := planted(6)
	for i := range r.File.Runs {
		r.File.Runs[i].Service.P50 = int64(100 * (1 + i%2) * (1 + i/2)) // the fast one takes twice as long in each round
	}
	for i := range r.File.Summaries {
		f := results.Figure{Value: 900, Lo: 800, Hi: 1000, Rounds: 6, Coverage: 0.97}
		r.File.Summaries[i].Service.P50 = results.Percentile{Figure: f, Status: codes.Pooled}
	}
	for condition, want := range map[string]Verdict{
		`a["fast"].p50 / a["slow"].p50 == 2`: Holds, `a["fast"].p50 <= 1*us`: Holds, `a["fast"].p50 < 800`: Refuted, `a["fast"].p50 < 900`: Undecided,
	} {
		if j := decide(t, condition, map[string]*Record{"a": r}); j.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", condition, j.Verdict, j.Why, want)
		}
	}
}

// What was discarded decides nothing, also by a path to the rounds; what is left decides, and is close if it is little.
func TestDiscardedRounds(t *testing.T) {
	for condition, discard := range map[string]func(*results.Audit){
		`max(a["slow"].runs.throughput_per_s) > 1`: func(x *results.Audit) { x.Discard("stood-still", codes.DiscardsRound, "suspended") },
		`max(a["slow"].runs.leak.units) == 0`:      func(x *results.Audit) { x.Valid = false },
	} {
		a := planted(3)
		if j := decide(t, condition, map[string]*Record{"a": a}); j.Verdict != Holds {
			t.Errorf("%s: %s (%s)", condition, j.Verdict, j.Why)
		}
		discard(&a.File.Runs[2].Audit)
		// Two rounds of timings decide for now; figures of correctness are of all rounds.
		want := map[bool]Verdict{true: Holds, false: Undecided}[a.File.Runs[2].Audit.Valid]
		if j := decide(t, condition, map[string]*Record{"a": a}); j.Verdict != want || !j.Close {
			t.Errorf("%s, with a round that does not count: %+v", condition, j)
		}
		for i := range a.File.Runs {
			discard(&a.File.Runs[i].Audit)
		}
		if j := decide(t, condition, map[string]*Record{"a": a}); j.Verdict != Undecided || !j.Close {
			t.Errorf("%s, with no round that counts: %+v", condition, j)
		}
	}
}

func TestSweepGivesTheCondition(t *testing.T) {
	f := planted(3)
	f.File.Sweep = &results.Sweep{Parameters: []results.Swept{{Name: "share", Values: []string{"0", "0.5", "1"}}}}
	var runs []results.Run
	for i, value := range f.File.Sweep.Parameters[0].Values {
		for _, r := range f.File.Runs {
			r.Params.Point = map[string]string{"share": value}
			r.Issued = int64(i)
			runs = append(runs, r)
		}
	}
	f.File.Runs, f.File.Summaries = runs, results.Summarise(runs)
	for condition, want := range map[string]string{
		`sweep["slow"].issued >= 3`:             "holds only if: share = 0.5, 1; not with share = 0",
		`sweep["slow"].issued >= 0`:             "holds: ",
		`sweep["slow"].issued > 6`:              "refuted: ",
		`sweep["slow"].issued >= 3 && x > 0.7`:  "holds only if: share = 1; not with share = 0, 0.5",
		`sweep["gone"].issued >= 3`:             "undecided: share = 0, 0.5, 1: gone took no part: no server",
		`sweep["slow"].meter["no"].value > 100`: "undecided: share = 0, 0.5, 1: the record has no no here",
	} {
		file, err := Parse("planted.yaml",
			[]byte("record: R\nruns: {sweep: run a --param share=0..1}\nclaims: [{id: X, says: it, each: sweep, holds: '"+
				condition+"'}]"), noted)
		if err != nil {
			t.Fatal(err)
		}
		j, err := file.Judge(&file.Claims[0], map[string]*Record{"sweep": f})
		if got := fmt.Sprintf("%s: %s", j.Verdict, j.Why); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", condition, got, err, want)
		}
	}
}

// What is wrong with a file is said with its line.
func TestFilesInError(t *testing.T) {
	for text, want := range map[string]string{
		"record: R\nclaims:\n- id: X\n  says: it\n  holds: a.leak == 0":                              `:5: "a.leak == 0": unknown run "a"`,
		"record: R\nruns: {a: run x}\nclaims:\n- id: X\n  says: it\n  holds: a.lek == 0":             `:6: "a.lek == 0": unknown figure "lek": did you mean leak?`,
		"record: R\nruns: {a: run x}\nclaims:\n- id: X\n  says: it\n  holds: a.leak =< 0":            `:6: "a.leak =< 0" is no expression: column 8`,
		"record: R\nruns: {a: run x}\nclaims:\n- id: X\n  says: it\n  holds: mode(a.leak) == 0":      `:6: "mode(a.leak) == 0": unknown function "mode"`,
		"record: R\nruns: {a: run x}\nclaims:\n- id: X\n  says: it\n  holds: a.runs[9999].leak == 0": `:6: "a.runs[9999].leak == 0": [ ] takes the label of a strategy`,
		"record: R\nruns:\n  a: compare x y":                                                         `:3: the command "compare x y" leaves no record`,
		"record: R\nruns:\n  a: run x --out y":                                                       `:3: leave out --out`,
		"record: R\nruns:\n  a: run 'x":                                                              `:3: "run 'x": a quote is not closed`,
		"record: R\nclaims:\n- id: X\n  says: it":                                                    `:3: X needs one of the keys holds and unmeasurable`,
		"record: R\nclaims:\n- id: X\n  says: it\n  unmeasurable: no\n  hold: 3":                     `:6: unknown field "hold"`,
		"claims: []": `:1: name the design record`,
		"record: R\nruns: {a: run x}\nclaims:\n- id: X\n  says: it\n  each: a\n  holds: a.leak == 0": `:6: a is no run or simulation with --param or --until`,
	} {
		if _, err := Parse("f.yaml", []byte(text), noted); err == nil || !strings.Contains(err.Error(), "f.yaml"+want) {
			t.Errorf("%s\ngives: %v\nwant:  f.yaml%s", text, err, want)
		}
	}
}

// Claims share a run that both need, a run that fails leaves them undecided, and a full pass has its own arguments.
func TestRunsAreShared(t *testing.T) {
	parsed := func(record string) *File {
		f, err := Parse(record, []byte("record: "+record+`
runs:
  a: {command: run slow, quick: --rounds 3, full: --rounds 9}
  b: run bad `+record+`
claims:
- {id: `+record+`1, says: it, holds: 'a["slow"].leak == 0'}
- {id: `+record+`2, says: it, holds: 'a["slow"].leak > 0', gate: true}
- {id: `+record+`3, says: it, holds: 'b.leak == 0', needs: 'a["slow"].issued > 0', gate: true}
- {id: `+record+`4, says: it, holds: 'a["slow"].leak == 0', needs: 'a["slow"].issued > 1000'}
- {id: `+record+`5, says: it, unmeasurable: a price}
`), noted)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var made []string
	p := &Pass{
		Files: []*File{parsed("A"), parsed("B")}, Dir: "d", Begin: func(int, int, []string) {},
		Run: func(_ context.Context, args []string) (int, string) {
			made = append(made, strings.Join(args, " "))
			return map[bool]int{true: 2}[args[1] == "bad"], "unknown strategy"
		},
		Read: func(string) *Record { return planted(3) },
	}
	r, err := p.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"run slow --rounds 3 --out d/a", "run bad A --out d/b",
		"run bad B --out d/b-2"}; !slices.Equal(made, want) {
		t.Errorf("it made %q, want %q", made, want)
	}
	var got []string
	for i := range r.Claims {
		j := &r.Claims[i]
		got = append(got, fmt.Sprint(j.ID, " ", j.Verdict, " ", j.Fails()))
	}
	want := []string{"A1 holds false", "A2 refuted true", "A3 undecided true", "A4 undecided false",
		"A5 not measurable here false"}
	if !slices.Equal(got[:5], want) || r.Runs != 3 || r.Asked != 10 {
		t.Errorf("%d runs for %d: %q, want %q", r.Runs, r.Asked, got[:5], want)
	}
	p.Full = true
	made = nil
	if _, err := p.Judge(t.Context()); err != nil || !strings.Contains(made[0], "--rounds 9") {
		t.Errorf("a full pass made %q, %v", made, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err = p.Judge(ctx)
	if err != nil || !r.Interrupted || r.Claims[0].Verdict != Undecided {
		t.Errorf("an interrupted pass: %+v, %v", r.Claims[0], err)
	}
}

// A part of a record that is neither a map nor a list takes no [ ].
func TestIndexOfAPart(t *testing.T) {
	text := `{record: R, runs: {a: run a}, claims: [{id: X, says: it, holds: 'a["slow"].params["label"].workers > 0'}]}`
	f, err := Parse("f", []byte(text), noted)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Judge(&f.Claims[0], map[string]*Record{"a": planted(1)}); err == nil {
		t.Error("it is not refused")
	}
}

func TestSelect(t *testing.T) {
	f, err := Parse("f", []byte("record: R\nclaims: [{id: X1, says: it, unmeasurable: no}, {id: X2, says: it, "+
		"unmeasurable: no}]"), noted)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Select([]*File{f}, nil, []string{"X2"}, nil); err != nil || len(got) != 1 ||
		got[0].Claims[0].ID != "X2" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range [][2][]string{{{"X3"}, nil}, {nil, {"Q"}}} {
		if _, err := Select([]*File{f}, nil, bad[0], bad[1]); err == nil {
			t.Errorf("%v is not refused", bad)
		}
	}
}

// TestSelectOfAPart: a pass of some claims is judged again for these, and for those whose runs it made; others only if
// they are named.
func TestSelectOfAPart(t *testing.T) {
	f, err := Parse("f", []byte(`record: R
runs: {a: run a, b: {command: run b, full: --rounds 9}}
claims:
- {id: judged, says: it, holds: b.leak == 0}
- {id: made, says: it, holds: a.leak == 0}
- {id: in part, says: it, holds: a.leak == b.leak}
- {id: none, says: it, unmeasurable: a price}
- {id: of no run, says: it, holds: 2 > 1}
`), noted)
	if err != nil {
		t.Fatal(err)
	}
	earlier := &Report{Claims: []Judgement{{Record: "R", ID: "judged",
		Commands:    []string{"quotabench run a", "quotabench run b"},
		Directories: []string{"a", ""}}, {Record: "Q", ID: "none"}}}
	for want, ids := range map[string][]string{"judged made": nil, "in part none": {"none", "in part"}} {
		var got []string
		files, err := Select([]*File{f}, earlier, ids, []string{"R"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range files[0].Claims {
			got = append(got, files[0].Claims[i].ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", ids, got, want)
		}
	}
	earlier.Claims[0].Directories[1] = "b"
	if files, err := Select([]*File{f}, earlier, nil, nil); err != nil || len(files[0].Claims) != 3 {
		t.Errorf("with the runs of three claims: %+v, %v", files, err)
	}
	earlier.Full = true
	if files, err := Select([]*File{f}, earlier, nil, nil); err != nil || len(files[0].Claims) != 2 {
		t.Errorf("with another length of one run: %+v, %v", files, err)
	}
	if _, err := Select([]*File{f}, &Report{}, nil, nil); err == nil || !strings.Contains(err.Error(), "--id") {
		t.Errorf("nothing is left: %v", err)
	}
}

// The published schema and the reader take the same files: those of the design records, and each field of the types.
func TestSchemaAgreesWithTheReader(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../../results/schema/claims.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{
		"each field": "record: R\ntitle: T\nruns: {a: {command: run x, quick: --param share=0..1, full: f}}\nclaims: " +
			"[{id: X, source: s, says: it, promised: p, holds: a.leak == 0, each: a, needs: a.leak == 0, shows: a.leak, " +
			"form: a.leak, tolerance: 3, gate: true}, {id: Y, says: it, unmeasurable: no}]",
		"!a field that nobody knows":  "record: R\nclaims: [{id: X, says: it, unmeasurable: no, hold: x}]",
		"!a command that was removed": "record: R\nruns: {a: sweep x}\nclaims: []",
		"!a command without record":   "record: R\nruns: {a: compare x}\nclaims: []",
		"!nothing to judge":           "record: R\nclaims: [{id: X, says: it}]",
		"!a tolerance below 0":        "record: R\nclaims: [{id: X, says: it, unmeasurable: no, tolerance: -5}]",
		"!a run outside of --out":     "record: R\nruns: {../x: run a}\nclaims: [{id: X, says: it, unmeasurable: no}]",
	}
	names, err := records.ReadDir("records")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		b, err := records.ReadFile("records/" + n.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[n.Name()] = string(b)
	}
	for name, text := range texts {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		in, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		bad := strings.HasPrefix(name, "!")
		if err := schema.Validate(in); (err != nil) != bad {
			t.Errorf("%s: the schema says %v", name, err)
		}
		if _, err := Parse(name, []byte(text), explore.Properties()); (err != nil) != bad {
			t.Errorf("%s: the reader says %v", name, err)
		}
	}
}

// A run is made with its password, which stands in no report. Records are found again without it, unless two runs
// differ in nothing else.
func TestPasswordsOfRuns(t *testing.T) {
	parsed := func(more string) *File {
		f, err := Parse("f", []byte(`record: R
runs: {a: "run slow --redis redis://:S3cr3tA@h", `+more+`c: "run slow"}
claims:
- {id: A, says: it, holds: 'a["slow"].leak == 0'}
- {id: B, says: it, holds: 'b["slow"].leak == 0'}
`), noted)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var made []string
	p := &Pass{
		Files: []*File{parsed(`b: "run slow --redis redis://:S3cr3tB@h", `)}, Begin: func(int, int, []string) {},
		Run: func(_ context.Context, args []string) (int, string) {
			made = append(made, args[3])
			return 2, "cannot reach redis://:" + args[3] + "@h"
		},
		Read: func(string) *Record { return planted(3) },
	}
	r, err := p.Judge(t.Context())
	if err != nil || !slices.Equal(made, []string{"redis://:S3cr3tA@h", "redis://:S3cr3tB@h"}) {
		t.Fatalf("made %q, %v", made, err)
	}
	if text := fmt.Sprintf("%+v", r); strings.Contains(text, "S3cr3t") ||
		!strings.Contains(text, "run slow --redis 'redis://:***@h'") {
		t.Errorf("reported: %s", text)
	}
	again := &Pass{Files: p.Files, Earlier: r, Read: p.Read}
	if r, err := again.Judge(t.Context()); err != nil || r.Claims[0].Verdict != Undecided ||
		r.Claims[1].Verdict != Undecided {
		t.Errorf("the record of one run was taken for another: %+v, %v", r, err)
	}
	alone := &Pass{Files: []*File{parsed(`b: "run slow", `)}, Begin: p.Begin, Read: p.Read, Run: func(context.Context, []string) (int, string) { return 0, "" }}
	r, err = alone.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again = &Pass{Files: alone.Files, Earlier: r, Read: p.Read}
	r, err = again.Judge(t.Context())
	if err != nil || r.Claims[0].Verdict != Holds || r.Claims[1].Verdict != Holds {
		t.Errorf("judged again: %+v, %v", r, err)
	}
}
