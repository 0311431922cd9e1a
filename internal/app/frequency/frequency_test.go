package frequency_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/frequency"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"

	_ "github.com/quotabench/quotabench/strategies/all"
)

// counter reads the count of a window and then writes it, or grants one unit too few.
type counter struct {
	env    strategies.Env
	limit  int64
	strict bool
}

func (c counter) Allow(ctx context.Context, key string) (bool, error) {
	key += c.env.Clock.Now().UTC().Truncate(10 * time.Second).Format(time.RFC3339)
	n, _ := strategies.Redis(c.env).Get(ctx, key).Int64() // none is 0
	if n >= c.limit || c.strict && n >= c.limit-1 {
		return false, nil
	}
	return true, strategies.Redis(c.env).Set(ctx, key, n+1, time.Minute).Err()
}

func selection(t *testing.T, strict bool) strategies.Selection {
	t.Helper()
	m := strategies.FromFunc("counter", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return counter{env, p.Limit, strict}, nil
		})
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	return sel
}

// simulated searches, and simulates what was found.
func simulated(t *testing.T, sel strategies.Selection, cfg explore.Config, rate float64,
	properties ...explore.Property) *results.Search {
	t.Helper()
	cfg.Policy = testkit.Policy(t, "3 requests per fixed 10s")
	cfg.Properties = properties
	r, err := explore.Run(t.Context(), sel, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := frequency.Simulate(t.Context(), sel, cfg, rate, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The more requests come, the more windows leak.
func TestLeak(t *testing.T) {
	shares := map[float64]float64{}
	for _, rate := range []float64{10, 1_000} {
		f := simulated(t, selection(t, false), explore.Config{}, rate, explore.Leak).Found(explore.Leak)
		if f == nil || f.AtRate == nil {
			t.Fatalf("at %v: %+v", rate, f)
		}
		x := f.AtRate
		if x.Rate != rate || x.Requests < 40_000 || x.Requests > 60_000 || x.Met > x.Windows || x.Windows < x.Subjects/2 ||
			x.Units < x.Met {
			t.Errorf("at %v: %+v", rate, x)
		}
		shares[rate] = float64(x.Met) / float64(x.Windows)
		if words := f.OddsAtRate(); !strings.HasPrefix(words, "in a simulation at 10") ||
			!strings.Contains(words, " over the limit, in ") {
			t.Error(words)
		}
	}
	if shares[10] >= shares[1_000] || shares[1_000] == 0 {
		t.Errorf("shares of windows that leak: %v", shares)
	}
}

func TestFalseReject(t *testing.T) {
	cfg := explore.Config{Limit: 2, Clients: 1, Scripts: script(t, "take,take")}
	f := simulated(t, selection(t, true), cfg, 100, explore.FalseReject).Found(explore.FalseReject)
	if f == nil || f.AtRate == nil {
		t.Fatalf("%+v", f)
	}
	if x := f.AtRate; x.Met < 10*x.Subjects || x.Met >= x.Requests || x.Windows != 0 ||
		!strings.Contains(f.OddsAtRate(), " rejected although quota was free throughout") {
		t.Errorf("%+v, %s", x, f.OddsAtRate())
	}
}

// What a simulation does not have is not simulated.
func TestNotSimulated(t *testing.T) {
	racy := testkit.Strategy(t, "check-then-set")
	counting := testkit.Strategy(t, "incr-expire")
	for what, r := range map[string]*results.Search{
		"without a rate": simulated(t, selection(t, false), explore.Config{}, 0, explore.Leak),
		"units in use":   simulated(t, racy, explore.Config{Used: 1}, 100, explore.Leak),
		"a refund": simulated(t, racy, explore.Config{Scripts: script(t, "take,refund;take")},
			100, explore.Leak),
		"an eviction": simulated(t, counting, explore.Config{Faults: []quota.Fault{quota.FaultEviction}},
			100, explore.Leak),
		"few requests": simulated(t, selection(t, false), explore.Config{Limit: 3, Clients: 4}, frequency.MinRate,
			explore.Leak),
		"another property": simulated(t, counting, explore.Config{Faults: []quota.Fault{quota.FaultCrash}},
			100, explore.TTL),
	} {
		if len(r.Findings) == 0 {
			t.Errorf("%s: nothing found", what)
		}
		for _, f := range r.Findings {
			if f.AtRate != nil || f.OddsAtRate() != "" {
				t.Errorf("%s: %+v", what, f.AtRate)
			}
		}
	}
}

func script(t *testing.T, text string) []explore.Script {
	t.Helper()
	s, err := explore.ParseScripts(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
