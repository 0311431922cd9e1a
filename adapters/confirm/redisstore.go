package confirm

import (
	"context"
	"fmt"
	"time"

	gin "github.com/JGLTechnologies/gin-rate-limit"
	"github.com/gomodule/redigo/redis"
	"github.com/sethvargo/go-redisstore"
)

// The key is to live for three times the whole seconds of the interval: for none here,
// which has Redis delete it.
var sethvargoInterval = Confirmation{Name: "sethvargo-interval", Redis: true, Run: func(env Env) (string, bool, error) {
	ctx := context.Background()
	store, err := redisstore.New(&redisstore.Config{
		Tokens: 1, Interval: 500 * time.Millisecond,
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", env.Redis.Options().Addr) },
	})
	if err != nil {
		return "", false, err
	}
	defer func() { _ = store.Close(ctx) }()
	var failed error
	admitted, took := burst(20, func() bool {
		_, _, _, ok, err := store.Take(ctx, "sethvargo-interval")
		failed = err
		return ok && err == nil
	})
	return fmt.Sprintf("with 1 token per 500ms it admitted %d requests in %v", admitted, took.Round(time.Millisecond)),
		admitted > 2+2*int(took/(500*time.Millisecond)), failed
}}

// The rate is cut down to whole seconds: to none here.
var ginSeconds = Confirmation{Name: "gin-seconds", Run: func(Env) (string, bool, error) {
	store := gin.InMemoryStore(&gin.InMemoryOptions{Rate: 500 * time.Millisecond, Limit: 1})
	admitted, took := burst(20, func() bool { return !store.Limit("k", nil).RateLimited })
	return fmt.Sprintf("with a limit of 1 per 500ms it admitted %d requests in %v", admitted,
			took.Round(time.Millisecond)),
		admitted > 2+int(took/(500*time.Millisecond)), nil
}}
