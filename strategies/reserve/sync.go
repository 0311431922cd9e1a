package reserve

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/strategies"
)

// syncEvery: the record runs the job at night.
const syncEvery = 24 * time.Hour

// Jobs implements [strategies.Jobber].
func (s *luaReserve) Jobs() []strategies.Job {
	return []strategies.Job{{Name: "sync", Singleton: true, Every: syncEvery, Run: s.sync}}
}

// sync overwrites every tenant's count with the sum of its stored files. Between
// the sum and the SET, and for uploads that have not arrived yet, it is wrong,
// which is the record's own doing. The old value comes back with the SET only to
// tell whether anything changed.
func (s *luaReserve) sync(ctx context.Context) (changed bool, err error) {
	tenants, err := s.files.tenants(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range tenants {
		sum, err := s.files.stored(ctx, t)
		if err != nil {
			return changed, err
		}
		want := strconv.FormatInt(sum, 10)
		old, err := s.redis.SetArgs(ctx, s.keys.used(t.policy, t.subject), want, redis.SetArgs{Get: true}).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return changed, fmt.Errorf("overwriting what %s has used: %w", t.subject, err)
		}
		changed = changed || old != want
	}
	return changed, nil
}
