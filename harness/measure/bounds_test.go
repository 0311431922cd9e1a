package measure

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// sized is a measurement of n strategies.
func sized(t *testing.T, workload string, n int) Config {
	t.Helper()
	w, err := workloads.Lookup(workload)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Plan: harness.Plan{Traffic: harness.Traffic{Workload: w}}}
	c.Policy.Limit = 1
	for range n {
		m := strategies.Meta{Name: "a", Needs: []strategies.Need{strategies.NeedRedis}}
		c.Strategies = append(c.Strategies, strategies.Selection{Meta: &m})
	}
	return c
}

func TestMeasurementsAreBounded(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(c *Config)
	}{
		{"", func(c *Config) {
			c.Pool = 235
			c.Instances = 255
			c.ClientRetries = bounds.MaxRetries
			c.Rounds = bounds.MaxRounds
			c.Duration = bounds.MaxDuration
		}},
		{"a pool of 10001 connections: give 1 to 10000", func(c *Config) { c.Pool = bounds.MaxPool + 1 }},
		{"a pool of 4294967296 connections", func(c *Config) { c.Pool = 1 << 32 }},
		{"236 connections in each of 255 instances are 60180 to each store", func(c *Config) {
			c.Pool = 236
			c.Instances = 255
		}},
		{"101 client retries: give 0 to 100", func(c *Config) { c.ClientRetries = bounds.MaxRetries + 1 }},
		{"a duration of 24h0m0.000000001s: give at most 24h0m0s", func(c *Config) { c.Duration = bounds.MaxDuration + 1 }},
		{"11 strategies in 1000 rounds are 11000 runs", func(c *Config) {
			c.Strategies = sized(t, "hot-key", 11).Strategies
			c.Rounds = 1000
		}},
		{"1e+09 requests per second for 1s are 1,000,000,000 requests", func(c *Config) {
			c.Load = harness.Load{Loop: harness.Both, PerSecond: 1e9}
			c.Duration = time.Second
		}},
		{"1e+09 requests per second for 1s are 1,000,000,000 requests", func(c *Config) {
			c.Load = harness.OpenAt(1e9)
			c.Duration = time.Second
		}},
		{"a rate of NaN", func(c *Config) { c.Load = harness.Load{Loop: harness.Both, PerSecond: math.NaN()} }},
	} {
		cfg := sized(t, "hot-key", 1)
		c.change(&cfg)
		if err := cfg.Complete(); c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// small is a store that has room for few connections.
type small struct {
	stores.Store
	left  int
	known bool
}

func (small) Driver() string { return "redis" }
func (s small) Room(context.Context) (int, string, bool) {
	return s.left, "maxclients", s.known
}

func TestCheckRoom(t *testing.T) {
	for _, c := range []struct {
		room      small
		instances int
		want      string
	}{
		{small{left: 100, known: true}, 2, ""},
		{small{left: 99, known: true}, 2,
			"strategy a opens 50 connections to redis in each of 2 instances, 100 in all, and the server has room for 99 " +
				"(maxclients)"},
		{small{}, 2, ""},
	} {
		cfg := sized(t, "hot-key", 1)
		cfg.Instances, cfg.Stores = c.instances, stores.NewSet()
		if err := cfg.Stores.Add("redis", c.room); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Complete(); err != nil {
			t.Fatal(err)
		}
		cfg.Strategies[0].Open = func(context.Context, strategies.Env) (strategies.Strategy, error) { return nil, nil }
		cfg.Strategies[0].Kinds = append(cfg.Strategies[0].Kinds, cfg.Policy.Window.Kind)
		if err := cfg.CheckRoom(t.Context()); c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
