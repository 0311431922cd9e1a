package explore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A token of a strategy and a policy that are registered nowhere repeats all the
// same, for a caller that has the strategy: here, and on a server by the caller's
// own client.
func TestReplayOfWhatIsNotRegistered(t *testing.T) {
	sel := plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		key := p.env.Prefix + "n"
		n, err := strategies.Redis(p.env).Get(ctx, key).Int64()
		if err != nil && !errors.Is(err, redis.Nil) || n >= r.Policy.Limit {
			return verdict(false, nil)
		}
		return verdict(true, strategies.Redis(p.env).Set(ctx, key, n+1, r.Policy.Window.Length).Err())
	})
	sel.Kinds = []quota.Kind{quota.Fixed}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	own := quota.Policy{Name: "our-calls", Unit: "calls",
		Window: quota.Window{Kind: quota.Fixed, Length: 90 * time.Second, Location: berlin}}
	r, err := explore.Run(t.Context(), sel,
		explore.Config{Policy: own, Limit: 1, Properties: []explore.Property{explore.Leak}})
	if err != nil {
		t.Fatal(err)
	}
	f := found(t, r, explore.Leak)
	again, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{})
	if err != nil || !again.Broken || again.Policy != "our-calls" {
		t.Errorf("here: %+v, %v", again, err)
	}
	if _, err := explore.Replay(t.Context(), f.Token, explore.Target{}); err == nil ||
		!strings.Contains(err.Error(), "your own program") {
		t.Errorf("without the strategy: %v", err)
	}
	if _, err := explore.ReplayOf(t.Context(), testkit.Strategy(t, "exact"), f.Token, explore.Target{}); err == nil ||
		!strings.Contains(err.Error(), "planted") {
		t.Errorf("with another strategy: %v", err)
	}
	client := storetest.Redis(t).Admin()
	there, err := explore.ReplayOf(t.Context(), sel, f.Token, explore.Target{Redis: client})
	if err != nil || !there.Broken || !there.Same || !strings.HasPrefix(there.Store, "Redis ") {
		t.Errorf("on a server: %+v, %v", there, err)
	}
	var unfit *explore.UnfitError
	if _, err := explore.ReplayOf(t.Context(), sel, f.Token,
		explore.Target{Redis: redis.NewRing(&redis.RingOptions{})}); !errors.As(err, &unfit) {
		t.Errorf("on several servers: %v", err)
	}
}

// A panic in a client on PostgreSQL is the search's error, too.
func TestPanicOnPostgres(t *testing.T) {
	take := func(ctx context.Context, tx pgx.Tx, _ quota.Request) (bool, error) {
		if n, err := read(ctx, tx, ""); n > 0 || err != nil {
			panic("counted\ntwice")
		}
		return true, add(ctx, tx, 1)
	}
	_, err := explore.Run(t.Context(), plantSQL(sqlPlant{take: take}), sqlConfig(t, 2))
	var p *explore.PanicError
	if !errors.As(err, &p) || !strings.Contains(err.Error(), "the strategy panics in B: counted twice") ||
		!strings.Contains(string(p.Stack), "own_test.go") {
		t.Errorf("error %v", err)
	}
}

// A client on PostgreSQL that blocks outside of what the search sees is named with its
// stack: forever, or on a mutex that another one holds across a statement.
func TestHungOnPostgres(t *testing.T) {
	var held sync.Mutex
	var hangs atomic.Bool
	for name, take := range map[string]func(context.Context, pgx.Tx, quota.Request) (bool, error){
		"for ever": func(ctx context.Context, tx pgx.Tx, _ quota.Request) (bool, error) {
			if _, err := read(ctx, tx, ""); err != nil {
				return false, err
			}
			hangs.Store(true)
			select {}
		},
		"mutex": func(ctx context.Context, tx pgx.Tx, _ quota.Request) (bool, error) {
			if !held.TryLock() {
				hangs.Store(true)
				held.Lock()
			}
			defer held.Unlock()
			return true, add(ctx, tx, 1)
		},
	} {
		cfg := sqlConfig(t, 2)
		var err error
		hangs.Store(false)
		patiently(t, &hangs, func(patience time.Duration) {
			cfg.DecisionTimeout = patience
			_, err = explore.Run(t.Context(), plantSQL(sqlPlant{take: take}), cfg)
		})
		var h *explore.HungError
		if !errors.As(err, &h) || !strings.Contains(string(h.Stack), "own_test.go") ||
			!strings.Contains(h.At, "explore_test.") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// So is one that blocks as it is opened.
func TestHungAsItIsOpenedOnPostgres(t *testing.T) {
	var hangs atomic.Bool
	cfg := sqlConfig(t, 2)
	sel := plantSQL(sqlPlant{})
	sel.Open = func(context.Context, strategies.Env) (strategies.Strategy, error) {
		hangs.Store(true)
		select {}
	}
	var err error
	patiently(t, &hangs, func(patience time.Duration) {
		cfg.DecisionTimeout = patience
		_, err = explore.Run(t.Context(), sel, cfg)
	})
	var h *explore.HungError
	if !errors.As(err, &h) || h.Where != "being opened" || !strings.Contains(string(h.Stack), "own_test.go") {
		t.Errorf("being opened: error %v", err)
	}
}

// A statement without its caller's context is not parked, and nothing is claimed.
func TestUnseenOnPostgres(t *testing.T) {
	take := func(_ context.Context, tx pgx.Tx, _ quota.Request) (bool, error) {
		return true, add(context.Background(), tx, 1)
	}
	r := withheld(t, plantSQL(sqlPlant{take: take}), sqlConfig(t, 2))
	if got := withheldCodes(r); len(got) != 1 || got[0] != witness.ContextLost {
		t.Errorf("withheld for %+v", r.Withheld)
	}
	none := func(context.Context, pgx.Tx, quota.Request) (bool, error) { return true, nil }
	if r, err := explore.Run(t.Context(), plantSQL(sqlPlant{take: none}), sqlConfig(t, 2)); err != nil ||
		len(r.Withheld) > 0 {
		t.Errorf("with BEGIN and COMMIT only: %+v, %v", r, err)
	}
}
