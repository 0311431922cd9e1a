package memredis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/memredis"
)

func TestInspect(t *testing.T) {
	table := memredis.New()
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
		if table.ExpireDue(); table.Len() != 2 {
			t.Errorf("keys %s after the deadline", shown())
		}
	}
}
