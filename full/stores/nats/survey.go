package nats

import (
	"context"
	"runtime"

	"github.com/quotabench/quotabench/stores"
)

func survey(context.Context) []stores.Finding {
	f := stores.Finding{Name: "nats-server", Advice: "--nats process"}
	bin, err := find()
	switch {
	case runtime.GOOS == "windows":
		f.Detail, f.Advice = "servers are not started on this system", "use --nats with a URL"
	case err != nil:
		f.Detail, f.Advice = "not found on the PATH or in the usual folders", install()
	default:
		f.Found, f.Detail = true, bin
	}
	return []stores.Finding{f}
}
