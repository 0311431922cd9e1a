package etcd

import (
	"context"
	"runtime"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

func survey(context.Context) []stores.Finding {
	f := stores.Finding{Name: "etcd", Advice: "--etcd process"}
	bin, err := find()
	switch {
	case runtime.GOOS == "windows":
		f.Detail, f.Advice = "servers are not started on this system", "use --etcd with a URL"
	case err != nil:
		f.Detail, f.Advice = "not found on the PATH or in the usual folders", server.Install("etcd-server", "etcd", "etcd", "etcd")
	default:
		f.Found, f.Detail = true, bin
	}
	return []stores.Finding{f}
}
