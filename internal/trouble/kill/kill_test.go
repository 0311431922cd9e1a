package kill_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble/kill"
)

// TestNothingAfterDeath: of what a caller sends, as many commands and pipelines are sent as it
// has, and nothing after that. What a client sends within a command does not count.
func TestNothingAfterDeath(t *testing.T) {
	var sent, ends int
	one := func(context.Context, redis.Cmder) error { sent++; return nil }
	process := kill.Hook.ProcessHook(one)
	outer := kill.Hook.ProcessHook(func(ctx context.Context, cmd redis.Cmder) error {
		return errors.Join(process(ctx, cmd), process(ctx, cmd))
	})
	pipeline := kill.Hook.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { sent++; return nil })
	ctx, dead := kill.After(t.Context(), 3, func(context.Context) { ends++ })
	cmds := []redis.Cmder{redis.NewCmd(ctx, "incr"), redis.NewCmd(ctx, "expire")}
	if err := errors.Join(outer(ctx, cmds[0]), pipeline(ctx, cmds)); err != nil || dead() || ends != 0 || sent != 3 {
		t.Errorf("%v; dead %t, ended %d times, sent %d, want 3 and the caller alive", err, dead(), ends, sent)
	}
	for range 2 {
		err := process(context.WithoutCancel(ctx), cmds[0])
		if !errors.Is(err, kill.Err) || !errors.Is(cmds[0].Err(), kill.Err) || !dead() || ends != 1 || sent != 4 {
			t.Errorf("%v; dead %t, ended %d times, sent %d, want 4 and the caller dead", err, dead(), ends, sent)
		}
	}
	if err := pipeline(ctx, cmds); !errors.Is(err, kill.Err) || !errors.Is(cmds[1].Err(), kill.Err) || sent != 4 {
		t.Errorf("a pipeline of the dead: %v, %d sent", err, sent)
	}
	if err := process(t.Context(), cmds[0]); err != nil || sent != 5 {
		t.Errorf("a command of another: %v, %d sent", err, sent)
	}
}
