package slidinglog

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	meta := strategies.FromFunc("team-log", []quota.Kind{quota.Rolling},
		func(_ context.Context, env strategies.Env, policy *quota.Policy) (strategies.Allower, error) {
			return &Limiter{Client: strategies.Redis(env), Limit: policy.Limit, Window: policy.Window.RealLength(),
				Now: env.Clock.Now}, nil
		})
	meta.Doc = "sorted set with the time of every admitted request"
	meta.Guarantee = []quota.Clause{quota.Exactly()}
	strategies.Register(meta)

	quota.RegisterPolicy(quota.Policy{
		Name: "search", Doc: "searches of a user", Limit: 30, Unit: "searches",
		Window: quota.Window{Kind: quota.Rolling, Length: time.Minute},
	})
}
