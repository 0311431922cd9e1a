package explore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// sameMember is a log whose members are the seconds of requests: a second one in the same second adds nothing.
type sameMember struct {
	rdb   redis.UniversalClient
	limit int64
}

func (m sameMember) Allow(ctx context.Context, key string) (bool, error) {
	err := m.rdb.ZAdd(ctx, key, redis.Z{Member: "12:00:00"}).Err()
	if err != nil {
		return false, err
	}
	n, err := m.rdb.ZCard(ctx, key).Result()
	if err != nil {
		return false, err
	}
	return n <= m.limit, m.rdb.Expire(ctx, key, time.Minute).Err()
}

// A schedule says what each step leaves in Redis, and which command did nothing.
func TestStored(t *testing.T) {
	make := func(env strategies.Env, p *quota.Policy) strategies.Allower {
		return sameMember{strategies.Redis(env), p.Limit}
	}
	cfg := explore.Config{Policy: policy(t, "1 request per fixed 1m"), Clients: 2, Limit: 1,
		Properties: []explore.Property{explore.Leak}}
	r, err := explore.Run(t.Context(), foreign(t, make, strategies.NeedRedis), cfg)
	if err != nil {
		t.Fatal(err)
	}
	finding := found(t, r, explore.Leak)
	texts := layout.StoredTexts(finding)
	var added []string
	for i, step := range finding.Steps {
		if step.Event == codes.EventCommand && len(step.Stored) > 0 {
			added = append(added, texts[i])
		}
	}
	want := []string{"1 member, no ttl", "1 member, ttl 1m", "1 member, ttl 1m, unchanged"}
	for i, text := range want {
		if i >= len(added) || added[i] != text {
			t.Errorf("stored after steps: %q, want to begin with %q", added, want)
			break
		}
	}
}
