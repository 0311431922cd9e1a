package shortlist_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/app/shortlist"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// allow decides as the Allow of a limiter does.
type allow func(ctx context.Context, env strategies.Env, p *quota.Policy, key string) (bool, error)

// planted makes a strategy of a function. It promises to hold the limit, also if a caller dies or Redis is away.
func planted(name string, kind quota.Kind, decide allow) strategies.Selection {
	open := func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
		return strategies.AllowFunc(func(ctx context.Context, key string) (bool, error) {
			return decide(ctx, env, p, key)
		}), nil
	}
	m := strategies.FromFunc(name, []quota.Kind{kind}, open)
	m.Guarantee = []quota.Clause{quota.Exactly(quota.FaultCrash, quota.FaultOutage)}
	return strategies.Selection{Meta: &m}
}

// tumbling is the key of the window in force: that of the policy if its windows follow one another.
func tumbling(env strategies.Env, p *quota.Policy, key string) string {
	now := env.Clock.Now()
	start := now.Truncate(p.Window.Length)
	if p.Window.Kind.Tumbling() { // of which a measurement moves the boundaries
		start = p.Window.At(now).Start
	}
	return key + ":" + start.Format(time.RFC3339Nano)
}

// racy reads, compares and writes.
func racy(ctx context.Context, env strategies.Env, p *quota.Policy, key string) (bool, error) {
	key = tumbling(env, p, key)
	used, err := strategies.Redis(env).Get(ctx, key).Int64()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	if err != nil || used >= p.Limit {
		return false, err
	}
	return true, strategies.Redis(env).Set(ctx, key, used+1, p.Window.Length).Err()
}

