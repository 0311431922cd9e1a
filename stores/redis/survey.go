package redis

import (
	"context"
	"runtime"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

func survey(context.Context) []stores.Finding {
	f := stores.Finding{Name: "redis-server", Advice: "--redis process"}
	bin, err := find()
	switch {
	case runtime.GOOS == "windows":
		f.Detail, f.Advice = "servers are not started on this system", "use --redis with a URL, or --redis embedded"
	case err != nil:
		f.Detail, f.Advice = "not found on the PATH or in the usual folders", server.Install("redis-server", "redis", "redis", "redis")
	default:
		f.Found, f.Detail = true, bin
	}
	return []stores.Finding{f}
}
