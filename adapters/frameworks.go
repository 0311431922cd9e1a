package adapters

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/beego/beego/v2/server/web"
	beego "github.com/beego/beego/v2/server/web/context"
	beegolimit "github.com/beego/beego/v2/server/web/filter/ratelimit"
	oxy "github.com/vulcand/oxy/v2/ratelimit"
	"github.com/vulcand/oxy/v2/utils"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	library(strategies.Meta{
		Name: "lib-oxy", Doc: "vulcand/oxy: its token limiter, a bucket in memory for each source",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		rates := oxy.NewRateSet()
		if err := rates.Add(policy.Window.RealLength(), policy.Window.Refill, policy.Limit); err != nil {
			return nil, err
		}
		source := utils.ExtractorFunc(func(r *http.Request) (string, int64, error) {
			units, err := strconv.ParseInt(r.Header.Get("X-Units"), 10, 64)
			return r.Header.Get("X-Key"), units, err
		})
		tokenLimiter, err := oxy.New(http.HandlerFunc(served), source, rates)
		return handler{tokenLimiter}, err
	})
	library(strategies.Meta{
		Name: "lib-beego", Doc: "beego/beego: its filter ratelimit, a bucket in memory for each session key",
		Kinds: []quota.Kind{quota.Bucket}, Guarantee: quota.PerInstance(quota.FaultClock),
		Serves: single, Foreign: true,
	}, func(_ strategies.Env, policy *quota.Policy) (limiter, error) {
		return beegoFilter{beegolimit.NewLimiter(
			beegolimit.WithCapacity(uint(policy.Limit)),
			beegolimit.WithRate(policy.Window.RealLength()/time.Duration(policy.Window.Refill)),
			beegolimit.WithSessionKey(func(c *beego.Context) string { return c.Request.Header.Get("X-Key") }),
		)}, nil
	})
}

func served(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// handler is a limiter that wraps what serves requests.
type handler struct{ http.Handler }

func (h handler) take(ctx context.Context, key string, units int64) (int64, error) {
	r, err := asked(ctx, key, units)
	if err != nil {
		return 0, err
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return all(recorder.Code == http.StatusNoContent, units), nil
}

// asked is a request of a key for units.
func asked(ctx context.Context, key string, units int64) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	if err == nil {
		r.Header.Set("X-Key", key)
		r.Header.Set("X-Units", strconv.FormatInt(units, 10))
	}
	return r, err
}

// beegoFilter writes a response to what it rejects, and nothing otherwise.
type beegoFilter struct{ filter web.FilterFunc }

func (b beegoFilter) take(ctx context.Context, key string, units int64) (int64, error) {
	r, err := asked(ctx, key, units)
	if err != nil {
		return 0, err
	}
	recorder := httptest.NewRecorder()
	c := beego.NewContext()
	c.Reset(recorder, r)
	b.filter(c)
	return all(recorder.Code != http.StatusTooManyRequests, units), nil
}
