package tiered

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/strategies"
)

// Jobs implements strategies.Jobber. A queue and a filter are an instance's own,
// and so is their job; a reset is for all.
func (in *instance) Jobs() []strategies.Job {
	var jobs []strategies.Job
	if in.write == writeBackMode {
		jobs = append(jobs, strategies.Job{Name: jobWriteBack, Pending: in.queue.pending, Run: in.writeBack})
	}
	if in.filter != nil {
		jobs = append(jobs, strategies.Job{Name: jobRebuild, Every: rebuildEvery, Pending: in.filterDue.Load, Run: in.rebuild})
	}
	if in.resets != nil {
		jobs = append(jobs, in.resetJob())
	}
	return jobs
}

// writeBack carries one batch of counts to the table. What the table has no
// column for is lost: no later round would find one.
func (in *instance) writeBack(ctx context.Context) (bool, error) {
	items := in.queue.take(batchSize)
	if len(items) == 0 {
		return false, nil
	}
	left, err := in.source.writeBack(ctx, items[0].use, items)
	done := len(items) - len(left)
	in.written.Add(int64(done))
	if err != nil {
		if !errors.Is(err, strategies.ErrPrescribed) {
			in.queue.putBack(left)
		}
		return done > 0, fmt.Errorf("write back %d counts: %w", len(left), err)
	}
	return true, nil
}

// rebuild makes the filter anew from the shared set.
func (in *instance) rebuild(ctx context.Context) (bool, error) {
	// Cleared first: a request for another round while members are read gets a round more.
	in.filterDue.Store(false)
	members, err := in.redis.SMembers(ctx, in.overQuota()).Result()
	if err != nil {
		in.filterDue.Store(true)
		return false, fmt.Errorf("read who is over quota: %w", err)
	}
	return in.filter.rebuild(members), nil
}
