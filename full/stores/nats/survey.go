package nats

import (
	"context"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

func survey(context.Context) []stores.Finding {
	bin, _ := find()
	return []stores.Finding{server.SurveyProgram("nats-server", bin, "--nats process", "use --nats with a URL", install())}
}
