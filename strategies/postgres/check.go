package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// Values of options of pg-check.
const (
	checkLiteral = "literal"
	resetMonth   = "month"
)

func init() {
	family.Register(files, meta(strategies.Meta{
		Name:  "pg-check",
		About: strategies.About{Core: true},
		Reset: strategies.ResetsMissing,
		Options: []quota.Option{
			{Name: "pool", Type: "int", Min: "1", Max: "10000", Default: "100"},
			{Name: "timeout", Type: "duration", Min: "0s", Default: "100ms"},
			{Name: "check", Values: []string{"amount", checkLiteral}, Default: "amount"},
			{Name: "reset", Values: []string{"none", resetMonth}, Default: "none"},
		},
		Setup: strategies.Setup{Connections: func(_ string, options quota.Options) strategies.Connections {
			return strategies.Connections{Pool: int(options.Int("pool"))}
		}},
		// Of the admitted requests take the one that reads last. It fits into what
		// it reads, and a caller that charges after that read was in flight with it.
		// One that is checked literally fits except for all its units less one.
		// Neither a repeated command nor a lost reply is tolerated: a refund that is
		// made twice gives units of others back.
		Guarantee: []quota.Clause{{
			Property:  quota.PropertyLeak,
			Tolerates: []quota.Fault{quota.FaultCrash, quota.FaultOutage, quota.FaultLimit},
			Formula:   "L + (in flight - 1, literal: in flight) x largest cost",
			Bound: func(params quota.Params) int64 {
				n := max(params.Deciding-1, 0) * params.MaxCost
				if params.Options["check"] == checkLiteral {
					n += params.MaxCost - 1
				}
				return n
			},
		}},
		Open: openCheck,
	}))
}

// check is one instance of pg-check.
type check struct {
	usage
	literal  bool
	timeout  time.Duration // of a check; 0 is without end
	timeouts atomic.Int64
}

func openCheck(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	usage, err := openUsage(ctx, env)
	usage.resets = env.Options["reset"] == resetMonth
	return &check{usage: usage, literal: env.Options["check"] == checkLiteral, timeout: env.Options.Duration("timeout")},
		err
}

// Take implements strategies.Strategy.
func (c *check) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if c.timeout == 0 {
		return c.take(ctx, req)
	}
	limited, cancel := quota.WithTimeout(ctx, c.clock, c.timeout)
	defer cancel()
	decision, err := c.take(limited, req)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		c.timeouts.Add(1)
		return quota.Decision{}, fmt.Errorf("no answer within %s, %w: %w", c.timeout, strategies.ErrPrescribed, err)
	}
	return decision, err
}

func (c *check) take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	policy := req.Policy
	index := c.now(req.Policy)
	row := c.row(index)
	remaining, known, err := c.remaining(ctx, req.Subject, policy, row)
	if err != nil {
		return quota.Decision{}, err
	}
	if !known {
		if err := c.firstUse(ctx, req.Subject, policy, row); err != nil {
			return quota.Decision{}, err
		}
		// Not read again: a caller that inserts the row at this moment is one more
		// caller between check and charge, which is the flaw to be shown.
		remaining = policy.Limit
	}
	decision := quota.Decision{Tier: quota.TierPostgres, Remaining: max(remaining, 0)}
	if c.literal && remaining <= 0 || !c.literal && req.Units > remaining {
		return decision, nil
	}
	if err := c.charge(ctx, req.Subject, policy, row, req.Units); err != nil {
		return quota.Decision{}, fmt.Errorf("charge: %w", err)
	}
	return family.Admit(decision, req, index), nil
}

// Measures implements strategies.Meter.
func (c *check) Measures() []strategies.Measure {
	return []strategies.Measure{{Name: "timeouts", Unit: "timeouts", Value: c.timeouts.Load()}}
}
