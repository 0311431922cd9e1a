package adapters

import (
	"context"
	"net/http"
	"net/http/httptest"

	gin "github.com/JGLTechnologies/gin-rate-limit"
	"github.com/go-chi/httprate"
	"github.com/labstack/echo/v4/middleware"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	library(strategies.Meta{
		Name: "lib-httprate", Doc: "go-chi/httprate: a weighted sliding window in memory",
		Kinds: []quota.Kind{quota.Rolling}, Guarantee: []quota.Clause{weighted(), quota.MayReject(quota.FaultClock)},
		Serves: single, Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return chi{httprate.NewRateLimiter(int(policy.Limit), policy.Window.RealLength())}, nil
	})
	exact := []quota.Clause{quota.Exactly(quota.FaultClock)}
	library(strategies.Meta{
		Name: "lib-echo-memory", Doc: "labstack/echo: the memory store of its limiter, over golang.org/x/time/rate",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		Serves: single, Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return echo{middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{
			Rate: rate.Limit(perSecond(policy)), Burst: int(policy.Limit),
		})}, nil
	})
	library(strategies.Meta{
		Name: "lib-gin-redis", Doc: "JGLTechnologies/gin-rate-limit: counter and time of the last request on Redis",
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.FirstRequest}, Guarantee: exact,
		Serves: single, Foreign: true,
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		client, _ := strategies.Redis(env).(*redis.Client)
		return ginLimiter{gin.RedisStore(&gin.RedisOptions{Rate: policy.Window.RealLength(), Limit: uint(policy.Limit),
			RedisClient: client})}, nil
	})
	library(strategies.Meta{
		Name: "lib-gin-memory", Doc: "JGLTechnologies/gin-rate-limit: counter and time of the last request in memory",
		Kinds: []quota.Kind{quota.FirstRequest}, Guarantee: quota.PerInstance(quota.FaultClock),
		Serves:  single,
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return ginLimiter{gin.InMemoryStore(&gin.InMemoryOptions{Rate: policy.Window.RealLength(),
			Limit: uint(policy.Limit)})}, nil
	})
}

type chi struct{ *httprate.RateLimiter }

func (c chi) take(ctx context.Context, key string, units int64) (int64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	if err != nil {
		return 0, err
	}
	return all(!c.OnLimit(httptest.NewRecorder(), r, key), units), nil
}

type echo struct {
	*middleware.RateLimiterMemoryStore
}

func (e echo) take(_ context.Context, key string, units int64) (int64, error) {
	ok, err := e.Allow(key)
	return all(ok, units), err
}

type ginLimiter struct{ gin.Store }

func (g ginLimiter) take(_ context.Context, key string, units int64) (int64, error) {
	return all(!g.Limit(key, nil).RateLimited, units), nil
}

// weighted is the promise of a weighted counter in memory that rounds half a request
// in the caller's favour.
func weighted() quota.Clause {
	return quota.Clause{
		Property: quota.PropertyLeak, Formula: "L x (instances + 1)", Tolerates: []quota.Fault{quota.FaultClock},
		Bound: func(params quota.Params) int64 { return params.Instances * params.Limit },
	}
}
