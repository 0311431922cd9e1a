package service

import (
	"context"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

func init() {
	family.Register(notes, strategies.Meta{
		Name:    "http-bare",
		Doc:     "asks a gateway's location without a limit: the cost of a request over HTTP",
		Form:    strategies.Baseline,
		Outside: true,
		Kinds:   quota.Kinds(),
		Serves:  servesSingle,
		Counts:  quota.CountsNothing,
		Control: strategies.ControlOpen,
		Options: []quota.Option{{
			Name: "on", Default: string(NeedNginx), Values: []string{string(NeedNginx), string(NeedHAProxy)}, Doc: "the gateway that is asked",
		}},
		NeedsToo:  func(o quota.Options) []strategies.Need { return []strategies.Need{strategies.Need(o["on"])} },
		Guarantee: []quota.Clause{family.NoFalseReject()},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return openGateway(env, strategies.Need(env.Options["on"]), nil)
		},
	})
}
