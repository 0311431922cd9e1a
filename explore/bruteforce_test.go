package explore_test

import (
	"fmt"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
)

// bruteForce counts the orders of k callers that read a number, and write it back
// larger by one if that is within the limit; and those orders in which more
// than the limit have written. It knows nothing of strategies, stores or actors.
func bruteForce(k, limit int) (orders, leaking int64) {
	seen := make([]int, k) // what each has read, -1 before
	done := make([]bool, k)
	for i := range seen {
		seen[i] = -1
	}
	var walk func(stored, written int)
	walk = func(stored, written int) {
		over := true
		for i := range k {
			if done[i] {
				continue
			}
			over = false
			if seen[i] < 0 {
				seen[i] = stored
				done[i] = stored+1 > limit
				walk(stored, written)
				seen[i] = -1
				done[i] = false
				continue
			}
			done[i] = true
			walk(seen[i]+1, written+1)
			done[i] = false
		}
		if over {
			orders++
			if written > limit {
				leaking++
			}
		}
	}
	walk(0, 0)
	return orders, leaking
}

func TestEnumerationAgreesWithBruteForce(t *testing.T) {
	testenv.Sequential(t)
	for k := 1; k <= 4; k++ {
		for limit := 1; limit <= k; limit++ {
			census(t, k, limit)
		}
	}
}

// The figures that are known for five clients.
func TestFiveClients(t *testing.T) {
	for _, c := range []struct {
		limit           int
		orders, leaking int64
	}{{1, 31_320, 31_200}, {4, 113_400, 113_280}, {5, 113_400, 0}} {
		if orders, leaking := bruteForce(5, c.limit); orders != c.orders || leaking != c.leaking {
			t.Errorf("brute force: %d and %d with limit %d", orders, leaking, c.limit)
		}
	}
	testenv.Long(t) // 144,720 runs of the real code
	census(t, 5, 1)
	census(t, 5, 4)
}

func census(t *testing.T, k, limit int) {
	t.Helper()
	cfg := explore.Config{Clients: k, Limit: int64(limit)}
	c, err := explore.Enumerate(t.Context(), testkit.Strategy(t, "check-then-set"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	orders, leaking := bruteForce(k, limit)
	if got, want := fmt.Sprint(c.Schedules, c.Leaking), fmt.Sprint(orders, leaking); got != want || !c.Complete {
		t.Errorf("%d clients, limit %d: schedules and leaks %s, brute force %s", k, limit, got, want)
	}
}
