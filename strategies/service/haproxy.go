package service

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

func init() {
	family.Register(files, strategies.Meta{
		Name:    "haproxy-req-rate",
		Needs:   []strategies.Need{NeedHAProxy},
		Outside: true,
		Kinds:   []quota.Kind{quota.Fixed, quota.Rolling},
		Serves:  servesPeriod,
		Counts:  quota.CountsAttempts,
		Options: []quota.Option{
			{Name: "threads", Default: "2", Type: "int", Min: "1", Max: "64"},
		},
		Guarantee: []quota.Clause{
			{
				Property: quota.PropertyLeak, Formula: "2 L - 1",
				Bound: func(p quota.Params) int64 { return max(0, p.Limit-1) },
			},
			{
				Property: quota.PropertyFalseReject, Formula: "any: rejected requests count",
				Bound: func(quota.Params) int64 { return quota.Unbounded },
			},
		},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return openGateway(env, NeedHAProxy, func(p *quota.Policy) map[string]string {
				return map[string]string{
					"period": strconv.FormatInt(p.Window.RealLength().Milliseconds(), 10) + "ms",
					"above":  strconv.FormatInt(p.Limit, 10), "threads": env.Options["threads"],
				}
			})
		},
	})
}

// longest period that HAProxy counts, in milliseconds of 31 bits.
const longest = 24 * 24 * time.Hour

// servesPeriod refuses policies whose window HAProxy would round.
func servesPeriod(p *quota.Policy) error {
	if l := p.Window.RealLength(); l < time.Millisecond || l%time.Millisecond != 0 || l > longest {
		return fmt.Errorf("policy %s: HAProxy counts over whole milliseconds, up to 24 days", p.Name)
	}
	if p.Limit > mostBurst {
		return fmt.Errorf("policy %s: a limit above %d is not tested with HAProxy", p.Name, mostBurst)
	}
	return servesSingle(p)
}
