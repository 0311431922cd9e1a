package redis

import (
	"context"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

func survey(context.Context) []stores.Finding {
	bin, _ := find()
	return []stores.Finding{stores.Finding(server.SurveyProgram("redis-server", bin, "--redis process",
		"use --redis with a URL, or --redis embedded", server.Install("redis-server", "redis", "redis", "redis")))}
}
