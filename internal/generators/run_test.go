package generators_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/generators"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
	"github.com/quotabench/quotabench/workloads"
)

const (
	generatorEnv = "QUOTABENCH_TEST_GENERATOR" // what one process of these tests is to do
	plantedUnits = 7
	plantedDrift = 3
	limit        = 100
	of           = 4
)

// task is what a generator's process is told.
type task struct {
	Part, URL, RunID, Dir, Strategy string
}

func TestMain(m *testing.M) {
	text := os.Getenv(generatorEnv)
	if text == "" {
		storetest.Main(m)
		return
	}
	var t task
	err := json.Unmarshal([]byte(text), &t)
	if err == nil {
		err = t.generate(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// planted admits 7 units over each limit, whoever asks, and counts what it admits and what
// it is asked in hashes that nobody removes.
var planted = goredis.NewScript(`
redis.call('HINCRBY', KEYS[3], ARGV[2], 1)
local n = redis.call('INCR', KEYS[1])
if n > tonumber(ARGV[1]) then return 0 end
redis.call('HINCRBY', KEYS[2], ARGV[2], 1)
return 1`)

type plants struct {
	c     goredis.UniversalClient
	env   strategies.Env
	count string
}

func (p *plants) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	count := p.count
	if r.ID >= harness.ProbeID {
		count += ":aside"
	}
	key := p.env.Prefix + string(r.Subject)
	n, err := planted.Run(ctx, p.c, []string{key, count, count + ":asked"}, r.Policy.Limit+plantedUnits, key).Int()
	return quota.Decision{Admitted: n == 1, Tier: quota.TierRedis}, err
}

func (p *plants) Close(context.Context) error { return nil }

// Used is what the counter holds, and 3 units more.
func (p *plants) Used(ctx context.Context, s quota.Subject, _ *quota.Policy) ([]quota.Reading, error) {
	n, err := p.c.Get(ctx, p.env.Prefix+string(s)).Int64()
	if errors.Is(err, goredis.Nil) {
		return []quota.Reading{{Tier: quota.TierRedis}}, nil
	}
	return []quota.Reading{{Tier: quota.TierRedis, Units: n + plantedDrift, Known: true}}, err
}

// countsIn is where planted strategies of this process count.
var countsIn string

func init() {
	strategies.Register(strategies.Meta{
		Name: "planted", Doc: "leaks and drifts by a known amount", Form: strategies.Baseline, Kinds: []quota.Kind{quota.Fixed},
		Needs: []strategies.Need{strategies.NeedRedis}, Counts: quota.CountsAttempts, Guarantee: []quota.Clause{quota.Exactly()},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return &plants{strategies.Redis(env), env, countsIn}, nil
		},
	})
}

// met is a meeting in Redis. Its clock is this machine's, which all generators have.
type met struct {
	c   *goredis.Client
	run string
}

func (m met) Bound() generators.Clock { return generators.Clock{ErrorNS: int64(50 * time.Microsecond)} }

func (m met) Meet(ctx context.Context, step string) (at time.Time, err error) {
	key := m.run + "-meet:" + step
	n, err := m.c.Incr(ctx, key).Result()
	if err == nil && n == of {
		err = m.c.Set(ctx, key+":at", clock.Wall{}.Now().Add(100*time.Millisecond).UnixNano(), time.Minute).Err()
	}
	for err == nil {
		ns, asked := m.c.Get(ctx, key+":at").Int64()
		if asked == nil {
			return time.Unix(0, ns), nil
		}
		if err = asked; errors.Is(asked, goredis.Nil) {
			err = clock.Wall{}.Sleep(ctx, time.Millisecond)
		}
	}
	return at, err
}

// generate is one generator.
func (t *task) generate(ctx context.Context) error {
	store, err := redis.Open(ctx, t.URL, stores.Options{})
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // of a test
	set := stores.NewSet()
	if err := set.Add("redis", store); err != nil {
		return err
	}
	cfg := measure.Config{Rounds: 2}
	cfg.Plan, err = harness.NewPlan(t.Strategy, "agent-api", "hot-key")
	if err != nil {
		return err
	}
	countsIn = t.RunID + "-count"
	cfg.Policy = quota.Policy{Name: "test", Limit: limit, Unit: "requests", Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}}
	cfg.Requests, cfg.Workers, cfg.Stores, cfg.Load, cfg.Seed = 2003, 4, set, harness.Closed(), 5
	cfg.Archive = filepath.Join(t.Dir, generators.HistoryDir)
	if err := os.MkdirAll(cfg.Archive, 0o755); err != nil {
		return err
	}
	if cfg.Shard, err = workloads.ParseShard(t.Part); err != nil {
		return err
	}
	c := store.Client(redis.ClientOptions{})
	defer c.Close() //nolint:errcheck // of a test
	generators.Join(&cfg, t.RunID, met{c, t.RunID})
	report, err := measure.Measure(ctx, cfg)
	if err != nil {
		return err
	}
	for i := range report.Runs {
		if a := &report.Runs[i].Audit; !a.Sound() || a.Valid {
			return fmt.Errorf("the audit of a part: %+v", a)
		}
	}
	b, err := codec.Encode(results.File{Schema: results.SchemaVersion, Kind: results.Measured, Seed: cfg.Seed, Runs: report.Runs,
		Summaries: results.Summarise(report.Runs), Workload: results.Workload{Name: "hot-key"}, Stores: map[string]results.Store{}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.Dir, "results.json"), b, 0o600)
}

