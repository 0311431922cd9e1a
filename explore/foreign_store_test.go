package explore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// timed asks for the store's time, alone or in a pipeline, which is a command that the
// client has to encode.
type timed struct {
	rdb  redis.UniversalClient
	pipe bool
}

func (c timed) Allow(_ context.Context, key string) (bool, error) {
	ctx := context.Background()
	if !c.pipe {
		if err := c.rdb.Time(ctx).Err(); err != nil {
			return false, err
		}
	}
	p := c.rdb.Pipeline()
	n := p.Incr(ctx, key)
	p.Expire(ctx, key, time.Minute)
	if c.pipe {
		p.Time(ctx)
	}
	_, err := p.Exec(ctx)
	return n.Val() == 1, err
}

// What a client encodes goes over a connection of the bubble that it happens in.
func TestForeignConnection(t *testing.T) {
	for _, pipe := range []bool{false, true} {
		sel := foreign(t, func(env strategies.Env, _ *quota.Policy) strategies.Allower {
			return timed{strategies.Redis(env), pipe}
		}, strategies.NeedRedis)
		r, err := explore.Run(t.Context(), sel,
			explore.Config{Policy: policy(t, "1 request per fixed 1m"), Properties: []explore.Property{explore.Leak}})
		if err != nil || len(r.Findings) > 0 || r.Claim == "" {
			t.Errorf("pipelined %t: %+v, %v", pipe, r, err)
		}
	}
}
