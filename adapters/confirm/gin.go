package confirm

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	gin "github.com/JGLTechnologies/gin-rate-limit"
)

// together asks n times at once, and returns how many are admitted.
func together(n int, admit func() bool) int64 {
	var admitted atomic.Int64
	var group sync.WaitGroup
	gate := make(chan struct{})
	for range n {
		group.Go(func() {
			<-gate
			if admit() {
				admitted.Add(1)
			}
		})
	}
	close(gate)
	group.Wait()
	return admitted.Load()
}

var ginRace = Confirmation{Name: "gin-redis-race", Redis: true, Run: func(env Env) (string, bool, error) {
	store := gin.RedisStore(&gin.RedisOptions{Rate: time.Minute, Limit: 10, RedisClient: env.Redis})
	var worst int64
	for round := range 20 {
		key := fmt.Sprintf("gin-redis-race-%d", round)
		worst = max(worst, together(50, func() bool { return !store.Limit(key, nil).RateLimited }))
	}
	return fmt.Sprintf("of 50 requests at once up to %d were admitted; the limit is 10", worst), worst > 10, nil
}}

var ginMemoryRace = Confirmation{Name: "gin-memory-race", Run: func(Env) (string, bool, error) {
	store := gin.InMemoryStore(&gin.InMemoryOptions{Rate: time.Minute, Limit: 1})
	var worst int64
	for round := range 20_000 {
		key := fmt.Sprintf("key-%d", round)
		worst = max(worst, together(8, func() bool { return !store.Limit(key, nil).RateLimited }))
		if worst > 1 {
			break
		}
	}
	return fmt.Sprintf("of 8 requests at once %d were admitted; the limit is 1", worst), worst > 1, nil
}}

// The window of 2 s that the first request begins is over when the third comes, 2.1 s
// later. Each request has begun the window anew. The library counts in whole seconds of
// the wall clock, so the first comes at the beginning of one.
var ginWindow = Confirmation{Name: "gin-window", Run: func(Env) (string, bool, error) {
	store := gin.InMemoryStore(&gin.InMemoryOptions{Rate: 2 * time.Second, Limit: 2})
	now := time.Now() //nolint:forbidigo // nothing of quotabench is here, and the library reads the same clock
	time.Sleep(now.Truncate(time.Second).Add(time.Second + 50*time.Millisecond).Sub(now))
	var admitted []bool
	for i := range 3 {
		if i > 0 {
			time.Sleep(1050 * time.Millisecond)
		}
		admitted = append(admitted, !store.Limit("k", nil).RateLimited)
	}
	return fmt.Sprintf("with a limit of 2 per 2s, requests 0, 1.05 and 2.1 s after the first: admitted %t, %t and %t",
			admitted[0], admitted[1], admitted[2]),
		admitted[0] && admitted[1] && !admitted[2], nil
}}

var ginCleaner = Confirmation{Name: "gin-cleaner", Run: func(Env) (string, bool, error) {
	before := cleaners()
	const stores = 100
	for range stores {
		gin.InMemoryStore(&gin.InMemoryOptions{Rate: time.Minute, Limit: 1})
	}
	runtime.GC()
	more := cleaners() - before
	return fmt.Sprintf("%d stores that nothing refers to any more left %d goroutines, and there is no way to end them",
		stores, more), more >= stores, nil
}}

// cleaners counts the goroutines of such stores.
func cleaners() int {
	stacks := make([]byte, 16<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("gin-rate-limit.clearInBackground("))
}
