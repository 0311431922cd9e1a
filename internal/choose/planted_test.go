package choose_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/internal/choose"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// limiter makes a strategy of a function, as another module does.
func limiter(name string, allow func(ctx context.Context, env strategies.Env, p *quota.Policy, key string) (bool, error)) *strategies.Meta {
	m := strategies.FromFunc(name, []quota.Kind{quota.Fixed}, func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
		return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) { return allow(ctx, env, p, key) }), nil
	})
	m.Guarantee = []quota.Clause{quota.Exactly(quota.FaultCrash, quota.FaultOutage)}
	return &m
}

// windowed is the key of the window in force.
func windowed(env strategies.Env, p *quota.Policy, key string) string {
	return key + ":" + p.Window.Label(p.Window.At(env.Clock.Now()).Index)
}

// racy reads, compares and writes.
func racy(ctx context.Context, env strategies.Env, p *quota.Policy, key string) (bool, error) {
	key = windowed(env, p, key)
	n, err := strategies.Redis(env).Get(ctx, key).Int64()
	if err != nil && !errors.Is(err, redis.Nil) || n >= p.Limit {
		return false, err
	}
	return true, strategies.Redis(env).Set(ctx, key, n+1, p.Window.Length).Err()
}

var counting = redis.NewScript("local n = tonumber(redis.call('GET', KEYS[1]) or '0') if n >= tonumber(ARGV[1]) then return 0 end " +
	"redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1")

// right decides in one script.
func right(ctx context.Context, env strategies.Env, p *quota.Policy, key string) (bool, error) {
	n, err := counting.Eval(ctx, strategies.Redis(env), []string{windowed(env, p, key)}, p.Limit, p.Window.Length.Milliseconds()).Int()
	return n == 1, err
}

// perProcess counts in the memory of one instance.
type perProcess struct {
	mu   sync.Mutex
	used map[string]int64
	env  strategies.Env
	p    *quota.Policy
}

func (l *perProcess) Allow(_ context.Context, key string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key = windowed(l.env, l.p, key)
	if l.used[key] >= l.p.Limit {
		return false, nil
	}
	l.used[key]++
	return true, nil
}

func inMemory() *strategies.Meta {
	m := strategies.FromFunc("in-memory", []quota.Kind{quota.Fixed}, func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
		return &perProcess{used: map[string]int64{}, env: env, p: p}, nil
	})
	m.Needs, m.Guarantee = nil, []quota.Clause{quota.Exactly()}
	return &m
}

// closed rejects everything, and cannot be searched.
func closed() *strategies.Meta {
	m := limiter("closed", func(ctx context.Context, env strategies.Env, _ *quota.Policy, key string) (bool, error) {
		return false, strategies.Redis(env).Get(ctx, key).Err()
	})
	m.Open = strategies.FromFunc("closed", nil, func(_ context.Context, env strategies.Env, _ *quota.Policy) (strategies.Allower, error) {
		return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
			_, err := strategies.Redis(env).Exists(ctx, key).Result()
			return false, err
		}), nil
	}).Open
	m.Excluded = map[strategies.Mode]string{strategies.ModeExplore: "it is a test of figures", strategies.ModeSimulate: "it is a test of figures"}
	return m
}

func selections(metas ...*strategies.Meta) (out []strategies.Selection) {
	for _, m := range metas {
		out = append(out, strategies.Selection{Meta: m})
	}
	return out
}