var counting = redis.NewScript(`
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
if used >= tonumber(ARGV[1]) then return 0 end
redis.call('INCR', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)

// failing decides in one script. Without Redis its decisions end in errors.
func failing(ctx context.Context, env strategies.Env, p *quota.Policy, key string) (bool, error) {
	keys := []string{tumbling(env, p, key)}
	admitted, err := counting.Eval(ctx, strategies.Redis(env), keys, p.Limit, p.Window.Length.Milliseconds()).Int()
	return admitted == 1, err
}

// closed decides as failing does, and rejects without Redis.
func closed(ctx context.Context, env strategies.Env, p *quota.Policy, key string) (bool, error) {
	admitted, err := failing(ctx, env, p, key)
	return admitted && err == nil, nil
}

var logging = redis.NewScript(`
local now = tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
local number = redis.call('INCR', KEYS[2])
redis.call('ZADD', KEYS[1], now, number)
return 1`)

// sliding keeps a log of what it admitted.
func sliding(ctx context.Context, env strategies.Env, p *quota.Policy, key string) (bool, error) {
	keys := []string{key, key + ":number"}
	now := env.Clock.Now().UnixMicro()
	admitted, err := logging.Eval(ctx, strategies.Redis(env), keys, p.Limit, p.Window.Length.Microseconds(), now).Int()
	return admitted == 1, err
}

// embedded has a Redis alone.
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

func policyOf(kind quota.Kind) quota.Policy {
	return quota.Policy{Name: "calls", Limit: 20, Unit: "calls", Window: quota.Window{Kind: kind, Length: time.Minute}}
}

// finished takes a question through all stages.
func finished(t *testing.T, q shortlist.Question) *shortlist.Shortlist {
	t.Helper()
	q.Instances = 2
	q.Seed = 1
	s := shortlist.New(q)
	if err := s.Finish(t.Context(), embedded(t), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// outcomes are what became of each strategy, as "stage: cause", or "taken".
func outcomes(s *shortlist.Shortlist) map[string]string {
	out := map[string]string{}
	for _, c := range s.Considered() {
		out[c.Strategy] = string(c.Outcome)
		if c.Outcome != codes.Taken {
			out[c.Strategy] = string(c.Stage) + ": " + string(c.Cause)
		}
	}
	return out
}

// TestPlanted: every planted fault is found by the stage that is made for it, and what has none is measured.
func TestPlanted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		question shortlist.Question
		want     map[string]string
	}{
		"fixed": {
			shortlist.Question{Policy: policyOf(quota.Fixed), Strategies: []strategies.Selection{
				planted("other", quota.Rolling, sliding), planted("racy", quota.Fixed, racy),
				planted("right", quota.Fixed, failing),
			}},
			map[string]string{"other": "declaration: other-windows", "racy": "search: leak", "right": "taken"},
		},
		"rolling": {
			shortlist.Question{Policy: policyOf(quota.Rolling), Strategies: []strategies.Selection{
				planted("at-the-end", quota.Rolling, failing), planted("right", quota.Rolling, sliding),
			}},
			map[string]string{"at-the-end": "simulation: leak", "right": "taken"},
		},
		"outage": {
			shortlist.Question{
				Policy: policyOf(quota.Fixed), Survive: []quota.Fault{quota.FaultOutage}, Strategies: []strategies.Selection{
					planted("failing", quota.Fixed, failing), planted("right", quota.Fixed, closed),
				},
			},
			map[string]string{"failing": "outage: errors", "right": "taken"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := finished(t, c.question)
			got := outcomes(s)
			for strategy, want := range c.want {
				if got[strategy] != want {
					t.Errorf("%s: %q, want %q: %+v", strategy, got[strategy], want, s.Considered())
				}
			}
			measured := s.Measure()
			if len(measured) != 1 || measured[0].Name != "right" {
				t.Errorf("to be measured: %v", measured)
			}
		})
	}
}

// TestRejectsWithoutRedis: who rejects everybody while Redis is away holds the limit, and the record says what that costs.
func TestRejectsWithoutRedis(t *testing.T) {
	t.Parallel()
	s := finished(t, shortlist.Question{
		Policy: policyOf(quota.Fixed), Survive: []quota.Fault{quota.FaultOutage},
		Strategies: []strategies.Selection{planted("closed", quota.Fixed, closed)},
	})
	said := s.Considered()[0]
	if said.Outcome != codes.Taken || said.Stage != codes.StageOutage || said.Cause != codes.RejectsValid ||
		said.Pct < 5 {
		t.Errorf("%+v", said)
	}
}

// TestTwoWindows: a policy of two windows leaves those that have two.
func TestTwoWindows(t *testing.T) {
	t.Parallel()
	second := policyOf(quota.Fixed)
	second.Name = "hourly"
	second.Limit = 200
	second.Window.Length = time.Hour
	s := finished(t, shortlist.Question{
		Policy: policyOf(quota.Fixed), Second: &second,
		Strategies: []strategies.Selection{
			planted("one", quota.Fixed, failing), testkit.Strategy(t, "fixed-window"),
		},
	})
	all := s.Considered()
	if got := all[0]; got.Cause != codes.OtherPolicies || got.Detail != "it has one window, and the policy has two" {
		t.Errorf("one window: %+v", got)
	}
	if got := all[1]; got.Outcome != codes.Taken {
		t.Errorf("two windows: %+v", got)
	}
}

// TestReasonsHaveFigures: who left by a schedule or by a run has a figure, and a command that shows it under the same
// policy.
func TestReasonsHaveFigures(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	s := finished(t, shortlist.Question{Policy: policyOf(quota.Rolling), Strategies: []strategies.Selection{
		planted("racy", quota.Rolling, racy), planted("at-the-end", quota.Rolling, failing),
	}})
	all := s.Considered()
	found := all[0]
	simulated := all[1]
	if found.Schedule == nil || found.Schedule.Steps != 4 || found.Units != 1 ||
		found.Command != "quotabench explore racy --policy '20 calls per rolling 1m'" {
		t.Errorf("racy: %+v", found)
	}
	command := "quotabench sim at-the-end --policy '20 calls per rolling 1m' "
	if most := 100 * float64(simulated.Units) / 20; most <= 0 || simulated.Pct != most || !strings.HasPrefix(simulated.Command, command) {
		t.Errorf("at-the-end: %+v", simulated)
	}
}

// TestInterrupted: what no stage has tried is neither measured nor excluded.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := shortlist.New(shortlist.Question{
		Policy: policyOf(quota.Fixed), Instances: 2, Seed: 1,
		Strategies: []strategies.Selection{planted("right", quota.Fixed, failing)},
	})
	if err := s.Finish(ctx, embedded(t), nil); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(s); got["right"] != "simulation: out-of-time" {
		t.Errorf("outcome %q", got["right"])
	}
}

// TestMost: of those that are left, as many are measured as were asked for.
func TestMost(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	loose := planted("a-loose", quota.Fixed, failing)
	loose.Guarantee = []quota.Clause{{
		Property: quota.PropertyLeak, Formula: "1", Bound: func(quota.Params) int64 {
			return 1
		}, Tolerates: []quota.Fault{quota.FaultCrash},
	}}
	s := finished(t, shortlist.Question{
		Policy: policyOf(quota.Fixed), Strategies: []strategies.Selection{loose, planted("b-exact", quota.Fixed, failing)},
		Most: 1,
	})
	got := outcomes(s)
	if got["a-loose"] != "number: outranked" || got["b-exact"] != "taken" {
		t.Errorf("outcomes %v", got)
	}
}

// TestStoredIsUsed: a search that is stored is not made again, and decides before any store is open.
func TestStoredIsUsed(t *testing.T) {
	t.Parallel()
	policy := testkit.Policy(t, shortlist.DefaultPolicy)
	all, err := strategies.Parse("three-tier,incr-expire-atomic")
	if err != nil {
		t.Fatal(err)
	}
	s := shortlist.New(shortlist.Question{Policy: policy, Instances: 2, Seed: 1, Strategies: all})
	got := outcomes(s)
	if got["three-tier"] != "search: leak" || got["incr-expire-atomic"] != "taken" {
		t.Errorf("outcomes %v", got)
	}
}
