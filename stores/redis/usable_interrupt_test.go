package redis

import (
	"context"
	"testing"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// interrupting ends the context of a check when a command has been answered.
type interrupting struct {
	command string
	cancel  context.CancelFunc
}

func (i interrupting) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (i interrupting) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (i interrupting) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == i.command {
			i.cancel()
		}
		return err
	}
}

// TestInterruptedCheckLeavesNothing: the key of a check is removed if the check is interrupted after any command.
func TestInterruptedCheckLeavesNothing(t *testing.T) {
	server := miniredis.RunT(t)
	for _, command := range []string{"set", "eval", "evalsha", "scan", "pttl"} {
		admin := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
		ctx, cancel := context.WithCancel(t.Context())
		admin.AddHook(interrupting{command: command, cancel: cancel})
		if err := tryCommands(ctx, admin); err == nil {
			t.Errorf("interrupted after %s, the check succeeds", command)
		}
		keys, err := admin.Keys(t.Context(), "quotabench:check:*").Result()
		if err != nil || len(keys) > 0 {
			t.Errorf("interrupted after %s, %q stay (%v)", command, keys, err)
		}
		cancel()
		_ = admin.Close()
	}
}
