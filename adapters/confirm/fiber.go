package confirm

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/limiter"
	fiberredis "github.com/gofiber/storage/redis/v3"
	"github.com/valyala/fasthttp"
)

// Each application has a lock of its own, and all have one storage.
var fiberRace = Confirmation{Name: "fiber-redis-race", Redis: true, Run: func(env Env) (string, bool, error) {
	const applications = 8
	handlers := make([]fasthttp.RequestHandler, applications)
	for i := range handlers {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Use(limiter.New(limiter.Config{
			Max: 1, Expiration: time.Minute, Storage: fiberredis.NewFromConnection(env.Redis),
			KeyGenerator: func(ctx *fiber.Ctx) string { return ctx.Path() },
		}))
		app.Get("/*", func(ctx *fiber.Ctx) error { return ctx.SendStatus(http.StatusNoContent) })
		handlers[i] = app.Handler()
	}
	var worst int64
	for round := range 20 {
		var next atomic.Int64
		worst = max(worst, together(applications, func() bool {
			var requestCtx fasthttp.RequestCtx
			requestCtx.Request.SetRequestURI(fmt.Sprintf("/fiber-redis-race-%d", round))
			handlers[next.Add(1)-1](&requestCtx)
			return requestCtx.Response.StatusCode() == http.StatusNoContent
		}))
	}
	return fmt.Sprintf("of 8 requests at once to 8 applications with one storage up to %d were admitted; the limit is 1",
		worst), worst > 1, nil
}}
