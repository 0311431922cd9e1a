package measure

import (
	"cmp"
	"context"
	"runtime/debug"
	"sync"

	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/workloads"
)

// work runs a loop on every worker, and returns when each has ended or was given up.
func (d *drive) work(ctx context.Context, loop func(k *worker)) {
	crew := make([]*worker, d.workers)
	callers := make([]*monitor.Caller, d.workers)
	var group sync.WaitGroup
	group.Add(len(crew))
	for i := range crew {
		crew[i] = d.newWorker(ctx, i)
		callers[i] = &crew[i].Caller
	}
	end := monitor.WatchCalls(ctx, d.deadline, callers, func(i int, err *guard.HungError) {
		d.stop.Store(true)
		crew[i].hung = err
		d.hung = append(d.hung, err)
		group.Done()
	})
	for _, k := range crew {
		go func() {
			through := false
			defer func() { k.exit(recover(), through, group.Done) }()
			k.Start()
			loop(k)
			through = true
		}()
	}
	group.Wait()
	end()
	for _, k := range crew {
		if k.hung != nil {
			k.lost(k.hung)
		}
		k.Close()
		d.end = max(d.end, k.last)
	}
}

// exit ends a worker's goroutine. A panic of the strategy ends the pass: other
// strategies go on, and decisions up to then are judged.
func (k *worker) exit(value any, through bool, done func()) {
	if !k.Ended() {
		return
	}
	if value == nil && !through {
		value = "it ended its goroutine"
	}
	if value != nil {
		err := &guard.PanicError{Where: cmp.Or(k.calling(), "a caller"), Value: value, Stack: debug.Stack()}
		k.drive.crash.CompareAndSwap(nil, err)
		k.drive.stop.Store(true)
		k.lost(err)
	} else {
		k.finish()
	}
	done()
}

// calling names the call of the strategy that the worker is in; "" is none.
func (k *worker) calling() string {
	switch {
	case k.settling != nil && k.settling.fate == workloads.FateCommit:
		return "a commit"
	case k.settling != nil:
		return "a refund"
	case k.call != 0:
		return "a decision"
	default:
		return ""
	}
}

// lost ends a worker whose last call has no answer: what became of it is not known.
func (k *worker) lost(err error) {
	drive := k.drive
	now := drive.timebase.nano()
	switch {
	case k.settling != nil:
		k.settlementOver(*k.settling, now, err)
	case k.call != 0:
		k.counts.Count(err)
		drive.errOnce.Do(func() { drive.counts.FirstError = err })
		k.lostTake(now)
	}
	k.finish()
}

// lostTake records a take that has no answer as one that failed.
func (k *worker) lostTake(now int64) {
	drive := k.drive
	operation := &k.op
	if drive.online {
		subject := drive.subjects.at(operation.Subject)
		window := drive.window(k.call)
		cell := subject.cell(window.index)
		if now >= window.end {
			drive.crossed(subject, window, now)
		}
		cell.Fail(operation.Units)
	}
	if drive.history != nil {
		event := oracle.Event{
			Call: k.call - drive.epoch, Reply: now - drive.epoch, Units: operation.Units, Subject: operation.Subject,
			Kind: oracle.Take, Outcome: oracle.Failed, Instance: k.instance,
		}
		drive.plan.Record(drive.history, k.id, event, 0, k.number)
	}
	drive.rec.recordLost(k.stripe, now-k.call, now-k.release.intended, drive.lateness.open)
	k.last = now
}
