package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/app/faults"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
	"github.com/quotabench/quotabench/workloads"
)

// limiter counts in Redis. Without it, it does as it is told to.
type limiter struct {
	env   strategies.Env
	limit int64
	down  quota.Decision
}

func (l *limiter) Allow(context.Context, string) (bool, error) { return false, nil }

func (l *limiter) Decide(ctx context.Context, key string) (quota.Decision, error) {
	n, err := strategies.Redis(l.env).Incr(ctx, key).Result()
	if err != nil {
		return l.down, ctx.Err()
	}
	return quota.Decision{Admitted: n <= l.limit, Remaining: -1}, nil
}

// plant registers a limiter that declares one thing, and does another or the same.
func plant(name, declares string, does quota.Decision) {
	m := strategies.FromFunc(name, []quota.Kind{quota.CalendarMonth},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			does.Remaining = -1
			return &limiter{env, p.Limit, does}, nil
		})
	m.Guarantee = []quota.Clause{quota.Exactly(), {
		Property: quota.PropertyLeak, Formula: "L unless open", Tolerates: []quota.Fault{quota.FaultOutage},
		Bound: func(p quota.Params) int64 {
			if declares == "open" {
				return p.Offered
			}
			return 0
		},
	}}
	if declares != "" {
		m.Down = func(quota.Options) string { return declares }
	}
	strategies.Register(m)
}

func init() {
	open := quota.Decision{Admitted: true, Tier: quota.TierProcess, Degraded: true}
	closed := quota.Decision{Tier: quota.TierProcess, Degraded: true}
	plant("planted-open", "open", open)
	plant("planted-closed", "closed", closed)
	plant("planted-says-open", "open", closed)
	plant("planted-says-closed", "closed", open)
	plant("planted-hides", "closed", quota.Decision{Admitted: true}) // as if Redis had admitted
	plant("planted-leaks", "", open)
}

const short = `
settings: --workload steady:subjects=4 --loop open --rate 1000 --redis embedded
quick: --rounds 1
policies: [60 requests per calendar month]
faults:
  - {name: none, says: Nothing goes wrong.}
  - {name: away, says: Redis is away., needs: redis, settings: "--trouble {store}:away@0.2-0.5"}
`

// TestPlanted: limiters that fail open and closed get the right cells, and a wrong declaration is found; the same
// follows from the records alone. Half of the limiters and a control without a fault are left to long tests: each costs
// a third of a second of processor time. A machine that stands still may sleep through an outage, which is then tried
// again, and longer.
func TestPlanted(t *testing.T) {
	for _, d := range []string{"400ms", "2s", "8s"} {
		problems := tryPlanted(t, d)
		if problems == nil {
			return
		}
		t.Logf("with %s:\n%s", d, strings.Join(problems, "\n"))
	}
	t.Error("no duration gives the right cells")
}

