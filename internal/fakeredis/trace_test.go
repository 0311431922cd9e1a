package fakeredis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// among reports whether a set of keys may hold one.
func among(keys fakeredis.Keys, name string) bool {
	var one fakeredis.Touched
	one.Wrote(name)
	return keys[0]&one.Written[0] == one.Written[0] && keys[1]&one.Written[1] == one.Written[1]
}

// A key that a command has changed is among those that its trace says it has written, and
// a key that is neither among these nor among those that it has read makes no difference
// to its reply.
func TestTraceTellsAll(t *testing.T) {
	programs := testenv.Pick(60, 600)
	ctx := context.Background()
	read := 0
	written := 0
	for seed := range uint64(programs) {
		r := rand.New(rand.NewPCG(seed, 21)) //nolint:gosec // has to repeat
		table := fakeredis.New()
		other := fakeredis.New()
		c := fakeredis.Client(table)
		d := fakeredis.Client(other)
		for range 40 {
			args := program(r)
			before := table.Keys(nil)
			var trace fakeredis.Touched
			table.Trace(&trace)
			cmd := c.Do(ctx, args...)
			table.Trace(nil)
			after := map[string]fakeredis.Key{}
			for _, k := range table.Keys(nil) {
				after[k.Name] = k
			}
			for _, k := range before {
				if now, ok := after[k.Name]; (!ok || !reflect.DeepEqual(now, k)) && !among(trace.Written, k.Name) {
					t.Fatalf("%v changed %s from %+v to %+v unseen", args, k.Name, k, now)
				}
				delete(after, k.Name)
			}
			for name := range after {
				if !among(trace.Written, name) {
					t.Fatalf("%v made %s unseen", args, name)
				}
			}
			apart := fmt.Sprintf("k%d", r.IntN(6))
			if among(trace.Read, apart) || among(trace.Written, apart) {
				read++
			} else {
				written++
				other.Do([]string{"DEL", apart})
			}
			twin := d.Do(ctx, args...)
			if got, want := shown(cmd.Name(), twin.Val(), twin.Err()), shown(cmd.Name(), cmd.Val(), cmd.Err()); got != want {
				t.Fatalf("%v without %s: %s, not %s", args, apart, got, want)
			}
			// Both go on from the same keys.
			if _, ok := find(before, apart); ok && !among(trace.Read, apart) && !among(trace.Written, apart) {
				break
			}
		}
		_ = c.Close()
		_ = d.Close()
		table.Close()
		other.Close()
	}
	if read < programs || written < programs {
		t.Errorf("%d commands had to do with the key, and %d did not", read, written)
	}
}

func find(keys []fakeredis.Key, name string) (k fakeredis.Key, ok bool) {
	for _, k := range keys {
		if k.Name == name {
			return k, true
		}
	}
	return k, false
}
