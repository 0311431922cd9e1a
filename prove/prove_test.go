package prove_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/prove"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// counter counts in one key for each window, and is right except for what is planted.
type counter struct {
	rdb     redis.UniversalClient
	now     func() time.Time
	policy  *quota.Policy
	planted string
}

func (c counter) Allow(ctx context.Context, key string) (bool, error) {
	limit := c.policy.Limit
	length := c.policy.Window.Length
	now := c.now().UTC().Truncate(length)
	key += now.Format(time.RFC3339Nano)
	switch c.planted {
	case "race":
		n, err := c.rdb.Get(ctx, key).Int64()
		if err != nil && !errors.Is(err, redis.Nil) || n >= limit {
			return false, err
		}
		p := c.rdb.TxPipeline()
		p.Incr(ctx, key)
		p.PExpire(ctx, key, length)
		_, err = p.Exec(ctx)
		return err == nil, err
	case twoSlots:
		p := c.rdb.TxPipeline()
		n := p.Incr(ctx, key)
		p.PExpire(ctx, key, length)
		p.Set(ctx, key+":last", 1, length)
		_, err := p.Exec(ctx)
		return err == nil && n.Val() <= limit, err
	case twoWindows, twoWindowsCharged:
		second := key + "/" + c.now().UTC().Truncate(time.Second).Format(time.RFC3339)
		n, err := bothWindows.Run(ctx, c.rdb, []string{key, second}, limit, 1, c.planted == twoWindowsCharged).Int()
		return n == 1, err
	case "a count of its package":
		if everywhere.Add(1)%3 == 0 {
			return false, c.rdb.Ping(ctx).Err()
		}
	case "a day off":
		if now.Format("2006-01-02") == "2026-01-05" {
			return true, c.rdb.Ping(ctx).Err()
		}
	}
	p := c.rdb.TxPipeline()
	n := p.Incr(ctx, key)
	p.PExpire(ctx, key, length)
	_, err := p.Exec(ctx)
	if c.planted == "open without the store" {
		return n.Val() <= limit, nil
	}
	return err == nil && n.Val() <= limit, err
}

// everywhere is what a counter of its package counts: no run finds it as another has.
var everywhere atomic.Int64

func limiter(planted string) *strategies.Meta {
	m := strategies.FromFunc("counter", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return counter{strategies.Redis(env), env.Clock.Now, p, planted}, nil
		})
	return &m
}

var stages = []prove.Stage{prove.Conformance, prove.Exploration, prove.Simulation}

// plants are defects, each with the stage that it is planted for.
var plants = map[string]prove.Stage{
	"open without the store": prove.Conformance, "race": prove.Exploration, "a day off": prove.Simulation,
	"no time":                prove.Exploration, // for a single schedule
	"a count of its package": prove.Exploration, // which cannot be searched, and must not pass in silence
}

// twoSlots is a plant that no property accuses.
const twoSlots = "keys in two slots"

// twoWindows has a window of a second besides that of its policy, and twoWindowsCharged has what that rejects charged to
// the first.
const twoWindows, twoWindowsCharged = "two windows", "two windows charged"

var bothWindows = redis.NewScript(`local fits = true
for i = 1, 2 do
	fits = fits and tonumber(redis.call('GET', KEYS[i]) or '0') < tonumber(ARGV[i])
	if not fits and ARGV[3] ~= '1' then return 0 end
	if ARGV[3] == '1' then redis.call('INCR', KEYS[i]) redis.call('PEXPIRE', KEYS[i], 60000) end
end
if ARGV[3] ~= '1' then
	for i = 1, 2 do redis.call('INCR', KEYS[i]) redis.call('PEXPIRE', KEYS[i], 60000) end
end
return fits and 1 or 0`)

// plantedVariable names the defects that TestPlanted proves.
const plantedVariable = "PROVE_PLANTED"

