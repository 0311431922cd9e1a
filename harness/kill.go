package harness

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/seed"
	"github.com/quotabench/quotabench/strategies"
)

// SetKills has callers killed as the text says: "0.01" for that share of them after their first
// command to a Redis, "0.01:2" after their second.
func (p *Plan) SetKills(text string) (err error) {
	share, after, counted := strings.Cut(text, ":")
	if p.KillShare, err = strconv.ParseFloat(share, 64); err == nil && counted {
		p.KillAfter, err = strconv.Atoi(after)
	}
	if err != nil || counted && p.KillAfter == 0 {
		return fmt.Errorf("%q is not of the form 0.01 or 0.01:2: the share of the callers, and after which of their commands", text)
	}
	return p.checkKills()
}

func (p *Plan) checkKills() error {
	if !(p.KillShare >= 0 && p.KillShare <= 1) || p.KillAfter < 0 || p.KillAfter > maxKillAfter {
		return fmt.Errorf("a share of %g of the callers is killed after their command %d: give a share from 0 to 1, and 1 to %d",
			p.KillShare, p.KillAfter, maxKillAfter)
	}
	return nil
}

// kills is what [Plan.SetKills] reads; "" if no caller is killed.
func (p *Plan) kills() string {
	if p.KillShare == 0 {
		return ""
	}
	return fmt.Sprintf("%g:%d", p.KillShare, p.KillAfter)
}

// Kills reports whether the caller of request i is to be killed. A nil plan kills none.
func (p *Plan) Kills(i int64) bool {
	return p != nil && p.KillShare > 0 && float64(seed.At(seed.Stream(p.Seed, seed.Kills), uint64(i))>>11)/(1<<53) < p.KillShare
}

// cannotKill is why callers of a strategy cannot be killed, or its counters be overwritten, as planned, or nil.
func (p *Plan) cannotKill(s strategies.Selection, mode strategies.Mode) error {
	switch {
	case len(p.Overwrites) > 0 && len(s.RedisNeeds()) == 0:
		return errors.New("it has no counter in a Redis that could be overwritten")
	case p.KillShare == 0:
	case len(s.RedisNeeds()) == 0:
		return errors.New("its callers send no command to a Redis after which they could be killed")
	case s.Client == strategies.AutoPipeline:
		return errors.New("its client sends the commands of several callers together, so that none can be killed after its own")
	case s.Foreign && mode == strategies.ModeSimulate:
		return errors.New("callers of foreign code cannot be killed in virtual time: measure it")
	}
	return nil
}
