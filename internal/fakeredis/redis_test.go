package fakeredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
)

const noon = int64(1_790_000_000 * time.Second)

// use sends commands to a fresh store and returns its name, the replies and what
// is stored after a minute.
func use(commands ...[]any) func(open func() (fakeredis.Redis, error)) (string, error) {
	return func(open func() (fakeredis.Redis, error)) (string, error) {
		r, err := open()
		if err != nil {
			return "", err
		}
		r.Reset(noon)
		c := fakeredis.Client(r)
		out := "table:"
		if _, mini := r.(*fakeredis.Mini); mini {
			out = "miniredis:"
		}
		ctx := context.Background()
		for _, args := range commands {
			v, err := c.Do(ctx, args...).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				v = "error"
			}
			out += fmt.Sprintf(" %v", v)
		}
		r.SetNow(noon + int64(time.Minute))
		r.ExpireDue()
		out += fmt.Sprintf("; %d keys, %d without TTL", r.Len(), r.WithoutTTL())
		for _, k := range r.Keys(nil) {
			out += fmt.Sprintf(" %s%v %v", k.Name, k.Content, k.Left)
		}
		return out, c.Close()
	}
}

func TestWithFallback(t *testing.T) {
	common := [][]any{{"set", "a", "1"}, {"setex", "b", "60", "2"}, {"setex", "c", "61", "3"}, {"zadd", "z", "1", "m"}}
	for _, c := range []struct {
		more []any
		want string
	}{
		{[]any{"zcard", "z"}, "table: OK OK OK 1 1; 3 keys, 2 without TTL a[1] 0s c[3] 1s z[m 1] 0s"},
		{[]any{"rpush", "l", "x", "y"}, "miniredis: OK OK OK 1 2; 4 keys, 3 without TTL a[1] 0s c[3] 1s l[x y] 0s z[m 1] 0s"},
		// A part of a command that the table does not have counts as well.
		{[]any{"zrange", "z", "-", "+", "bylex"},
			"miniredis: OK OK OK 1 [m]; 3 keys, 2 without TTL a[1] 0s c[3] 1s z[m 1] 0s"},
	} {
		got, err := fakeredis.WithFallback(use(append(common[:4:4], c.more)...))
		if err != nil || got != c.want {
			t.Errorf("got %q, want %q; %v", got, c.want, err)
		}
	}
}

// A command within a script is noticed as well.
func TestFallbackForScripts(t *testing.T) {
	got, err := fakeredis.WithFallback(use([]any{"eval",
		"redis.call('RPUSH', KEYS[1], 'x') return redis.call('LLEN', KEYS[1])", "1", "l"}))
	if want := "miniredis: 1; 1 keys, 1 without TTL l[x] 0s"; err != nil || got != want {
		t.Errorf("got %q, want %q; %v", got, want, err)
	}
}

// A library that scripts use is noticed likewise, even in a branch that is taken late.
func TestFallbackForLibraries(t *testing.T) {
	script := "if redis.call('INCR', KEYS[1]) < 2 then return 'first' end return cjson.decode('{\"a\": 3}').a"
	got, err := fakeredis.WithFallback(use([]any{"eval", script, "1", "k"}, []any{"eval", script, "1", "k"}))
	if want := "miniredis: first 3; 1 keys, 1 without TTL k[2] 0s"; err != nil || got != want {
		t.Errorf("got %q, want %q; %v", got, want, err)
	}
	for _, library := range []string{"cmsgpack.pack(1)", "bit.band(1, 3)", "struct.pack('b', 1)",
		"cjson.encode({}) .. bit.band(1, 3)"} {
		if _, err := fakeredis.WithFallback(use([]any{"eval", "return " + library, "0"})); !errors.Is(err,
			fakeredis.ErrUnknown) {
			t.Errorf("%s: %v", library, err)
		}
	}
	if got, err := fakeredis.WithFallback(use([]any{"eval", "return tostring(nosuch)", "0"})); err != nil ||
		!strings.HasPrefix(got, "table: error") {
		t.Errorf("a name that is no library: %q, %v", got, err)
	}
}

func TestUnknownEverywhere(t *testing.T) {
	if _, err := fakeredis.WithFallback(use([]any{"nosuch", "k"})); !errors.Is(err, fakeredis.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	// An error of f's own is no reason to run it again.
	runs := 0
	boom := errors.New("boom")
	_, err := fakeredis.WithFallback(func(open func() (fakeredis.Redis, error)) (int, error) {
		runs++
		_, err := open()
		return 0, errors.Join(err, boom)
	})
	if !errors.Is(err, boom) || runs != 1 {
		t.Errorf("%d runs, %v", runs, err)
	}
}