func embedded(t *testing.T) *stores.Set {
	t.Helper()
	set, err := stores.OpenSet(t.Context(), []stores.Spec{{Name: "redis", From: "embedded"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

var minutely = quota.Policy{Name: "calls", Limit: 20, Unit: "calls", Window: quota.Window{Kind: quota.Fixed, Length: time.Minute}}

// reason is that of a strategy that is ruled out.
func reason(t *testing.T, r *choose.Result, name string) results.Evidence {
	t.Helper()
	i := slices.IndexFunc(r.RuledOut, func(x results.RuledOut) bool { return x.Strategy == name })
	if i < 0 {
		t.Fatalf("%s is not ruled out: %+v", name, r.Choice)
	}
	return r.RuledOut[i].Reason
}

// Every planted fault is found by the stage that is made for it, and what has none is
// the only candidate.
func TestPlanted(t *testing.T) {
	var r *choose.Result
	// At 50 per second no backlog grows that would say that a strategy does not keep up. On a
	// busy machine a short run may issue too few requests to count: then it is repeated.
	for length := 100 * time.Millisecond; length < 20*time.Second; length *= 2 {
		var err error
		r, err = choose.Run(t.Context(), choose.Brisk(choose.Config{
			Strategies: selections(limiter("racy", racy), limiter("right", right), inMemory(), closed()),
			Policy:     minutely, Stores: embedded(t), Rate: 50, Subjects: 100, Outage: choose.OutageClosed, Budget: 10 * time.Minute, MaxStates: 300,
		}, length))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.NotTested) == 0 {
			break
		}
		t.Logf("with runs of %v: %+v", length, r.NotTested)
	}
	if len(r.Candidates) != 1 || r.Candidates[0].Strategy != "right" || len(r.Others) != 0 || len(r.NotTested) != 0 {
		t.Fatalf("the answer is %+v", r.Choice)
	}
	kinds := map[results.EvidenceKind]bool{}
	for _, e := range r.Candidates[0].Evidence {
		kinds[e.Kind] = true
	}
	if !kinds[results.EvidenceSchedule] || !kinds[results.EvidenceSimulated] || !kinds[results.EvidenceMeasured] {
		t.Errorf("evidence is %+v", r.Candidates[0].Evidence)
	}
	e := reason(t, r, "racy")
	if e.Kind != results.EvidenceSchedule || e.Steps != 4 || !strings.HasSuffix(e.Command, e.Token) || !strings.Contains(e.Text, "admits 1 call over a limit of 1") {
		t.Errorf("racy: %+v", e)
	}
	again, err := explore.ReplayOf(t.Context(), strategies.Selection{Meta: limiter("racy", racy)}, e.Token, explore.Target{})
	if err != nil || !again.Broken || again.Leak != 1 {
		t.Errorf("the schedule of racy does not repeat: %+v, %v", again, err)
	}
	if e := reason(t, r, "in-memory"); e.Kind != results.EvidenceSchedule || !strings.Contains(e.Text, "on 2 instances") {
		t.Errorf("in-memory: %+v", e)
	}
	if e := reason(t, r, "closed"); e.Kind != results.EvidenceMeasured || !strings.Contains(e.Text, "rejects 100 %") || !strings.Contains(e.Command, "--workload hot-key") {
		t.Errorf("closed: %+v", e)
	}
}

// A delay of 2 s of virtual time is too slow over regions, wherever the Redis is.
func TestTooSlow(t *testing.T) {
	slow := limiter("slow", func(ctx context.Context, env strategies.Env, p *quota.Policy, key string) (bool, error) {
		_ = env.Clock.Sleep(ctx, 2*time.Second) // what is filled in before the start cannot wait
		return right(ctx, env, p, key)
	})
	r, err := choose.Run(t.Context(), choose.Config{Strategies: selections(slow), Policy: minutely, Stores: embedded(t), Regions: 2, P99: time.Second, Budget: 10 * time.Minute, MaxStates: 300})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Candidates) != 0 {
		t.Fatalf("the answer is %+v", r.Choice)
	}
	if e := reason(t, r, "slow"); e.Kind != results.EvidenceSimulated {
		t.Errorf("slow: %+v", e)
	}
}

// A budget that is up before anything was measured says of all that they are not tested.
func TestBudget(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := choose.Run(ctx, choose.Config{Strategies: selections(limiter("right", right)), Policy: minutely, Stores: embedded(t)})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.NotTested) != 1 || len(r.Candidates) != 0 {
		t.Errorf("the answer is %+v", r.Choice)
	}
}

// Questions that cannot be meant are refused.
func TestWrongQuestions(t *testing.T) {
	good := choose.Config{Strategies: selections(inMemory()), Policy: minutely}
	for name, change := range map[string]func(*choose.Config){
		"limit":     func(c *choose.Config) { c.Policy.Limit = 0 },
		"instances": func(c *choose.Config) { c.Instances, c.Regions = 200, choose.MaxRegions },
		"none":      func(c *choose.Config) { c.Strategies = []strategies.Selection{} },
	} {
		bad := good
		change(&bad)
		if err := bad.Complete(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := good.Complete(); err != nil {
		t.Error(err)
	}
}
