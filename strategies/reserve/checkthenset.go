package reserve

import (
	"context"

	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var checkThenSetMeta = family.GivingBack(strategies.Meta{
	Name:    "check-then-set",
	Core:    true,
	Needs:   []strategies.Need{strategies.NeedRedis},
	Reset:   strategies.ResetsNever,
	Control: strategies.ControlRacy,
	// No clause: a late SET erases any number of reservations made since its GET.
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &family.CheckThenSet{Redis: strategies.Redis(env), Key: newKeys(env).used}, nil
	},
})
