package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/schema"
)

// anyToken is what golden files leave out: another version of Go may pack tokens
// in another way.
var anyToken = regexp.MustCompile(`qb2\.[\w-]+`)

func TestExploreOutput(t *testing.T) {
	testenv.Sequential(t)
	p := newPlace(t, nil)
	var text strings.Builder
	for _, c := range []struct {
		code int
		args []string
	}{
		{exit.OK, []string{"honest", "--instances", "1"}},
		{exit.Gate, []string{"honest", "--property", "leak", "--clients", "3", "--limit", "1", "--policy", "agent-api"}},
		{exit.Gate, []string{"liar"}},
		{exit.Gate, []string{"honest", "liar", "--property", "guarantee", "--used", "0", "--seed", "9", "--instances", "1"}},
		{exit.Gate, []string{"liar", "--property", "leak"}},
		{exit.OK, []string{"liar", "--property", "leak", "--exit-zero"}},
		{exit.OK, []string{"liar", "--full", "--clients", "3"}},
		{exit.OK, []string{"liar", "--full", "--clients", "6", "--max-schedules", "10"}},
		{exit.Gate, []string{"liar", "--property", "leak", "--json"}},
		{exit.OK, []string{"honest", "--clients", "8", "--property", "stuck", "--max-states", "20"}},
		{exit.OK, []string{"liar", "broken", "--property", "leak", "--policy", "user-links", "monthly"}},
	} {
		o := call(t.Context(), append([]string{"explore"}, c.args...)...)
		if slices.Contains(c.args, "broken") { // what cannot be opened is no question of wording
			c.code = exit.Failed
		}
		if o.code != c.code {
			t.Errorf("%q: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
		text.WriteString(anyToken.ReplaceAllString(o.transcript(), "qb2.TOKEN") + "\n")
	}
	golden(t, "explore", text.String())
	p.requireUntouched()
}

func TestExploreUsage(t *testing.T) {
	testenv.Sequential(t)
	p := newPlace(t, map[string]string{"held/exploration.json": "{}", "file": "not a directory"})
	token := findToken(t)
	var text strings.Builder
	for _, args := range [][]string{
		{},
		{"--nonsense"},
		{"nonsense"},
		{"honest,honest"},
		{"honest:color=green"},
		{""},
		{"honest", "--policy", "nonsense"},
		{"monthly", "--policy", "agent-storage"},
		{"honest", "--limit", "0"},
		{"honest", "--seed", "0"},
		{"honest", "--limit", "9223372036854775807"},
		{"honest", "--clients", "0"},
		{"honest", "--clients", "17"},
		{"honest", "--instances", "3"},
		{"honest", "--used", "1"},
		{"honest", "--seed", "-1"},
		{"honest", "--script", "eat"},
		{"honest", "--script", "refund"},
		{"honest", "--script", "take=0"},
		{"honest", "--script", "take=9999999999999999"},
		{"honest", "--script", "take,refund"},
		{"honest", "--script", "take;take;take"},
		{"honest", "--skew", "5"},
		{"honest", "--skew", "1s,2s,3s"},
		{"honest", "--faults", "fire"},
		{"honest", "--faults", "crash", "--times", "0"},
		{"honest", "--jobs", "-1"},
		{"honest", "--property", "beauty"},
		{"honest", "--full", "--property", "leak"},
		{"honest", "--full", "--redis", "process"},
		{"honest", "--full", "--first"},
		{"honest", "--timeout", "-1s"},
		{"honest", "--max-schedules", "5"},
		{"honest", "--redis", "nonsense"},
		{"honest", "--redis", "redis://user:secret@127.0.0.1:1"},
		{"honest", "--postgres", "0x"},
		{"honest", "--out", "held"},
		{"honest", "--out", "file"},
		{"honest", "--out", ""},
		{"--replay", ""},
		{"--replay", "nonsense"},
		{"--replay", token[:len(token)-3]},
		{"--replay", "qb2.f4qnZgTAMQoCMRCF4auEv37FzpbvKmIRZYp1QxQnhSDe3e9LYcbR34gXZj5n5axEDBzijndx4F10fGH1M7mKhUM8cIgbZmQ_ER9Mba2i1dYq-P0DAAD__w"}, // of an unknown policy
		{"--replay", token, "--postgres", "0x"},
		{"--replay", token, "--clients", "2"},
		{"--replay", token, "honest"},
	} {
		o := call(t.Context(), append([]string{"explore"}, args...)...)
		requireUsageError(t, o)
		text.WriteString(o.transcript() + "\n")
	}
	golden(t, "explore-usage", anyToken.ReplaceAllString(text.String(), "qb2.TOKEN"))
	p.requireUntouched()
}

// findToken is that of the leak of "liar".
func findToken(t *testing.T) string {
	t.Helper()
	o := call(t.Context(), "explore", "liar", "--property", "leak")
	m := regexp.MustCompile(`--replay (\S+)`).FindStringSubmatch(o.stdout)
	if m == nil {
		t.Fatalf("no token in %s%s", o.stdout, o.stderr)
	}
	return m[1]
}

func TestExploreReplay(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	token := findToken(t)
	o := call(t.Context(), "explore", "--replay", token)
	if o.code != exit.Gate || !strings.Contains(o.stdout, "repeated on the embedded Redis: LEAK again") {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	o = call(t.Context(), "explore", "--replay", token, "--exit-zero")
	if o.code != exit.OK {
		t.Errorf("--exit-zero: exit %d: %s", o.code, o.stderr)
	}
	const ofAnother = "qb2.SkOGNYJ4HatncLuNEsuVagEBAAD__w" // of check-then-set, which is not registered here
	o = call(t.Context(), "explore", "--replay", ofAnother)
	if o.code != exit.Usage || !strings.Contains(o.stderr, "go run . explore --replay TOKEN") {
		t.Errorf("of another program: exit %d: %s", o.code, o.stderr)
	}
	storetest.Redis(t) // skips if there is none
	for _, args := range [][]string{{"--replay", token}, {"liar", "--property", "leak"}} {
		o = call(t.Context(), append([]string{"explore", "--redis", "process"}, args...)...)
		if o.code != exit.Gate || !strings.Contains(o.stdout, "(process): LEAK again") {
			t.Errorf("%q: exit %d: %s%s", args, o.code, o.stdout, o.stderr)
		}
	}
	// A guarantee that breaks again is one that breaks.
	o = call(t.Context(), "explore", "liar", "--property", "guarantee")
	m := regexp.MustCompile(`--replay (\S+)`).FindStringSubmatch(o.stdout)
	o = call(t.Context(), "explore", "--replay", m[1], "--json")
	if o.code != exit.Gate || !strings.Contains(o.stdout, `"broken": true`) {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
}

func TestExploreOut(t *testing.T) {
	p := newPlace(t, nil)
	t.Setenv(session.NoBitmaps, "")
	o := call(t.Context(), "explore", "liar", "honest:depth=5", "--property", "leak", "--instances", "1", "--out",
		"out/new")
	if o.code != exit.Gate {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	want := []string{"/out", "/out/new", "/out/new/exploration.json", "/out/new/liar-leak.png", "/out/new/liar-leak.svg",
		"/out/new/report.html", "/out/new/report.txt"}
	if got := p.files(); !slices.Equal(got, want) {
		t.Errorf("files %q", got)
	}
	report, err := os.ReadFile(filepath.Join("out", "new", "report.txt"))
	if err != nil || string(report) != o.stdout {
		t.Errorf("report.txt is not what was printed: %s, %v", report, err)
	}
	record, err := os.ReadFile(filepath.Join("out", "new", files.ExplorationName))
	if err != nil {
		t.Fatal(err)
	}
	requireExploration(t, record)
	printed := call(t.Context(), "explore", "liar", "honest:depth=5", "--property", "leak", "--instances", "1", "--json")
	if printed.stdout != string(record) {
		t.Errorf("--json and --out differ: %s\n%s", printed.stdout, record)
	}
}

// requireExploration holds JSON to the published schema.
func requireExploration(t *testing.T, b []byte) results.Exploration {
	t.Helper()
	var rec results.Exploration
	if err := json.Unmarshal(b, &rec); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	c := jsonschema.NewCompiler()
	text, err := schema.Files.ReadFile("exploration.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MustCompile("s.json").Validate(v); err != nil {
		t.Error(err)
	}
	return rec
}

// However many strategies are searched at the same time, the output is the same.
func TestExploreParallel(t *testing.T) {
	newPlace(t, nil)
	var first string
	for _, parallel := range []string{"1", "2", "0"} {
		o := call(t.Context(), "explore", "liar", "honest", "honest:color=blue", "--parallel", parallel)
		if o.code != exit.Gate { // the liar
			t.Fatalf("exit %d: %s", o.code, o.stderr)
		}
		if first == "" {
			first = o.stdout
		}
		if o.stdout != first || strings.Index(o.stdout, "liar") > strings.Index(o.stdout, "honest") {
			t.Errorf("--parallel %s prints\n%s\n, 1 prints\n%s", parallel, o.stdout, first)
		}
	}
}

// Callers that meet in memory are searched on one instance, too, unless it was said how many there are.
func TestExploreOnOneInstance(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	for _, c := range []struct{ args, want string }{
		{"", "2 on 2, 3 on 1"}, {"--faults crash", "2 on 2, 3 on 1"},
		{"--clients 4 --asks 0", "4 on 4, 4 on 1, 2 on 2, 2 on 1"}, // the least searches, since the larger ones do not end
		{"--instances 2", "2 on 2"},
	} {
		args := append([]string{"explore", "monthly", "--json", "--exit-zero", "--max-states", "50"},
			strings.Fields(c.args)...)
		o := call(t.Context(), args...)
		var got []string
		for _, s := range requireExploration(t, []byte(o.stdout)).Searches {
			got = append(got, fmt.Sprintf("%d on %d", s.Clients, s.Instances))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %s; %s", c.args, got, c.want, o.stderr)
		}
	}
	if o := call(t.Context(), "explore", "monthly", "--json",
		"--full"); len(requireExploration(t, []byte(o.stdout)).Censuses) != 1 {
		t.Errorf("--full: %s%s", o.stdout, o.stderr)
	}
}

// The first violation of any strategy ends the command, whatever else is searched at
// the same time.
func TestExploreFirst(t *testing.T) {
	newPlace(t, nil)
	for _, parallel := range []string{"1", "3"} {
		o := call(t.Context(), "explore", "honest", "liar", "honest:color=blue", "--instances", "1", "--property", "leak",
			"--first", "--parallel", parallel, "--json")
		rec := requireExploration(t, []byte(o.stdout))
		if len(rec.Searches) != 2 || len(rec.Searches[0].Findings) != 0 || len(rec.Searches[1].Findings) == 0 {
			t.Fatalf("--parallel %s: %s%s", parallel, o.stdout, o.stderr)
		}
		if len(rec.Skipped) != 1 || rec.Skipped[0].Strategy != "honest:color=blue" ||
			!strings.Contains(o.stderr, "1 strategy was not searched") {
			t.Errorf("skipped %+v, stderr %s", rec.Skipped, o.stderr)
		}
	}
}

// What the time is not enough for is claimed of nothing. The least searches of the same question are made all the same.
func TestExploreTimeout(t *testing.T) {
	newPlace(t, nil)
	o := call(t.Context(), "explore", "honest", "honest:color=blue", "--clients", "9", "--property", "stuck", "--faults",
		"all", "--max-states", "20000000", "--timeout", "2s", "--json")
	rec := requireExploration(t, []byte(o.stdout))
	least := 2 * len(explore.Faults())
	if o.code != exit.OK || len(rec.Searches) != 2+least || rec.Interrupted {
		t.Fatalf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	for i, s := range rec.Searches {
		if i >= 2 {
			if !s.Least() || s.Capped != "" || len(s.Held) == 0 {
				t.Errorf("least search of %q: ended by %q, claims %q", s.Faults, s.Capped, s.Claim)
			}
			continue
		}
		if !strings.Contains(s.Capped, "s was up") || !strings.Contains(s.Claim, "was not complete ("+s.Capped) {
			t.Errorf("ended by %q, claims %q", s.Capped, s.Claim)
		}
	}
}

// A least search that does not end has exit code 3, and a violation in it has 1.
func TestExploreLeastSearch(t *testing.T) {
	newPlace(t, nil)
	o := call(t.Context(), "explore", "honest", "--max-states", "3")
	const want = "honest: not every order of 2 callers was tried (3 states): give a longer --timeout, or more --max-states"
	if o.code != exit.Failed || !strings.Contains(o.stderr, want) || strings.Contains(o.stdout, "PASS") {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	if o := call(t.Context(), "explore", "liar", "--max-states", "4"); o.code != exit.Gate {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	both := call(t.Context(), "explore", "liar", "honest", "--instances", "1", "--max-states", "4",
		"--exit-zero")
	if both.code != exit.Failed || !strings.Contains(both.stderr, "honest: not every order of 2 callers was tried") {
		t.Errorf("a violation of another strategy: exit %d: %s%s", both.code, both.stdout, both.stderr)
	}
}

// A search that ends before its first schedule finds nothing and passes nothing, whatever gates there are.
func TestExploreUntried(t *testing.T) {
	newPlace(t, nil)
	// so that the time is up once the clients have come one after the other
	onTake = func(int64) { time.Sleep(2 * time.Millisecond) }
	t.Cleanup(func() { onTake = nil })
	for _, args := range [][]string{{}, {"--exit-zero"}, {"--require", "leak=none"}, {"--full"}} {
		o := call(t.Context(), append([]string{"explore", "honest", "--timeout", "1ms"}, args...)...)
		if o.code != exit.Failed || !strings.Contains(o.stderr,
			"honest: nothing was tried, its time was up before the first schedule: give a longer --timeout") {
			t.Errorf("%q: exit %d: %s", args, o.code, o.stderr)
		}
		if strings.Contains(o.stdout, "no violation") || strings.Contains(o.stdout, "none found") ||
			!strings.Contains(o.stdout, "tried") {
			t.Errorf("%q: claims %s", args, o.stdout)
		}
	}
}

// Ctrl-C in the second search keeps the first and what the second has.
func TestExploreInterrupted(t *testing.T) {
	for _, full := range []bool{false, true} {
		newPlace(t, nil)
		ctx, stop := context.WithCancel(t.Context())
		before := taken.Load()
		enough := int64(80)
		if full {
			enough = 5000
		}
		onTake = func(n int64) {
			if n-before == enough {
				stop()
			}
		}
		t.Cleanup(func() { onTake = nil })
		args := []string{"explore", "liar", "honest", "--clients", "9", "--limit", "1", "--parallel", "1", "--json", "--out",
			"out"}
		if full {
			args = append(args, "--full")
		} else {
			args = append(args, "--property", "leak,stuck", "--faults", "clock")
		}
		o := call(ctx, args...)
		onTake = nil
		stop()
		if o.code != exit.Interrupted || !strings.Contains(o.stderr, "what was found so far is written") {
			t.Fatalf("exit %d: %s", o.code, o.stderr)
		}
		rec := requireExploration(t, []byte(o.stdout))
		switch {
		case !rec.Interrupted:
			t.Error("not marked as interrupted")
		case full && (len(rec.Censuses) != 1 || rec.Censuses[0].Complete || rec.Censuses[0].Shortest == nil):
			t.Errorf("censuses %+v", rec.Censuses)
		case !full && (len(rec.Searches) == 0 || rec.Searches[0].Found(explore.Leak) == nil ||
			rec.Searches[len(rec.Searches)-1].Capped != "interrupted"):
			t.Errorf("%d searches", len(rec.Searches))
		}
		if _, err := os.Stat(filepath.Join("out", "liar-leak.svg")); err != nil {
			t.Error(err)
		}
	}
}

// What explore shares with run is checked with run's table; here, its own numbers.
func TestExploreHelp(t *testing.T) {
	o := call(t.Context(), "explore", "--help")
	if o.code != exit.OK || o.stderr != "" {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	golden(t, "explore-help", o.transcript())
}
