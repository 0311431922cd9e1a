package choose

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// kase is a real question, with what the stages that need no wall clock make of it. A
// reason is its kind and a part of its text; what is not named is left.
type kase struct {
	policy string
	change func(*Config)
	names  string
	out    map[string]string
	left   map[string]string // deployment
}

var cases = map[string]kase{
	"20 links a month over three regions": {
		policy: "user-links", change: func(c *Config) { c.Regions = 3 },
		names: "incr-expire,incr-expire-atomic,three-tier-hardened,decr-literal,decr-expire,edge-kv,app-lock,sliding-log,redis-durable",
		out: map[string]string{
			"decr-literal": "schedule: rejects although there is room, in 1 step",
			"decr-expire":  "schedule: while time passes: rejects although there is room",
			"edge-kv":      "schedule: admits 1 link over a limit of 1",
			"app-lock":     "declared: has no windows",
			"sliding-log":  "declared: serves no policy whose window is calendar-month",
		},
		left: map[string]string{
			"incr-expire": redisInOne, "incr-expire-atomic": redisInOne, "redis-durable": redisInOne, "three-tier-hardened": redisInEach,
		},
	},
	"login attempts": {
		policy: "login", names: "sliding-log,sliding-counter,gcra,token-bucket,fixed-window,memory-deque,incr-expire",
		out: map[string]string{
			"sliding-counter": "schedule: while time passes: rejects although there is room",
			"gcra":            "simulated: in virtual time: over-admits",
			"token-bucket":    "simulated: in virtual time: over-admits",
			"fixed-window":    "simulated: in virtual time: over-admits",
			"memory-deque":    "schedule: on 2 instances: admits 1 attempt over a limit of 1, in 2 steps",
			"incr-expire":     "declared: serves no policy whose window is rolling",
		},
		left: map[string]string{"sliding-log": ""},
	},
	"10 GB of storage with uploads": {
		policy: "10240 MB at a time costing 5 or 25 or 100", change: func(c *Config) { c.Settles = true },
		names: "lua-reserve,lua-reserve-hardened,check-then-set,app-lock,incr-expire,three-tier",
		out: map[string]string{
			"lua-reserve":    "schedule: admits 1 MB over a limit of 1, in 12 steps",
			"check-then-set": "schedule: admits 1 MB over a limit of 1, in 4 steps",
			"app-lock":       "schedule: admits 1 MB over a limit of 1, in 12 steps",
			"incr-expire":    "declared: serves no policy whose window is standing",
			"three-tier":     "declared: counts MB",
		},
		left: map[string]string{"lua-reserve-hardened": ""},
	},
	"1,000 calls an hour at 50,000 per second": {
		policy: "agent-api", change: func(c *Config) { c.Rate = 50_000 },
		names: "incr-expire-atomic,memory-deque,decr-literal,redis-hash",
		out: map[string]string{
			"memory-deque": "schedule: on 2 instances: admits 1 request",
			"decr-literal": "schedule: rejects although there is room",
			"redis-hash":   "schedule: admits 1 request over a limit of 1",
		},
		left: map[string]string{"incr-expire-atomic": ""},
	},
	"what survives Redis being gone": {
		policy: "contact-form", change: func(c *Config) { c.Outage = OutageSurvive },
		names: "fixed-window,incr-expire-atomic,memory-deque",
		out: map[string]string{
			"fixed-window": "schedule: where Redis cannot be reached: admits 1 submission over a limit of 1",
			"memory-deque": "schedule: admits 1 submission",
		},
		left: map[string]string{"incr-expire-atomic": ""}, // that it rejects then is a figure of a run
	},
}

// Each case is taken through the stages that need no wall clock, and every strategy
// leaves at the stage, and for the reason, that is expected of it.
func TestCases(t *testing.T) {
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, err := strategies.Parse(k.names)
			if err != nil {
				t.Fatal(err)
			}
			policy, err := quota.LookupPolicy(k.policy)
			if err != nil {
				t.Fatal(err)
			}
			cfg := Config{Strategies: chosen, Policy: policy, Stores: standIns(t), Budget: 10 * time.Minute, MaxStates: 3_000}
			if k.change != nil {
				k.change(&cfg)
			}
			c := through(t, cfg, stageDeclared, stageSearch, stageRegions)
			for _, x := range c.all {
				k.check(t, x)
			}
		})
	}
}

// standIns are stores that are there, which no stage of these tests uses.
func standIns(t *testing.T) *stores.Set {
	t.Helper()
	set, err := stores.OpenSet(t.Context(), []stores.Spec{{Name: "redis", From: "embedded"}, {Name: "redis.durable", From: "embedded"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set
}

// through takes a question through the named stages alone.
func through(t *testing.T, cfg Config, names ...string) *chooser {
	t.Helper()
	c, err := newChooser(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.stages() {
		for _, name := range names {
			if s.name == name {
				if err := c.through(context.WithoutCancel(t.Context()), s); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return c
}

func (k *kase) check(t *testing.T, x *contender) {
	t.Helper()
	name := x.sel.String()
	want, out := k.out[name]
	deployment, left := k.left[name]
	switch {
	case out == left:
		t.Errorf("%s is expected both to leave and to stay, or neither", name)
	case left:
		if !x.in() || x.deployment != deployment {
			t.Errorf("%s is to be left with %q: ruled out by %+v, not tested for %+v, with %q", name, deployment, x.ruledOut, x.untested, x.deployment)
		}
	case x.ruledOut == nil:
		t.Errorf("%s is to be ruled out by %q: not tested for %+v", name, want, x.untested)
	default:
		kind, text, _ := strings.Cut(want, ": ")
		if string(x.ruledOut.Kind) != kind || !strings.Contains(x.ruledOut.Text, text) {
			t.Errorf("%s is ruled out by %s: %s, want %q", name, x.ruledOut.Kind, x.ruledOut.Text, want)
		}
		if (x.ruledOut.Token != "") != (x.ruledOut.Kind == results.EvidenceSchedule) || (x.ruledOut.Command == "") != (x.ruledOut.Kind == results.EvidenceDeclared) {
			t.Errorf("%s is ruled out by %+v", name, x.ruledOut)
		}
	}
}
