package adapters

import (
	"context"

	seth "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	library(strategies.Meta{
		Name: "lib-sethvargo-memory", Doc: "sethvargo/go-limiter: a bucket in memory that is filled once per interval",
		Kinds: []quota.Kind{quota.FirstRequest}, Guarantee: quota.PerInstance(quota.FaultClock),
		Serves:  single,
		Foreign: true, ClockFixed: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		store, err := memorystore.New(&memorystore.Config{Tokens: uint64(policy.Limit), Interval: policy.Window.RealLength()})
		return sethvargo{store}, err
	})
}

type sethvargo struct{ seth.Store }

func (s sethvargo) take(ctx context.Context, key string, units int64) (int64, error) {
	_, _, _, ok, err := s.Take(ctx, key)
	return all(err == nil && ok, units), err
}

func (s sethvargo) close() error { return s.Close(context.Background()) }
