package advice

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// allower decides by a function of the client and the key.
type allower struct {
	rdb  redis.UniversalClient
	take func(ctx context.Context, c redis.UniversalClient, key string) error
}

func (a allower) Allow(ctx context.Context, key string) (bool, error) {
	return true, a.take(ctx, a.rdb, key)
}

// foreign are limiters that may start goroutines: one never expires its keys, and one panics on a goroutine of its own.
func foreign() []strategies.Meta {
	limiter := func(name string, take func(ctx context.Context, c redis.UniversalClient,
		key string) error) strategies.Meta {
		m := strategies.FromFunc(name, []quota.Kind{quota.Fixed},
			func(_ context.Context, env strategies.Env, _ *quota.Policy) (strategies.Allower, error) {
				return allower{strategies.Redis(env), take}, nil
			})
		m.Foreign = true
		return m
	}
	return []strategies.Meta{
		limiter("foreign-counts", func(ctx context.Context, c redis.UniversalClient, key string) error {
			return c.Incr(ctx, key).Err()
		}),
		limiter("foreign-dies", func(context.Context, redis.UniversalClient, string) error {
			go panic("out of order")
			select {} // the program ends
		}),
	}
}

func TestMain(m *testing.M) {
	if isolate.Dir() != "" {
		for _, f := range foreign() {
			strategies.Register(f)
		}
	}
	isolate.Serve()
	os.Exit(m.Run())
}

// TestApart: a limiter of others is read in a process of its own, and ends that alone.
func TestApart(t *testing.T) {
	for i, m := range foreign() {
		found, err := RunApart(t.Context(), strategies.Selection{Meta: &m}, quota.Policy{})
		died := new(guard.DiedError)
		switch {
		case i == 0 && (err != nil || len(found) != 1 || found[0].Code != codes.AdviseNoTTL || found[0].Strategy != m.Name):
			t.Errorf("%s: %v, %+v", m.Name, err, found)
		case i == 1 && (!errors.As(err, &died) || !strings.Contains(died.What, "out of order")):
			t.Errorf("%s: %v, %+v", m.Name, err, found)
		}
	}
}