func TestPlanted(t *testing.T) {
	text, ok := os.LookupEnv(plantedVariable)
	if !ok {
		t.Skip("TestLimiter runs it with defects")
	}
	prove.SetBudget(2 * time.Second) // for searches that find nothing more, and that no claim needs
	for what := range strings.SplitSeq(text, ",") {
		t.Run(what, func(t *testing.T) {
			t.Parallel()                            // the suite waits for windows to pass
			o := prove.Options{Days: 6, Budget: -1} // what a search claims must not depend on the machine
			if only := plants[what]; only != "" {
				o.Budget = 3 * time.Second // a search that finds nothing more does not matter
				o.Skip = slices.DeleteFunc(slices.Clone(stages), func(s prove.Stage) bool { return s == only })
				if what == "no time" {
					o.Budget = 1
				}
				if only == prove.Simulation {
					o.Policy = testenv.Pick(hourly(t), quota.Policy{})
				}
			}
			if what == twoSlots {
				o.Budget = 0
				o.Skip = []prove.Stage{prove.Conformance, prove.Simulation}
			}
			if strings.HasPrefix(what, twoWindows) {
				o = prove.Options{Policy: testkit.Policy(t, "10 requests per fixed 1m"), Days: 1,
					Second: testkit.Policy(t, "1 requests per fixed 1s"), Skip: []prove.Stage{prove.Exploration}}
			}
			m := limiter(what)
			if way, ok := strings.CutPrefix(what, connectionsPrefix); ok {
				// Its server serves all ways.
				o = prove.Options{Policy: hourly(t), Days: 1, Skip: []prove.Stage{prove.Conformance}}
				m = connectingLimiter(way)
			}
			if only, ok := strings.CutPrefix(what, onlyPrefix); ok {
				m, o = narrowLimiter(t, only)
			}
			if name, ok := strings.CutPrefix(what, scenePrefix); ok {
				m, o = scenes[name].limiter(t)
			}
			prove.Limiter(t, m, o)
		})
	}
}

// hourly is a policy of which a day has few requests.
func hourly(t *testing.T) quota.Policy {
	t.Helper()
	p := testkit.Policy(t, "10 requests per fixed 1h")
	return p
}

// proved runs TestPlanted and returns what it prints.
func proved(t *testing.T, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestPlanted$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

// contains requires each text in what was printed.
func contains(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("no %q", text)
		}
	}
}

