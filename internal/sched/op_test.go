package sched_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/sched"
)

// A command is shown as it is sent: bytes as text, and of a script how it begins.
func TestCommandText(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		cmd  *redis.Cmd
		want string
	}{
		{redis.NewCmd(ctx, "set", "k", []byte(`{"n":1}`), "px", 20), `SET k {"n":1} px 20`},
		{redis.NewCmd(ctx, "eval", "\n\tlocal current = 1\n", 1, "k"), "EVAL local cu 1 k"},
	} {
		if got := (sched.Op{Kind: sched.Command, Cmd: c.cmd}).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
