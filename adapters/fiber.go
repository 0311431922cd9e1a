package adapters

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"
	fiberlimiter "github.com/gofiber/fiber/v2/middleware/limiter"
	"github.com/gofiber/fiber/v2/utils"
	fiberredis "github.com/gofiber/storage/redis/v3"
	"github.com/valyala/fasthttp"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	utils.StartTimeStampUpdater() // one for the whole program, which the first limiter would start
	library(strategies.Meta{
		Name: "lib-fiber-redis", Doc: "gofiber/fiber: its limiter middleware with its storage on Redis",
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.FirstRequest},
		Guarantee: []quota.Clause{quota.Exactly(quota.FaultClock)}, Serves: wholeSeconds,
		Foreign: true, ClockFixed: true,
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Use(fiberlimiter.New(fiberlimiter.Config{
			Max: int(policy.Limit), Expiration: policy.Window.RealLength(),
			Storage:      fiberredis.NewFromConnection(strategies.Redis(env)),
			KeyGenerator: func(ctx *fiber.Ctx) string { return string(ctx.Request().Header.Peek("X-Key")) },
		}))
		app.Get("/", func(ctx *fiber.Ctx) error { return ctx.SendStatus(http.StatusNoContent) })
		return fiberLimiter{app.Handler()}, nil
	})
}

type fiberLimiter struct{ handle fasthttp.RequestHandler }

func (f fiberLimiter) take(_ context.Context, key string, units int64) (int64, error) {
	var requestCtx fasthttp.RequestCtx
	requestCtx.Request.SetRequestURI("/")
	requestCtx.Request.Header.Set("X-Key", key)
	f.handle(&requestCtx)
	return all(requestCtx.Response.StatusCode() == http.StatusNoContent, units), nil
}
