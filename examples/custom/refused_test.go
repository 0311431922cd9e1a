package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/limits/slidinglog"
	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/strategytest"
)

// unseen are limiters that decide rightly and cannot be tested: what they do
// happens if nothing can delay it, fail it or see it. Each is refused with the
// reason instead of being called clean.
var unseen = []struct {
	name, want string
	open       func(env strategies.Env, l *slidinglog.Limiter) strategies.Allower
}{
	{"background-context", "came without the context of the call",
		func(_ strategies.Env, l *slidinglog.Limiter) strategies.Allower {
			return strategies.AllowFunc(func(_ context.Context, key string) (bool, error) {
				return l.Allow(context.Background(), key)
			})
		}},
	{"own-connection", "no command came through the client that it was given",
		func(env strategies.Env, l *slidinglog.Limiter) strategies.Allower {
			o := *strategies.Redis(env).(*redis.Client).Options()
			l.Client = redis.NewClient(&o)
			return l
		}},
	{"wall-clock", "take the time from Env.Clock",
		func(_ strategies.Env, l *slidinglog.Limiter) strategies.Allower {
			l.Now = time.Now
			return l
		}},
}

// TestUnseenWorkIsRefused by the conformance suite, by exploring and by simulating.
func TestUnseenWorkIsRefused(t *testing.T) {
	for _, c := range unseen {
		m := strategies.FromFunc(c.name, []quota.Kind{quota.Rolling},
			func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
				return c.open(env, &slidinglog.Limiter{Client: strategies.Redis(env), Limit: p.Limit, Window: p.Window.RealLength(),
					Now: env.Clock.Now}), nil
			})
		m.Guarantee = []quota.Clause{quota.Exactly()}
		t.Run(c.name+"/conformance", func(t *testing.T) {
			failures := strings.Join(strategytest.Failures(t, &m), "\n")
			if !strings.Contains(failures, c.want) {
				t.Errorf("not refused because it %s: %q", c.want, failures)
			}
			first, _, _ := strings.Cut(failures[max(0, strings.Index(failures, "the strategy's work")):], "\n")
			t.Log(first)
		})
		t.Run(c.name+"/explore", func(t *testing.T) {
			res, err := explore.Run(t.Context(), strategies.Selection{Meta: &m},
				explore.Config{Faults: []quota.Fault{quota.FaultClock}})
			if !errors.Is(err, explore.ErrUnseen) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if res != nil && res.Claim != "" {
				t.Errorf("claimed all the same: %s", res.Claim)
			}
			t.Log(err)
		})
		t.Run(c.name+"/sim", func(t *testing.T) {
			_, err := simulate(t, &m)
			// A simulation refuses the command itself, and a search looks for what is missing.
			if err == nil || !strings.Contains(err.Error(), c.want) &&
				!strings.Contains(err.Error(), "past the client that the strategy was given") {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			t.Log(err)
		})
	}
}
