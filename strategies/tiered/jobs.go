package tiered

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Jobs implements strategies.Jobber. A queue and a filter are an instance's own,
// and so is their job; a reset and a reconciliation are for all.
func (in *instance) Jobs() []strategies.Job {
	var jobs []strategies.Job
	if in.write == writeBackMode {
		jobs = append(jobs, strategies.Job{Name: jobWriteBack, Pending: in.queue.pending, Run: in.writeBack})
	}
	if in.filter != nil {
		jobs = append(jobs, strategies.Job{Name: jobRebuild, Every: in.rebuilds, Pending: in.rebuildDue, Run: in.rebuild})
	}
	if in.resets != nil {
		jobs = append(jobs, in.resetJob())
	}
	if in.reconciles > 0 {
		jobs = append(jobs, strategies.Job{Name: jobReconcile, Singleton: true, Every: in.reconciles, Run: in.reconcile})
	}
	return jobs
}

// writeBack carries one batch of counts to the table once the first of them is due:
// the queue's delay passes inside of the job. What the table has no column for is
// lost: no later round would find one.
func (in *instance) writeBack(ctx context.Context) (bool, error) {
	due, ok := in.queue.next()
	if !ok {
		return false, nil
	}
	if wait := due - in.clock.Now().UnixNano(); wait > 0 {
		if err := in.clock.Sleep(ctx, time.Duration(wait)); err != nil {
			return false, fmt.Errorf("wait for a write-back to be due: %w", err)
		}
	}
	items := in.queue.take(in.batch, in.clock.Now().UnixNano())
	left, err := in.source.writeBack(ctx, items[0].use, items)
	done := items[:len(items)-len(left)]
	in.written.Add(int64(len(done)))
	in.queue.delivered(done, in.clock.Now().UnixNano())
	if err != nil {
		if !errors.Is(err, strategies.ErrPrescribed) {
			in.queue.putBack(left)
		}
		return len(done) > 0, fmt.Errorf("write back %d counts: %w", len(left), err)
	}
	return true, nil
}

// rebuildDue reports whether a rebuild is asked for that has not died.
func (in *instance) rebuildDue() bool { return in.filterDue.Load() && !in.syncDead.Load() }

// rebuild makes the filter anew from the shared set. With sync=literal the first
// error is the last round: nothing catches it in the record's listing, and its loop
// is gone until the process starts anew.
func (in *instance) rebuild(ctx context.Context) (bool, error) {
	if in.syncDead.Load() {
		return false, nil
	}
	// Cleared first: a request for another round while members are read gets a round more.
	in.filterDue.Store(false)
	members, err := in.redis.SMembers(ctx, in.overQuota()).Result()
	if err != nil {
		in.filterDue.Store(true)
		in.syncDead.Store(in.syncDies)
		return false, fmt.Errorf("read who is over quota: %w", err)
	}
	return in.filter.rebuild(members), nil
}

// screened asks the filter, and counts what it answers.
func (in *instance) screened(s quota.Subject) bool {
	if in.filter == nil {
		in.passed.Add(1)
		return false
	}
	found, added := in.filter.look(s)
	if !found {
		in.passed.Add(1)
		return false
	}
	in.filtered.Add(1)
	if !added {
		in.falsePositives.Add(1)
	}
	return true
}

// Measures implements strategies.Meter. The tiers' hit rates follow from the first
// three: of all checks, the filter answered "filter hits"; of the "cache lookups",
// Redis answered all but the "cache misses". Times are in microseconds, from a
// charge to the statement that carries it.
func (in *instance) Measures() []strategies.Measure {
	out := []strategies.Measure{
		{Name: "cache lookups", Unit: "checks", Value: in.passed.Load()},
		{Name: "cache misses", Unit: "checks", Value: in.misses.Load()},
		{Name: "charge failed", Unit: "units", Value: in.chargeFailed.Load()},
	}
	if in.filter != nil {
		out = append(out,
			strategies.Measure{Name: "filter hits", Unit: "checks", Value: in.filtered.Load(), Metric: strategies.MetricFilterHits},
			strategies.Measure{
				Name: "false positives", Unit: "checks", Value: in.falsePositives.Load(), Metric: strategies.MetricFalsePositives,
			},
			strategies.Measure{Name: "filter size", Unit: "bytes", Value: in.filter.bytes(), Kind: strategies.MeasureLevel},
		)
	}
	if in.write == writeBackMode {
		out = append(out,
			strategies.Measure{Name: "written back", Unit: "statements", Value: in.written.Load()},
			strategies.Measure{Name: "queue depth", Unit: "charges", Value: in.queue.depth(), Kind: strategies.MeasureLevel},
			strategies.Measure{Name: "queue depth, most", Unit: "charges", Value: in.queue.longest.Load(), Kind: strategies.MeasureMost},
			strategies.Measure{Name: "queue lag, sum", Unit: "us", Value: in.queue.waited.Load()},
			strategies.Measure{
				Name: "queue lag, most", Unit: "us", Value: in.queue.latest.Load(), Kind: strategies.MeasureMost, Metric: strategies.MetricQueueLag,
			},
		)
	}
	if in.reconciles > 0 {
		out = append(out, strategies.Measure{Name: "reconciled", Unit: "fields", Value: in.reconciled.Load()})
	}
	return out
}
