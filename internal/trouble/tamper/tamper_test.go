package tamper

import (
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
)

// TestApply: whole numbers of the keys that match change, and nothing else.
func TestApply(t *testing.T) {
	m := miniredis.RunT(t)
	r := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = r.Close() })
	ctx := t.Context()
	r.Set(ctx, "p:quota:a/b", 5, 0)
	r.Set(ctx, "p:quota:text", "five", 0)
	r.Set(ctx, "p:limits:a", 50, 0)
	r.Set(ctx, "other:quota:a", 5, 0)
	r.HSet(ctx, "p:quota:c", "calls", 7, "name", "x", "bytes", 9)
	r.SAdd(ctx, "p:quota:set", 1)
	keys, err := Keys(ctx, r, "p:")
	slices.Sort(keys)
	if err != nil ||
		!slices.Equal(keys, []string{"p:limits:a", "p:quota:a/b", "p:quota:c", "p:quota:set", "p:quota:text"}) {
		t.Fatalf("%v, %v", keys, err)
	}
	changed, err := Apply(ctx, &trouble.MustParse("keys/quota:*:add=100@0.5")[0], r, "p:",
		append(keys, "other:quota:a", "p:quota:gone"))
	if err != nil || changed != 3 {
		t.Errorf("%d values, %v; want 3", changed, err)
	}
	for key, want := range map[string]string{"p:quota:a/b": "105", "p:quota:text": "five", "p:limits:a": "50",
		"other:quota:a": "5"} {
		if got := r.Get(ctx, key).Val(); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if got := r.HGetAll(ctx, "p:quota:c").Val(); got["calls"] != "107" || got["bytes"] != "109" || got["name"] != "x" {
		t.Errorf("the hash is %v", got)
	}
}