// Each stage fails by its name for a defect that is planted for it. The schedule that is found is repeated by the
// command that is printed.
func TestLimiter(t *testing.T) {
	out := proved(t, plantedVariable+"="+strings.Join(slices.Sorted(maps.Keys(plants)), ","))
	for what, fails := range plants {
		for _, s := range stages {
			how := map[bool]string{true: "FAIL", false: "SKIP"}[s == fails]
			contains(t, out, fmt.Sprintf("--- %s: TestPlanted/%s/%s (", how, strings.ReplaceAll(what, " ", "_"), s))
		}
	}
	contains(t, out, "GUARANTEE in", "name Exploration in Options.Skip", "not every order of 2 callers was tried",
		"LEAK: ", "beyond the limit of 10", "the same in every run")
	_, rest, _ := strings.Cut(out, "QUOTABENCH_REPLAY=")
	token, rest, _ := strings.Cut(rest, " ")
	if !strings.HasPrefix(rest, "go test -run '^TestPlanted$/^race$'") {
		t.Errorf("the command is %q", rest)
	}
	for _, what := range []string{"race", "nothing"} {
		again := proved(t, plantedVariable+"="+what, "QUOTABENCH_REPLAY="+token)
		if strings.Contains(again, "guarantee again: ") != (what == "race") || strings.Contains(again, "exploration") {
			t.Errorf("%s, repeated: %s", what, again)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// No stage accuses a limiter that is right. Its search visits every schedule.
func TestRightLimiter(t *testing.T) {
	testenv.Long(t)
	out := proved(t, plantedVariable+"=nothing")
	for _, s := range stages {
		contains(t, out, fmt.Sprintf("--- PASS: TestPlanted/nothing/%s (", s))
	}
	contains(t, out, "claimed: does what its Meta declares", "no violation found in any schedule of 2 clients",
		"nothing beyond what is guaranteed in 6 days")
	if t.Failed() {
		t.Log(out)
	}
}

// What a cluster refuses is logged, and fails nothing.
func TestAdviceIsLogged(t *testing.T) {
	out := proved(t, plantedVariable+"="+twoSlots)
	contains(t, out, "--- PASS: TestPlanted/keys_in_two_slots/exploration (",
		"advice: slots, 180 times: a Redis Cluster refuses keys in several slots")
	if t.Failed() {
		t.Log(out)
	}
}

// What a second window rejects is no error, if there is said to be one, unless it is charged to the first. Package explore
// tests how both are searched.
func TestTwoWindows(t *testing.T) {
	out := proved(t, plantedVariable+"="+twoWindows+","+twoWindowsCharged)
	contains(t, out, "--- PASS: TestPlanted/two_windows (", "--- FAIL: TestPlanted/two_windows_charged/conformance/rejected (",
		"whose rejections are not judged")
	if t.Failed() {
		t.Log(out)
	}
}

// onlyPrefix begins the names of plants that serve one policy only: in any limit, or in its own, and
// registered, given or not known.
const onlyPrefix = "only "

// narrow are those, each with the stages that run.
var narrow = map[string][]prove.Stage{
	"any registered": stages, "any given": stages, "own registered": {prove.Simulation}, "own given": {prove.Simulation},
	"own unknown": nil,
}

func narrowLimiter(t *testing.T, only string) (*strategies.Meta, prove.Options) {
	t.Helper()
	limit, known, _ := strings.Cut(only, " ")
	p := testkit.Policy(t, "20 "+limit+known+" per fixed 1h")
	p.Name = limit + known
	serves := func(q *quota.Policy) error {
		if q.Unit != p.Unit || q.Window.Length != p.Window.Length || limit == "own" && q.Limit != p.Limit {
			return fmt.Errorf("only %s is served, and not %s", p.Text(), q.Text())
		}
		return nil
	}
	m := strategies.FromFunc("narrow", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, q *quota.Policy) (strategies.Allower, error) {
			return counter{strategies.Redis(env), env.Clock.Now, q, ""}, serves(q)
		})
	single := m.Serves
	m.Serves = func(q *quota.Policy) error { return errors.Join(single(q), serves(q)) }
	o := prove.Options{Days: 1}
	switch known {
	case "registered":
		quota.RegisterPolicy(p)
	case "given":
		o.Policy = p
	}
	return &m, o
}

// A limiter of one policy is proved by that. A stage that knows no policy that is served accuses nobody, and is not
// taken for a proof.
func TestNarrow(t *testing.T) {
	var names []string
	for only := range narrow {
		names = append(names, onlyPrefix+only)
	}
	out := proved(t, plantedVariable+"="+strings.Join(names, ","))
	for only, ran := range narrow {
		name := "TestPlanted/" + strings.ReplaceAll(onlyPrefix+only, " ", "_")
		how := map[bool]string{true: "PASS", false: "SKIP"}
		for _, s := range stages {
			contains(t, out, fmt.Sprintf("--- %s: %s/%s (", how[slices.Contains(ran, s)], name, s))
		}
		contains(t, out, fmt.Sprintf("--- %s: %s (", how[ran != nil], name))
	}
	contains(t, out,
		"not tested: narrow serves no policy that is known with limits of 1 and 16",
		"not searched: a search needs a limit of 1 here",
		"not tried: narrow serves no policy that is known: register one", "what has not run is conformance, exploration",
		"nothing is proved: no stage has run",
	)
	if t.Failed() {
		t.Log(out)
	}
}
