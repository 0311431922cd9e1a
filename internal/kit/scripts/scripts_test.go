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
	if got := scripts.Name(redis.NewScript(file).Hash()); len(got) != 8 {
		t.Errorf("before it is known, the script is %q", got)
	}
	scripts.Learn(file, "take.lua")
	for script, want := range map[string]string{
		file: "take.lua", redis.NewScript(file).Hash(): "take.lua",
		long: `"Reserves units of  … back"`, unknown: "01234567", "": `""`,
	} {
		if got := scripts.Name(script); got != want {
			t.Errorf("%.20q is %s, want %s", script, got, want)
		}
	}
	if got := scripts.Name(redis.NewScript(long).Hash()); got != scripts.Name(long) {
		t.Errorf("by its digest it is %s", got)
	}
}
