package explore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// mending counts in Redis. Who creates the key gives it an hour to live. From that count on
// who finds it without a time to live gives it one of mended. Everybody reads it so often
// before, for the sake of the states.
func mending(mended time.Duration, from int64, reads int) strategies.Selection {
	return plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		key := p.env.Prefix + "k"
		for range reads {
			if err := strategies.Redis(p.env).Exists(ctx, key).Err(); err != nil {
				return quota.Decision{}, err
			}
		}
		n, err := strategies.Redis(p.env).Incr(ctx, key).Result()
		left := time.Hour
		if err == nil && n > 1 {
			if n < from {
				return verdict(n <= r.Policy.Limit, nil)
			}
			left = mended
			var has time.Duration
			has, err = strategies.Redis(p.env).TTL(ctx, key).Result()
			if err == nil && has >= 0 {
				return verdict(n <= r.Policy.Limit, nil)
			}
		}
		return verdict(n <= r.Policy.Limit, errors.Join(err, strategies.Redis(p.env).Expire(ctx, key, left).Err()))
	})
}

// A key that expires too early is seen by its time to live, and no time has to pass.
func TestShortTimeToLive(t *testing.T) {
	for mended, short := range map[time.Duration]bool{time.Minute: true, time.Hour: false} {
		sel := mending(mended, 2, 0)
		r, err := explore.Run(t.Context(), sel,
			explore.Config{Policy: policy(t, "3 requests per calendar hour"), Properties: []explore.Property{explore.TTL}})
		if err != nil {
			t.Fatal(err)
		}
		f := r.Found(explore.TTL)
		if (f != nil) != short || r.Capped != "" {
			t.Fatalf("mended for %v: %+v, ended by %q", mended, f, r.Capped)
		}
		if f == nil {
			continue
		}
		if !strings.Contains(f.Detail, "expires in 1m0s") || !strings.Contains(f.Detail, "in 1h0m0s") {
			t.Errorf("it says %q", f.Detail)
		}
		again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{})
		if err != nil || !again.Broken || !slices.EqualFunc(again.Finding.Steps, f.Steps, results.Step.Equal) {
			t.Errorf("the token gives %+v, %v", again, err)
		}
	}
}

// Some order of the clients leaves as little time to live: who comes last sets it anew.
func TestShortTimeToLiveOfAnOrder(t *testing.T) {
	sel := plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		key := p.env.Prefix + "k"
		n, err := strategies.Redis(p.env).Incr(ctx, key).Result()
		if err == nil {
			_, err = strategies.Redis(p.env).Pipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Expire(ctx, key, time.Duration(4-n)*time.Hour)
				return nil
			})
		}
		return verdict(n <= r.Policy.Limit, err)
	})
	r, err := explore.Run(t.Context(), sel,
		explore.Config{Policy: policy(t, "3 requests per calendar hour"), Properties: []explore.Property{explore.TTL}})
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Found(explore.TTL); f != nil {
		t.Errorf("%s, which the first caller alone does not leave, but the second does", f.Detail)
	}
}

// Every worker of a search knows what orders leave.
func TestShortTimeToLiveOnAllCores(t *testing.T) {
	testenv.Long(t)
	testenv.Sequential(t)
	cfg := explore.Config{Policy: policy(t, "5 requests per calendar hour"), Limit: 5, Clients: 4,
		Properties: []explore.Property{explore.TTL}}
	var first string
	for _, cfg.Workers = range []int{1, 2, 4} {
		r, err := explore.Run(t.Context(), mending(time.Minute, 4, 3), cfg)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Found(explore.TTL)
		if f == nil {
			t.Fatalf("%d workers find nothing in %d states", cfg.Workers, r.States)
		}
		if r.States < 1_000 {
			t.Fatalf("%d states are too few for several workers", r.States)
		}
		if first == "" {
			first = f.Token
		} else if f.Token != first {
			t.Errorf("%d workers find %s, and one finds %s", cfg.Workers, f.Token, first)
		}
	}
}
