package measure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// hoarder leaves three keys of a thousand bytes for each subject, all at once.
type hoarder struct {
	planted
	redis  redis.UniversalClient
	prefix string
}

func (h *hoarder) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	_, err := h.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 3 {
			p.Set(ctx, fmt.Sprintf("%s%s:%d", h.prefix, r.Subject, i), strings.Repeat("x", 1000), 0)
		}
		return nil
	})
	if err != nil {
		return quota.Decision{}, err
	}
	return h.planted.Take(ctx, r)
}

// TestPlantedKeys: what is left in a real Redis is counted to the key, over time as well,
// and weighs at least as much as was put there.
func TestPlantedKeys(t *testing.T) {
	testenv.Sequential(t)
	server := storetest.Redis(t)
	if err := server.Admin().Set(t.Context(), "another's", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Admin().Del(context.Background(), "another's") })
	r := longer(t, 200*time.Millisecond, func(d time.Duration) results.Run {
		h := &hoarder{}
		sel := h.selection()
		sel.Needs = []strategies.Need{strategies.NeedRedis}
		sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			h.redis = strategies.Redis(env)
			h.prefix = env.Prefix
			return h, nil
		}
		return measureOne(t, &h.planted, "hot-key", func(cfg *Config) {
			h.delay = nil
			cfg.Strategies, cfg.base, cfg.Workers, cfg.Stores = []strategies.Selection{sel}, nil, 4, setOf(t, server)
			cfg.Requests = 0
			cfg.Duration = d
		})
	}, func(r results.Run) bool { // counted at each quarter, and requests came in between
		return len(r.Stored) == 1 && len(r.Stored[0].OverTime) == bounds.Quarters-1 &&
			decided(r, 0, 0.2) > 200 && decided(r, 0.3, 0.7) > 200
	})
	if len(r.Stored) != 1 || len(r.Stored[0].OverTime) != bounds.Quarters-1 {
		t.Fatalf("kept %+v", r.Stored)
	}
	k := r.Stored[0]
	if k.Store != "redis" || k.Subjects < r.Leak.Trials || k.Entries != 3*k.Subjects || k.Entries != r.Cost.KeysAtEnd {
		t.Errorf("kept %+v, want three keys for each of %d subjects or more", k, r.Leak.Trials)
	}
	if k.Bytes < 1000*k.Entries || k.Bytes > 2000*k.Entries || k.BytesPerSubject != float64(k.Bytes)/float64(k.Subjects) {
		t.Errorf("%d keys of 1000 bytes are %d bytes, %g for each of %d subjects", k.Entries, k.Bytes, k.BytesPerSubject,
			k.Subjects)
	}
	const own = 64 << 10 // what Redis may have freed of its own since the run began
	for _, at := range k.OverTime {
		if at.Entries%3 != 0 {
			t.Errorf("%d keys at %v, which is no multiple of three", at.Entries, time.Duration(at.AtNS))
		}
		if at.WithoutTTL != at.Entries || at.Bytes < 1000*at.Entries-own || at.Bytes > 2000*at.Entries+own {
			t.Errorf("%+v, want as many keys without an end, of 1000 bytes each", at)
		}
	}
	first := k.OverTime[0].Entries
	last := k.OverTime[2].Entries
	if !slices.IsSortedFunc(k.OverTime, func(a, b results.StoredAt) int {
		return int(a.Entries - b.Entries)
	}) || first == 0 || last == first || last > k.Entries {
		t.Errorf("over time %+v, %d at the end", k.OverTime, k.Entries)
	}
}
