package confirm

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
)

// One unit flows in each second. A caller who comes every 1.5 s and takes what is there
// must get two units of three on average.
var redisRateAtMost = Confirmation{Name: "redis-rate-at-most", Redis: true, Run: func(env Env) (string, bool, error) {
	ctx := context.Background()
	limiter := redis_rate.NewLimiter(env.Redis)
	limit := redis_rate.Limit{Rate: 1, Period: time.Second, Burst: 3}
	if _, err := limiter.AllowN(ctx, "redis-rate-at-most", limit, 3); err != nil {
		return "", false, err
	}
	granted := 0
	for range 20 {
		env.Wait(1500 * time.Millisecond)
		res, err := limiter.AllowAtMost(ctx, "redis-rate-at-most", limit, 2)
		if err != nil {
			return "", false, err
		}
		granted += res.Allowed
	}
	return fmt.Sprintf("AllowAtMost granted %d units in the 30 s in which 30 flowed in", granted), granted < 25, nil
}}
