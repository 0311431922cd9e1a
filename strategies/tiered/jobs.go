package tiered

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/codes"
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
func (in *instance) screened(subject quota.Subject) bool {
	if in.filter == nil {
		in.passed.Add(1)
		return false
	}
	found, added := in.filter.look(subject)
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
			strategies.Measure{Name: "filter hits", Unit: "checks", Value: in.filtered.Load(),
				Metric: codes.MetricFilterHits},
			strategies.Measure{
				Name: "false positives", Unit: "checks", Value: in.falsePositives.Load(), Metric: codes.MetricFalsePositives,
			},
			strategies.Measure{Name: "filter size", Unit: "bytes", Value: in.filter.bytes(), Kind: strategies.MeasureLevel},
		)
	}
	if in.write == writeBackMode {
		out = append(out,
			strategies.Measure{Name: "written back", Unit: "statements", Value: in.written.Load()},
			strategies.Measure{Name: "queue depth", Unit: "charges", Value: in.queue.depth(), Kind: strategies.MeasureLevel},
			strategies.Measure{Name: "queue depth, most", Unit: "charges", Value: in.queue.longest.Load(),
				Kind: strategies.MeasureMost},
			strategies.Measure{Name: "queue lag, sum", Unit: "us", Value: in.queue.waited.Load()},
			strategies.Measure{
				Name: "queue lag, most", Unit: "us", Value: in.queue.latest.Load(), Kind: strategies.MeasureMost,
				Metric: codes.MetricQueueLag,
			},
		)
	}
	if in.reconciles > 0 {
		out = append(out, strategies.Measure{Name: "reconciled", Unit: "fields", Value: in.reconciled.Load()})
	}
	return out
}

// reconcile overwrites counts and limits that the cache holds with those of the table,
// agent by agent. The table is read once, and first: what is charged after that, and what
// still waits in a queue, is erased. The shared set of agents over quota stays as it is.
func (in *instance) reconcile(ctx context.Context) (changed bool, err error) {
	for i := range in.uses {
		if !in.seen[i].Load() {
			continue
		}
		use := &in.uses[i]
		agents, err := in.source.counts(ctx, use.real())
		if err != nil {
			return changed, fmt.Errorf("read all %s: %w", use.real().usedColumn, fromSource(err))
		}
		for _, grant := range agents {
			count, err := in.overwrite(ctx, in.counts(grant.Subject), use.field, grant.Used)
			if err != nil {
				return changed, err
			}
			limit, err := in.overwrite(ctx, in.limits(grant.Subject), use.limitField, grant.Limit)
			if err != nil {
				return changed, err
			}
			changed = changed || count || limit
		}
	}
	return changed, nil
}

// overwrite sets a field of a hash that has another value. One that is missing stays so: of
// a count the next check asks the table, and a limit that is lost stays an error.
func (in *instance) overwrite(ctx context.Context, key, field string, n int64) (changed bool, err error) {
	text, err := in.redis.HGet(ctx, key, field).Result()
	if errors.Is(err, redis.Nil) || err == nil && text == strconv.FormatInt(n, 10) {
		return false, nil
	}
	if err == nil {
		err = in.redis.HSet(ctx, key, field, n).Err()
	}
	if err != nil {
		return false, fmt.Errorf("reconcile %s of %s: %w", field, key, err)
	}
	in.reconciled.Add(1)
	return true, nil
}

// writeBack tells the table what a count has become: the absolute value, as the
// record has it, so the order of arrival matters.
type writeBack struct {
	subject quota.Subject
	use     *use
	count   int64
	// queued is when the charge was made and due when the job may run, in nanoseconds
	// since 1970.
	queued, due int64
}

// queue holds an instance's write-backs in the order in which they were made. It
// is in memory, and what is left in it when the instance closes is lost.
type queue struct {
	mu    sync.Mutex
	items []writeBack

	// Totals for Measures. longest is how many items there have been at a time,
	// waited the sum of the times from charge to table in microseconds, and latest the
	// longest of them.
	longest, waited, latest strategies.Tally
}

func (q *queue) put(back writeBack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, back)
	q.longest.Most(int64(len(q.items)))
}

// next is when the first item is due; ok is false if there is none.
func (q *queue) next() (due int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].due, true
}

// take removes and returns the first items, at most n, all of one kind of use and
// none that is due later than the first or now, whichever is later.
func (q *queue) take(n int, now int64) []writeBack {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.items))
	for i := 1; i < n; i++ {
		if q.items[i].use != q.items[0].use || q.items[i].due > max(now, q.items[0].due) {
			n = i
		}
	}
	// Cloned, so that the batch does not keep the memory of the whole queue.
	taken := slices.Clone(q.items[:n])
	q.items = q.items[n:]
	if len(q.items) == 0 {
		q.items = nil
	}
	return taken
}

// putBack returns what could not be delivered to the head of the queue.
func (q *queue) putBack(items []writeBack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(items, q.items...)
}

// delivered notes that items reached the table at the moment now.
func (q *queue) delivered(items []writeBack, now int64) {
	for _, back := range items {
		late := max(0, now-back.queued) / 1_000 // the clock may have been set back
		q.waited.Add(late)
		q.latest.Most(late)
	}
}

func (q *queue) pending() bool { return q.depth() > 0 }

func (q *queue) depth() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(len(q.items))
}
