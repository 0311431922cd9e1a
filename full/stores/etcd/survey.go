package etcd

import (
	"context"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

func survey(context.Context) []stores.Finding {
	bin, _ := find()
	return []stores.Finding{server.SurveyProgram("etcd", bin, "--etcd process", "use --etcd with a URL", install())}
}
