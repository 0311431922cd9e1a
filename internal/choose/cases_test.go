package choose

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/testenv"
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
	states int  // of each search at most
	slow   bool // under the race detector, for which the other cases are enough
	change func(*Config)
	names  string
	out    map[string]string
	left   map[string]string // deployment
}

var cases = map[string]kase{
	"20 links a month over three regions": {
		policy: "user-links", states: 300, slow: true, change: func(c *Config) { c.Regions = 3 },
		names: "incr-expire-atomic,three-tier-hardened,decr-literal,edge-kv,app-lock",
		out: map[string]string{
			"decr-literal": "schedule: rejects although there is room, in 1 step",
			"edge-kv":      "schedule: admits 1 link over a limit of 1",
			"app-lock":     "declared: has no windows",
		},
		left: map[string]string{
			"incr-expire-atomic": redisInOne, "three-tier-hardened": redisInEach,
		},
	},
	"login attempts": {
		policy: "login", states: 600, slow: true, names: "sliding-log,sliding-counter,gcra,fixed-window,memory-deque,incr-expire",
		out: map[string]string{
			"sliding-counter": "simulated: in virtual time: over-admits",
			"gcra":            "simulated: in virtual time: over-admits",
			"fixed-window":    "simulated: in virtual time: over-admits",
			"memory-deque":    "schedule: on 2 instances: admits 1 attempt over a limit of 1, in 2 steps",
			"incr-expire":     "declared: serves no policy whose window is rolling",
		},
		left: map[string]string{"sliding-log": ""},
	},
	"10 GB of storage with uploads": {
		policy: "10240 MB at a time costing 5 or 25 or 100", states: 1_800, change: func(c *Config) { c.Settles = true },
		names: "lua-reserve,check-then-set,incr-expire,three-tier,redis-durable",
		out: map[string]string{
			"lua-reserve":    "schedule: admits 1 MB over a limit of 2, in 12 steps",
			"check-then-set": "schedule: admits 1 MB over a limit of 1, in 4 steps",
			"incr-expire":    "declared: serves no policy whose window is standing",
			"three-tier":     "declared: counts MB",
		},
		left: map[string]string{"redis-durable": ""}, // that it keeps abandoned units is a figure of a run
	},
	"1,000 calls an hour at 50,000 per second": {
		policy: "agent-api", states: 1_100, slow: true, change: func(c *Config) { c.Rate = 50_000 },
		names: "incr-expire-atomic,memory-deque,redis-hash",
		out: map[string]string{
			"memory-deque": "schedule: on 2 instances: admits 1 request",
			"redis-hash":   "schedule: admits 1 request over a limit of 1",
		},
		left: map[string]string{"incr-expire-atomic": ""},
	},
	"what survives Redis being gone": {
		policy: "contact-form", states: 200, change: func(c *Config) { c.Outage = OutageSurvive },
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
			if k.slow {
				testenv.Sequential(t)
			}
			t.Parallel()
			chosen, err := strategies.Parse(k.names)
			if err != nil {
				t.Fatal(err)
			}
			policy, err := quota.LookupPolicy(k.policy)
			if err != nil {
				t.Fatal(err)
			}
			cfg := Config{Strategies: chosen, Policy: policy, Stores: standIns(t), Budget: 10 * time.Minute, MaxStates: k.states}
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

// What counts in one process forgets everything if that one dies, and leaks if there are two.
func TestPerProcess(t *testing.T) {
	chosen, err := strategies.Parse("memory-deque")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := quota.LookupPolicy("login")
	if err != nil {
		t.Fatal(err)
	}
	for instances, dies := range map[int]bool{1: true, 2: false} {
		c := through(t, Config{Strategies: chosen, Policy: policy, Instances: instances}, stageDeclared, stageSearch, stagePromise)
		if why := c.all[0].ruledOut; why == nil || strings.Contains(why.Text, "if a caller or its instance dies") != dies {
			t.Errorf("with %d instances: %+v", instances, why)
		}
	}
}

// A bound that no stage has reached is still all that is promised.
func TestPromises(t *testing.T) {
	chosen, err := strategies.Parse("fixed-window,lua-reserve,check-then-set,incr-expire-atomic")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := quota.LookupPolicy("agent-api")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		outage Outage
		leak   int64
		out    map[string]string
	}{
		"nothing asked for": {outage: OutageAny, out: map[string]string{"check-then-set": "declares no bound on its leak"}},
		"an outage": {outage: OutageClosed, out: map[string]string{
			"check-then-set": "declares no bound on its leak that holds while Redis is away",
			"fixed-window":   "declares no better bound than L + instances x L, which is up to 2,000 requests over the limit here",
		}},
		"an outage, and a leak that is tolerated": {outage: OutageClosed, leak: 2_000, out: map[string]string{
			"check-then-set": "declares no bound on its leak that holds while Redis is away",
		}},
	} {
		c := through(t, Config{Strategies: chosen, Policy: policy, Outage: want.outage, TolerateLeak: want.leak}, stagePromise)
		for _, x := range c.all {
			got := ""
			if x.ruledOut != nil {
				got = x.ruledOut.Text
			}
			if got != want.out[x.sel.Name] {
				t.Errorf("%s: %s is ruled out by %q, want %q", name, x.sel.Name, got, want.out[x.sel.Name])
			}
		}
	}
}
