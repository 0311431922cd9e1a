package sched_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// A command is shown as it is sent: bytes as text, and a script by its digest, as in EVALSHA.
func TestCommandText(t *testing.T) {
	ctx := t.Context()
	const script = "-- Reserves units.\nreturn 1\n"
	const name = `"Reserves units."`
	for _, c := range []struct {
		cmd  *redis.Cmd
		want string
	}{
		{redis.NewCmd(ctx, "set", "k", []byte(`{"n":1}`), "px", 20), `SET k {"n":1} px 20`},
		{redis.NewCmd(ctx, "eval", script, 1, "k"), "EVAL " + name + " 1 k"},
		{redis.NewCmd(ctx, "eval_ro", []byte(script), 1, "k"), "EVAL_RO " + name + " 1 k"},
		{redis.NewCmd(ctx, "evalsha", redis.NewScript(script).Hash(), 1, "k"), "EVALSHA " + name + " 1 k"},
		{redis.NewCmd(ctx, "evalsha", "short", 0), "EVALSHA short 0"},
	} {
		if got := (sched.Op{Kind: sched.Command, Cmd: c.cmd}).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
