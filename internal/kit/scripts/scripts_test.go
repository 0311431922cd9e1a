package scripts_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/scripts"
	_ "github.com/quotabench/quotabench/internal/kit/testenv" // an environment of its own
)

func TestName(t *testing.T) {
	const unknown = "0123456789abcdef0123456789abcdef01234567"
	const long = "\n-- Reserves units of a subject, and gives them back\nreturn 1"
	const file = "return redis.call('INCR', KEYS[1])"
	hash := func(source string) string { return redis.NewScript(source).Hash() }
	if got := scripts.NameOf(hash(file)); got != hash(file)[:8] {
		t.Errorf("before it is known, the script is %q", got)
	}
	scripts.Learn(file, "take.lua")
	for _, c := range []struct{ command, script, want string }{
		{"EVAL", file, "take.lua"}, {"evalsha", hash(file), "take.lua"}, {"EVALSHA_RO", unknown, "01234567"},
		{"eval_ro", long, `"Reserves units of  … back"`}, {"evalsha", hash(long), `"Reserves units of  … back"`},
		{"eval", "", `""`}, {"evalsha", "short", "short"},
	} {
		if got := scripts.Argument(c.command, c.script); got != c.want {
			t.Errorf("%s %.20q is %s, want %s", c.command, c.script, got, c.want)
		}
	}
}
