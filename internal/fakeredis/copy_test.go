package fakeredis

import (
	"reflect"
	"testing"
	"time"
)

// TestCopy: what was written since a copy is gone, what it holds is not shared with the
// table, and time goes on.
func TestCopy(t *testing.T) {
	ctx := t.Context()
	table := New()
	defer table.Close()
	c := Client(table)
	defer func() { _ = c.Close() }()
	do := func(args ...any) {
		t.Helper()
		if err := c.Do(ctx, args...).Err(); err != nil {
			t.Fatal(args, err)
		}
	}
	do("SET", "text", "5")
	do("HSET", "hash", "a", "1", "b", "2")
	do("SADD", "set", "x")
	do("ZADD", "zset", "1.5", "m")
	do("SET", "short", "1", "PX", "2000")
	do("SET", "long", "1", "PX", "9000")
	want := table.Keys(nil)
	restore := table.Copy()
	for range 2 {
		do("INCR", "text")
		do("HSET", "hash", "a", "9", "c", "3")
		do("SADD", "set", "y")
		do("ZADD", "zset", "0", "l")
		do("DEL", "long")
		do("SET", "new", "1")
		restore()
		if got := table.Keys(nil); !reflect.DeepEqual(got, want) {
			t.Fatalf("restored %+v, want %+v", got, want)
		}
	}
	do("SET", "new", "1", "PX", "1")
	table.SetNow(int64(3 * time.Second))
	restore()
	if n, err := c.Exists(ctx, "text", "short", "long", "new").Result(); err != nil || n != 2 {
		t.Errorf("%d keys (%v), want the text and the long one", n, err)
	}
	if ttl, err := c.PTTL(ctx, "long").Result(); err != nil || ttl != 6*time.Second {
		t.Errorf("the long one has %v left (%v), want 6 s", ttl, err)
	}
	table.SetNow(int64(10 * time.Second))
	if n := table.Len(); n != 4 {
		t.Errorf("%d keys when all have expired that can, want 4", n)
	}
}
