package replicated

import (
	"context"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// redisDurableMeta is of a counter in a store whose every write is on disk before its caller hears of it. The store is
// what makes it durable: nothing here does.
var redisDurableMeta = meta(strategies.Meta{
	Name:  "redis-durable",
	Needs: []strategies.Need{needDurable},
	Guarantee: []quota.Clause{
		// A refund that is made twice, by a client that repeats it or a caller that never
		// saw the reply, gives units of others back.
		quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
		family.NoFalseReject(),
	},
	Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		return openCounter(ctx, env, needDurable)
	},
})