func tryPlanted(t *testing.T, duration string) (problems []string) {
	dir := t.TempDir()
	list := filepath.Join(dir, "list.yaml")
	out := filepath.Join(dir, "out")
	if err := os.WriteFile(list, []byte(strings.Replace(short, "--rounds", "--duration "+duration+" --rounds", 1)),
		0o644); err != nil {
		t.Fatal(err)
	}
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	want := testenv.Pick(map[string]string{
		"planted-open": "holds", "planted-closed": "holds",
		"planted-hides": "refuted: it declares to fail closed, and admitted",
	}, map[string]string{
		"planted-open": "holds", "planted-closed": "holds",
		"planted-says-open":   "refuted: it declares to fail open, and did not admit",
		"planted-says-closed": "refuted: it declares to fail closed, and admitted",
		"planted-hides":       "refuted: it declares to fail closed, and admitted",
		"planted-leaks":       "refuted: declared is leak L unless open",
	})
	args := []string{"faults", "--list", list, "--format", "json", "--quiet", "--fault", testenv.Pick("away", "none,away")}
	for name := range want {
		args = append(args, name)
	}
	verdicts := func(args ...string) map[string]string {
		var record, messages bytes.Buffer
		if code := cli.Main(args, &record, &messages); code != exit.Gate {
			wrong("exit %d\n%s", code, &messages)
		}
		var r claims.Report
		if err := json.Unmarshal(record.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, cells := range r.ByFault() {
			for _, j := range cells {
				if cells[0].Record == "none" && j.Verdict != claims.Holds {
					wrong("without a fault: %+v", j)
				}
				got[j.ID] = strings.TrimSuffix(string(j.Verdict)+": "+j.Why, ": ")
				for _, f := range j.Figures {
					leaks := cells[0].Record == "away" && !strings.Contains(j.ID, "planted-closed") && j.ID != "planted-says-open"
					if f.Key == "leak" && (f.Value == nil || (*f.Value > 0) != leaks) || f.Key == "recovery" &&
						(f.Value == nil) == (cells[0].Record == "away") {
						wrong("%s, %s: %+v", j.Record, j.ID, f)
					}
				}
			}
		}
		return got
	}
	got := verdicts(append(slices.Clone(args), "--out", out)...)
	again := verdicts("faults", "--list", list, "--from", out, "--format", "json", "--fault", "away")
	for name, verdict := range want {
		if !strings.HasPrefix(got[name], verdict) || again[name] != got[name] {
			wrong("%s: %q, and from its records %q, want %q", name, got[name], again[name], verdict)
		}
	}
	if page, err := os.ReadFile(filepath.Join(out, "faults.html")); err != nil || !strings.Contains(string(page), `title="refuted: it declares`) {
		wrong("%v, the page is\n%s", err, page)
	}
	return problems
}

// TestBuiltin: the faults that are built in are command lines that can be run, and each has strategies.
func TestBuiltin(t *testing.T) {
	l, err := faults.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(l.Faults); n < 16 {
		t.Errorf("%d faults", n)
	}
	chosen, err := strategies.Parse("all")
	if err != nil {
		t.Fatal(err)
	}
	files, err := l.Files(chosen)
	if err != nil || len(files) != len(l.Faults) {
		t.Fatalf("%v, %d files of %d faults", err, len(files), len(l.Faults))
	}
	for i, f := range files {
		crosses := strings.Contains(l.Faults[i].Settings, "--workload boundary")
		if crosses != l.Faults[i].Crosses {
			t.Errorf("%s: a window ends: %t", f.Record, crosses)
		}
		for _, c := range f.Claims {
			if c.ID == "app-lock" && (c.Cell == nil) != crosses { // which has no reset, and would have the run refused for all
				t.Errorf("%s: app-lock takes part: %t", f.Record, c.Cell != nil)
			}
		}
		for name, r := range f.Runs {
			if !strings.HasPrefix(r.Command, "run ") {
				t.Errorf("%s: %s", name, r.Command)
			}
			for _, more := range []string{r.Quick, r.Full, r.Quick + " --duration " + f.Longer} {
				if err := accepted(r.Command + " " + more + " --print-config"); err != "" {
					t.Errorf("%s: %s", f.Record, err)
				}
			}
		}
	}
}

// TestLoad: each subject is asked for more than its limit, and reaches it neither before the faults end nor with its
// last requests. A limit changes 400 ms or more before a subject reaches the old or the new one, if cells are measured
// for longer, too: until then a strategy may go by either.
func TestLoad(t *testing.T) {
	l, err := faults.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{}
	for words := strings.Fields(l.Settings); len(words) > 1; words = words[2:] {
		given[strings.TrimPrefix(words[0], "--")] = words[1]
	}
	stream, err := options.One(given["workload"], "workload", func(string) ([]quota.Option, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	w, err := workloads.Lookup(stream.Name)
	if err != nil {
		t.Fatal(err)
	}
	perS, err1 := strconv.ParseInt(given["rate"], 10, 64)
	length, err2 := time.ParseDuration(given["duration"])
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	policy := testkit.Policy(t, l.Policies[0])
	longer, err := time.ParseDuration(l.Longer)
	if err != nil || longer < 2*length {
		t.Errorf("%v, %v is longer than %v", err, longer, length)
	}
	var changed trouble.List
	for _, f := range l.Faults {
		if text, ok := strings.CutPrefix(f.Settings, "--trouble limit:"); ok {
			changed = append(changed, trouble.MustParse("limit:"+text)...)
		}
	}
	all := perS * int64(length/time.Second)
	for seed := range uint64(20) {
		s, _, err := w.New(workloads.Params{Seed: seed, Policy: &policy, Options: stream.Given})
		if err != nil {
			t.Fatal(err)
		}
		asked := map[uint32]int64{}
		full := 0
		for i := range all {
			var op workloads.Op
			s.At(i, &op)
			asked[op.Subject]++
			for _, c := range changed {
				at, _ := c.When.Within(longer)
				room := time.Duration(i)*time.Second/time.Duration(perS) - at
				if asked[op.Subject] == min(c.What.Units, policy.Limit) && room < 400*time.Millisecond {
					t.Errorf("seed %d: subject %d reaches a limit %v after it has changed to %d", seed, op.Subject, room, c.What.Units)
				}
			}
			if asked[op.Subject] == policy.Limit {
				full++
				if i < all*2/5 || i > all*9/10 {
					t.Errorf("seed %d: request %d of %d reaches the limit of subject %d", seed, i, all, op.Subject)
				}
			}
		}
		if full != 4 || workloads.Initial(s, 0) != 0 {
			t.Errorf("seed %d: %d subjects reach their limit of %d; they ask %v", seed, full, policy.Limit, asked)
		}
	}
}

// accepted is what a command line that prints its configuration alone is refused for.
func accepted(line string) string {
	var args []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	var messages bytes.Buffer
	if cli.Main(args, new(bytes.Buffer), &messages) != exit.OK {
		return line + "\n" + messages.String()
	}
	return ""
}

// TestShared: strategies with the same settings share a run, and each has the store that it needs.
func TestShared(t *testing.T) {
	l, err := faults.Parse("list", []byte(`{settings: -s, quick: -q, full: -f, policies: [9 x per calendar month, 9 x per rolling 1h], faults: [
  {name: calm, says: Nothing.}, {name: away, says: Away., needs: redis, settings: "--trouble {store}:away"}, {name: memory, says: Little., needs: redis, settings: --little}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strategies.Parse("incr-expire,tenant"); err == nil {
		t.Fatal("an unknown strategy is taken")
	}
	chosen, err := strategies.Parse("incr-expire,lease,sliding-log,redis-durable,pg-check")
	if err != nil {
		t.Fatal(err)
	}
	files, err := l.Files(chosen)
	if err != nil {
		t.Fatal(err)
	}
	month := `--policy "9 x per calendar month" -s `
	rolling := `--policy "9 x per rolling 1h" -s `
	want := []map[string]claims.Run{
		{"calm": {Command: "run incr-expire lease redis-durable pg-check", Quick: month + " -q"},
			"calm-2": {Command: "run sliding-log", Quick: rolling + " -q"}},
		{
			"away":   {Command: "run incr-expire lease", Quick: month + "--trouble redis:away -q"},
			"away-2": {Command: "run sliding-log", Quick: rolling + "--trouble redis:away -q"},
			"away-3": {Command: "run redis-durable", Quick: month + "--trouble redis.durable:away -q"},
		},
		{"memory": {Command: "run incr-expire lease", Quick: month + "--little -q"},
			"memory-2": {Command: "run sliding-log", Quick: rolling + "--little -q"}},
	}
	for i, f := range files {
		for name, r := range f.Runs {
			if w := want[i][name]; r.Command != w.Command || r.Quick != w.Quick || r.Full != strings.TrimSuffix(w.Quick, "q")+
				"f" {
				t.Errorf("%s: %+v, want %+v", name, r, w)
			}
		}
		if len(f.Runs) != len(want[i]) {
			t.Errorf("%s: %d runs", f.Record, len(f.Runs))
		}
	}
	chosen, err = strategies.Parse("incr-expire,incr-expire:down=open,lease:down=open,incr-expire-atomic,gcra")
	if err == nil {
		files, err = l.Files(chosen)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"closed", "open", "open", "closed", ""} {
		if c := files[0].Claims[i]; c.Cell == nil || c.Cell.Down != want {
			if want != "" || c.Unmeasurable == "" {
				t.Errorf("%s declares %+v, want %q", c.ID, c.Cell, want)
			}
		}
	}
	for _, c := range files[0].Claims {
		if files[0].Title != "Nothing." || c.Says != "Nothing." {
			t.Errorf("%s, %s is said to be %q", files[0].Title, c.ID, c.Says)
		}
	}
	if err := l.Keep(nil); err != nil || len(l.Faults) != 3 {
		t.Errorf("nothing is named: %v, %v", err, l.Names())
	}
	// A source of limits is in PostgreSQL. A fault of a store that nobody needs has no file.
	source := strategies.Selection{Meta: &strategies.Meta{Name: "planted", Needs: []strategies.Need{strategies.NeedSource},
		Kinds: quota.Kinds()}}
	if away, err := faults.Parse("list", []byte(`{policies: [9 x per calendar month], faults: [{name: a, says: A., needs: redis},
  {name: b, says: B., needs: postgres, settings: "--trouble {store}:away"}]}`)); err != nil {
		t.Fatal(err)
	} else if files, err := away.Files([]strategies.Selection{source}); err != nil || len(files) != 1 ||
		!strings.Contains(files[0].Runs["b"].Quick, "postgres:away") {
		t.Errorf("%v, %d files", err, len(files))
	} else if err := away.Keep([]string{"a"}); err != nil {
		t.Fatal(err)
	} else if _, err := away.Files([]strategies.Selection{source}); err == nil {
		t.Error("none of the faults is of a store that is needed")
	}
	if err := l.Keep([]string{"away"}); err != nil || len(l.Faults) != 1 {
		t.Errorf("%v, %v", err, l.Names())
	}
	if err := l.Keep([]string{"calm"}); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("an unknown fault: %v", err)
	}
}

// TestParse: a list that says too little, or something unknown, is refused with its place.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"faults: [{nam: x}]":                                              "list:1: ",
		"faults: [{name: x, says: y}]":                                    "at least one of faults and one of policies",
		"policies: [p]\nfaults: []":                                       "at least one of faults and one of policies",
		"policies: [p]\nfaults: [{name: ../victim, says: y}]":             `"../victim" cannot be the name of a directory`,
		"policies: [p]\nfaults: [{name: \"a\\e[1m\", says: y}]":           "cannot be the name of a directory",
		"policies: [p]\nlonger: -5s\nfaults: [{name: x, says: y}]":        `longer: "-5s" is no duration`,
		"policies: [p]\nlonger: NaN\nfaults: [{name: x, says: y}]":        `longer: "NaN" is no duration`,
		"policies: [p]\nfaults: [{says: y}]":                              "needs a name of its own and a sentence",
		"policies: [p]\nfaults: [{name: x}]":                              "needs a name of its own and a sentence",
		"policies: [p]\nfaults: [{name: x, says: y}, {name: x, says: y}]": `fault 2 ("x")`,
	} {
		if _, err := faults.Parse("list", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestOwnPolicies: a fault with policies of its own is tried with these, and by strategies that serve them.
func TestOwnPolicies(t *testing.T) {
	l, err := faults.Parse("list", []byte(`{settings: -s, policies: [9 x per calendar month, 9 x per rolling 1h], faults: [
  {name: calm, says: Nothing.}, {name: end, says: A month ends., policies: [4 x per calendar month]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := strategies.Parse("incr-expire,sliding-log")
	if err != nil {
		t.Fatal(err)
	}
	files, err := l.Files(chosen)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || len(files[0].Runs) != 2 || len(files[1].Runs) != 1 ||
		!strings.HasPrefix(files[1].Runs["end"].Quick, `--policy "4 x per calendar month" -s`) || files[1].Claims[1].Unmeasurable == "" {
		t.Errorf("%+v", files)
	}
}

// TestStepsOfClocks: a part of a bucket that can be seen flows in within the time by which a clock steps back.
func TestStepsOfClocks(t *testing.T) {
	l, err := faults.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, f := range l.Faults {
		text, ok := strings.CutPrefix(f.Settings, "--trouble instance/0:clock=-")
		if !ok {
			continue
		}
		steps++
		step := -trouble.MustParse("instance/0:clock=-" + text)[0].What.For
		texts := f.Policies
		if len(texts) == 0 {
			texts = l.Policies
		}
		for _, text := range texts {
			policy := testkit.Policy(t, text)
			window := policy.Window
			if flown := window.Flow().At(int64(step)).Units; window.Kind == quota.Bucket && flown < policy.Limit/5 {
				t.Errorf("%s: %d units of %q flow in within %v", f.Name, flown, text, step)
			}
		}
	}
	if steps == 0 {
		t.Error("no clock steps back")
	}
}

// TestBucketsAlone: a strategy that serves buckets alone takes part in all but what a bucket cannot do.
func TestBucketsAlone(t *testing.T) {
	l, err := faults.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	m := strategies.FromFunc("bucket-alone", []quota.Kind{quota.Bucket},
		func(context.Context, strategies.Env, *quota.Policy) (strategies.Allower, error) {
			return &limiter{}, nil
		})
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := l.Files([]strategies.Selection{sel})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		cannot := strings.HasPrefix(f.Record, "limit-") || f.Record == "clock-ahead" // of which a calendar is the policy
		if got := f.Claims[0].Unmeasurable != ""; got != cannot {
			t.Errorf("%s: it is left out: %t", f.Record, got)
		}
	}
}

// bomb is a list whose aliases stand for 9^11 values.
func bomb() string {
	text := "a0: &a0 {k: v}\n"
	for i := range 11 {
		text += fmt.Sprintf("a%d: &a%[1]d {<<: [%s*a%d]}\n", i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 8), i)
	}
	return text
}

// FuzzParse reads lists of faults, and plans their cells. What is taken leaves the directory of the report by no name.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"settings: --redis process\npolicies: [9 x per rolling 1h]\nlonger: 5s\nfaults: [{name: away, says: It is away., needs: redis, " +
			"settings: \"--trouble {store}:away@0.2-0.4\", crosses: true}]",
		"policies: [p]\nfaults: [{name: ../victim, says: y}]",
		"policies: [p]\nfaults: [{name: ../../../x, says: y}]",
		"policies: [p]\nfaults: [{name: \"a\\e[1m\", says: y}]",
		"policies: [p]\nlonger: -5s\nfaults: [{name: x, says: y}]",
		"policies: [p]\nlonger: NaN\nfaults: [{name: x, says: y}]",
		"policies: [9 x per rolling 1h]\nfaults: [{name: x, says: y}]\n---\nfaults: []",
		bomb(), "- 1", "",
	} {
		f.Add(text)
	}
	chosen := []strategies.Selection{testkit.Strategy(f, "incr-expire"), testkit.Strategy(f, "pg-conditional")}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := faults.Parse("f.yaml", []byte(text))
		var files []*claims.File
		if err == nil {
			files, err = list.Files(chosen)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is no line", err)
		}
		for _, file := range files {
			for name := range file.Runs {
				if !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\") {
					t.Errorf("a run is called %q", name)
				}
			}
		}
	})
}
