package explore_test

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A command that the table of keys does not have is searched over miniredis: a
// race on the length of a list is found as one on a number is.
func TestCommandsBeyondTheTable(t *testing.T) {
	lists := plant(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
		n, err := strategies.Redis(p.env).LLen(ctx, "l").Result()
		if err != nil || n > 0 {
			return verdict(false, err)
		}
		return verdict(true, strategies.Redis(p.env).RPush(ctx, "l", 1).Err())
	})
	r, err := explore.Run(t.Context(), lists,
		explore.Config{Limit: 1, Properties: []explore.Property{explore.Leak, explore.Stuck}})
	if err != nil {
		t.Fatal(err)
	}
	if got := words(found(t, r, explore.Leak)); got != "A LLEN, B LLEN, A RPUSH, B RPUSH" {
		t.Errorf("leaks by %s", got)
	}
	c, err := explore.Enumerate(t.Context(), lists, explore.Config{Limit: 1})
	if err != nil || c.Schedules != 6 || c.Leaking != 4 {
		t.Errorf("counted %v, %v", c, err)
	}
}

// A key is gone at the moment of its deadline, in the state and for callers.
func TestDeadlinesAreMet(t *testing.T) {
	r, err := explore.Run(t.Context(),
		plant(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
			return verdict(p.set(ctx, "k", time.Minute))
		}), explore.Config{Limit: 1, Faults: []quota.Fault{quota.FaultClock}, Properties: []explore.Property{explore.Leak}})
	if err != nil {
		t.Fatal(err)
	}
	if got := words(found(t, r, explore.Leak)); got != "A starts, A SET, A reply, clock 1m, B starts, B SET, B reply" {
		t.Errorf("leaks by %s", got)
	}
}
