package slidinglog

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	m := strategies.FromFunc("team-log", []quota.Kind{quota.Rolling},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return &Limiter{Client: strategies.Redis(env), Limit: p.Limit, Window: p.Window.RealLength(), Now: env.Clock.Now}, nil
		})
	m.Doc = "sorted set with the time of every admitted request"
	m.Guarantee = []quota.Clause{quota.Exactly()}
	strategies.Register(m)

	quota.RegisterPolicy(quota.Policy{
		Name: "search", Doc: "searches of a user", Limit: 30, Unit: "searches",
		Window: quota.Window{Kind: quota.Rolling, Length: time.Minute},
	})
}
