package redis_test

import (
	"context"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// TestOwnServersAskForAPassword tries to get in as another user of this machine
// would.
func TestOwnServersAskForAPassword(t *testing.T) {
	eachRedis(t, func(t *testing.T, r *redis.Store) {
		if r.Info().Kind == stores.KindEmbedded {
			return // its data is not worth it
		}
		other, err := redis.Open(t.Context(), "redis://"+r.Info().Addr, stores.Options{})
		if err == nil {
			_ = other.Close()
			t.Fatal("opened without a password")
		}
		storecheck.Error(t, err, "refuses the login")
		storecheck.Hidden(t, r.Password(), r.Info(), r.Arguments())
	})
}

func TestPasswordsDiffer(t *testing.T) {
	storetest.Redis(t)
	other, err := redis.Open(context.Background(), "process", stores.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if storetest.Redis(t).Password() == other.Password() {
		t.Error("two servers have the same password")
	}
}

func TestOddPasswords(t *testing.T) {
	storetest.Redis(t)
	odd := []string{"tab\tand\r\n\"quoted\" lines", `a "quoted" one`, `back\slash\n`, "señal ✓", "#hash 'x'"}
	for _, password := range testenv.Pick(odd[:1], odd) {
		r, err := redis.Open(context.Background(), "process",
			stores.Options{Dir: t.TempDir(), Settings: map[string]string{"requirepass": password}})
		if err != nil {
			t.Errorf("%q: %v", password, err)
			continue
		}
		if got, err := r.Admin().ConfigGet(context.Background(), "requirepass").Result(); err != nil ||
			got["requirepass"] != password {
			t.Errorf("the server has %q (%v), want %q", got["requirepass"], err, password)
		}
		_ = r.Close()
	}
}
