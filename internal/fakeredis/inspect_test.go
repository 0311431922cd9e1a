package fakeredis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/fakeredis"
)

func TestInspect(t *testing.T) {
	table := fakeredis.New()
	defer table.Close()
	const begin = int64(1_000_000 * time.Second)
	for range 2 { // a table that was emptied is as good as new
		table.Reset(begin)
		for _, args := range [][]string{
			{"set", "s", "7", "px", "5000"}, {"hset", "h", "g", "2", "f", "-1"}, {"sadd", "m", "b", "a"}, {"set", "gone", "1"},
		} {
			table.Do(args)
		}
		table.Remove("gone")
		shown := func() (out string) {
			for _, k := range table.Keys(nil) {
				out += fmt.Sprintf("%s%v %s %t;", k.Name, k.Content, k.Left, k.Set)
			}
			return out
		}
		if got := shown(); got != "h[f -1 g 2] 0s false;m[a b] 0s true;s[7] 5s false;" {
			t.Errorf("keys %s", got)
		}
		table.SetNow(begin + int64(5*time.Second))
		if table.Len() != 3 {
			t.Error("a key is gone in the millisecond of its deadline")
		}
		table.ExpireDue()
		if table.Len() != 2 {
			t.Errorf("keys %s after the deadline", shown())
		}
	}
}

// TestExtended: a time to live that becomes shorter, or is set anew to the same moment, is not extended.
func TestExtended(t *testing.T) {
	table := fakeredis.New()
	defer table.Close()
	table.Reset(int64(1_000_000 * time.Second))
	for i, c := range []struct {
		command string
		want    int64
	}{
		{"incr k", 0}, {"expire k 10", 0}, {"expire k 10", 0}, {"incr k", 0}, {"expire k 9", 0}, {"expire k 11", 1},
		{"persist k", 2}, {"persist k", 2},
		{"expire k 5", 2}, {"del k", 2}, {"set k 1 ex 50", 2}, {"set k 1", 3}, {"set k 1 ex 1", 3},
	} {
		table.Do(strings.Fields(c.command))
		if table.Extended != c.want {
			t.Errorf("after %d, %s: %d, want %d", i, c.command, table.Extended, c.want)
		}
	}
	table.SetNow(int64(1_000_002 * time.Second)) // the key is over, and its successor is another one
	table.Do([]string{"set", "k", "1", "ex", "100"})
	if table.Extended != 3 {
		t.Errorf("%d of a new key", table.Extended)
	}
}

// Scripts that are kept are there after each Reset, and no others are; without Keep all
// stay.
func TestKeep(t *testing.T) {
	const before, after, later = "return 1", "return 2", "return 3"
	for name, open := range map[string]func() (fakeredis.Redis, error){
		"table":     func() (fakeredis.Redis, error) { return fakeredis.New(), nil },
		"miniredis": func() (fakeredis.Redis, error) { return fakeredis.NewMini() },
	} {
		t.Run(name, func(t *testing.T) {
			r, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			c := fakeredis.Client(r)
			defer func() { _ = c.Close() }()
			knows := func(want ...bool) {
				t.Helper()
				got, err := c.ScriptExists(t.Context(), fakeredis.SHA1(before), fakeredis.SHA1(after),
					fakeredis.SHA1(later)).Result()
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("scripts %v, %v, want %v", got, err, want)
				}
				for i, source := range []string{before, after, later} {
					err := c.EvalSha(t.Context(), fakeredis.SHA1(source), nil).Err()
					if i < len(want) && (err == nil) != want[i] {
						t.Errorf("%s: %v", source, err)
					}
				}
			}
			fresh := func(want ...string) {
				t.Helper()
				if got := r.Fresh(nil); !slices.Equal(got, want) {
					t.Errorf("fresh %v, want %v", got, want)
				}
			}
			eval := func(source string) {
				t.Helper()
				if err := c.Eval(t.Context(), source, nil).Err(); err != nil {
					t.Error(err)
				}
			}
			eval(before)
			r.Reset(1e15)
			knows(true, false, false)
			fresh()
			r.Keep()
			for range 2 {
				eval(after)
				eval(after)
				eval(before)
				fresh(fakeredis.SHA1(after))
				if err := c.ScriptLoad(t.Context(), later).Err(); err != nil {
					t.Error(err)
				}
				knows(true, true, true)
				fresh(slices.Sorted(slices.Values([]string{fakeredis.SHA1(after), fakeredis.SHA1(later)}))...)
				r.Reset(1e15)
				fresh()
				knows(true, false, false)
			}
			if err := c.ScriptFlush(t.Context()).Err(); err != nil {
				t.Error(err)
			}
			knows(false, false, false)
			fresh("flushed")
			eval(after)
			knows(false, true, false)
			r.Reset(1e15)
			knows(true, false, false)
			fresh()
		})
	}
}
