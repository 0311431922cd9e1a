package hardened

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/strategies/internal/family"
	"github.com/redis/go-redis/v9"
)

// recallJob returns credit that the region holds of accounts of which others lack it. It
// leaves Redis before the database has it back, so that no unit is in both: what is
// lost in between is lost to the account.
func (in *instance) recallJob(ctx context.Context) (changed bool, err error) {
	list, err := in.source.recalled(ctx, in.region)
	if err != nil || len(list) == 0 {
		return false, err
	}
	pipe := in.redis.Pipeline()
	held := make([]*redis.Cmd, len(list))
	for i, recall := range list {
		held[i] = reclaimScript.EvalSha(ctx, pipe, []string{recall.key(in.prefix)}, drawPatience.Milliseconds())
	}
	_, err = pipe.Exec(ctx)
	back := make([]recall, 0, len(list))
	for i, recall := range list {
		units, unread := held[i].Int64()
		if unread == nil && units >= 0 { // otherwise a draw is under way: it is for the next round
			recall.units = units
			back = append(back, recall)
			in.returned.Add(units)
		}
	}
	if len(back) > 0 {
		err = errors.Join(err, in.source.giveBack(ctx, in.region, back))
	}
	if err != nil {
		return len(back) > 0, fmt.Errorf("return credit of %d accounts: %w", len(list), err)
	}
	return len(back) > 0, nil
}

func (m *modelSource) enroll(ctx context.Context, region string) error {
	return family.Statement(ctx, m.model, "INSERT INTO escrow_regions", func() {
		m.tables.regions[region] = true
	})
}

func (m *modelSource) recalled(ctx context.Context, region string) (list []recall, err error) {
	err = family.Statement(ctx, m.model, "SELECT recalled", func() {
		for k, usage := range m.tables.asked {
			if draws, ok := usage.holders[region]; ok {
				list = append(list, recall{account: account{subject: k.subject, policy: k.policy, window: k.window}, draws: draws})
			}
		}
	})
	slices.SortFunc(list, func(a, b recall) int {
		return cmp.Or(cmp.Compare(a.subject, b.subject), cmp.Compare(a.policy, b.policy), cmp.Compare(a.window, b.window))
	})
	return list[:min(len(list), recallBatch)], err
}

func (m *modelSource) giveBack(ctx context.Context, region string, list []recall) error {
	return family.Statement(ctx, m.model, "SELECT escrow_return", func() {
		for _, recall := range list {
			usage := m.tables.usage[recall.row()]
			if usage == nil {
				continue
			}
			draws, ok := usage.holders[region]
			if !ok { // it was set anew in between
				continue
			}
			if draws == recall.draws {
				delete(usage.holders, region)
			}
			usage.drawn = max(usage.drawn-recall.units, 0)
			usage.recalled = len(usage.holders) > 0
			m.tables.ask(recall.row(), usage)
		}
	})
}