// processes runs four generators on one Redis, and returns where they left what they found.
func processes(t *testing.T, strategy, run string, c *goredis.Client) (dirs []string) {
	t.Helper()
	o := c.Options()
	at := url.URL{Scheme: "redis", Host: o.Addr, User: url.UserPassword(o.Username, o.Password)}
	if o.Network == "unix" {
		at = url.URL{Scheme: "unix", Path: o.Addr, User: at.User}
	}
	var all []*exec.Cmd
	for i := range of {
		x := task{fmt.Sprintf("%d/%d", i+1, of), at.String(), run, filepath.Join(t.TempDir(), strconv.Itoa(i)), strategy}
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), generatorEnv+"="+string(b)), new(strings.Builder)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all, dirs = append(all, cmd), append(dirs, x.Dir)
	}
	for i, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("generator %d: %v: %s", i+1, err, cmd.Stderr)
		}
	}
	return dirs
}

// TestProcessesShareSubjects: what four processes did to the same keys is judged as one, and
// is what Redis counted.
func TestProcessesShareSubjects(t *testing.T) {
	testenv.Long(t) // four processes
	c, prefix := storetest.RedisClient(t)
	run := runOf(prefix)
	dirs := processes(t, "planted", run, c)
	f, err := generators.Merge(t.Context(), dirs)
	if err != nil || len(f.Runs) != 2 {
		t.Fatalf("%d runs, %v", len(f.Runs), err)
	}
	if _, err := codec.Encode(f); err != nil {
		t.Errorf("the merged record cannot be written: %v", err)
	}
	admitted, leaked, _ := counted(t, c, run+"-count")
	asked, _, trials := counted(t, c, run+"-count:asked")
	var got results.Leak
	var issued, done int64
	for i := range f.Runs {
		r := &f.Runs[i]
		got.Units, got.Trials = got.Units+r.Leak.Units, got.Trials+r.Leak.Trials
		issued, done = issued+r.Issued, done+r.Admitted
		if r.Leak.Possible != r.Leak.Units || r.ClockErrorNS < 50_000 || r.ThroughputPerS <= 0 {
			t.Errorf("round %d: %s, %g per second", r.Repetition, r.ClockText(), r.ThroughputPerS)
		}
		if g := r.Guarantee; len(g) != 1 || g[0].Verdict != results.Broken || g[0].Certain != plantedUnits {
			t.Errorf("round %d: %+v", r.Repetition, g)
		}
		if d := r.Drift; d == nil || d.Units != plantedDrift || len(d.Tiers) != 1 || d.Tiers[0].Drifting != d.Tiers[0].Readings || d.Tiers[0].Readings < 10 {
			t.Errorf("round %d: %+v", r.Repetition, d)
		}
		if !r.Audit.Valid || r.Issued != 2003 || r.Params.Generators != of || r.Params.Workers != of*4 {
			t.Errorf("round %d: %d issued, %+v", r.Repetition, r.Issued, r.Audit)
		}
	}
	if issued != asked || done != admitted || got.Units != leaked || got.Trials != trials || leaked == 0 || leaked%plantedUnits != 0 {
		t.Errorf("asked %d, admitted %d, leak %+v; Redis counted %d, %d, %d in %d trials", issued, done, got, asked, admitted, leaked, trials)
	}
	if left := c.Keys(t.Context(), "quotabench:"+run+"*").Val(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestExactStrategyOverProcesses: a counter that Redis keeps in one step leaks nothing, however
// many processes ask.
func TestExactStrategyOverProcesses(t *testing.T) {
	testenv.Long(t) // four processes
	c, prefix := storetest.RedisClient(t)
	f, err := generators.Merge(t.Context(), processes(t, "incr-expire-atomic", runOf(prefix), c))
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Runs {
		r := &f.Runs[i]
		if !r.Audit.Valid || r.Leak.Units != 0 || r.Leak.Possible != 0 || r.Leak.Trials != 10 || r.FalseRejects.Count != 0 || r.Admitted != 1003 {
			t.Errorf("round %d: %+v, %+v, %d admitted, %+v", r.Repetition, r.Leak, r.FalseRejects, r.Admitted, r.Audit)
		}
		if !r.AllowsNone(results.LeakProperty) || slices.ContainsFunc(r.Guarantee, func(c results.Clause) bool { return c.Verdict != results.Kept }) ||
			r.Drift == nil || r.Drift.Units != 0 {
			t.Errorf("round %d: %+v, drift %+v", r.Repetition, r.Guarantee, r.Drift)
		}
	}
}

// runOf is a name of a run that no other test has.
func runOf(prefix string) string {
	return "t" + strings.ReplaceAll(strings.Split(prefix, ":")[1], "_", "")
}

// counted is the sum of a hash of counts by key, what they are above the limit, and how many
// are.
func counted(t *testing.T, c *goredis.Client, hash string) (sum, above, crossed int64) {
	t.Helper()
	all, err := c.HGetAll(t.Context(), hash).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
		if n > limit {
			above, crossed = above+n-limit, crossed+1
		}
	}
	return sum, above, crossed
}
