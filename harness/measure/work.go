package measure

import (
	"cmp"
	"context"
	"runtime/debug"
	"sync"

	"github.com/quotabench/quotabench/internal/guard"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/workloads"
)

// work runs a loop on every worker, and returns when each has ended or was given up.
func (d *drive) work(ctx context.Context, loop func(k *worker)) {
	crew, callers := make([]*worker, d.workers), make([]*monitor.Caller, d.workers)
	var wg sync.WaitGroup
	wg.Add(len(crew))
	for i := range crew {
		crew[i] = d.newWorker(ctx, i)
		callers[i] = &crew[i].Caller
	}
	end := monitor.WatchCalls(ctx, d.deadline, callers, func(i int, err *guard.HungError) {
		d.stop.Store(true)
		crew[i].hung = err
		d.hung = append(d.hung, err)
		wg.Done()
	})
	for _, k := range crew {
		go func() {
			through := false
			defer func() { k.leaves(recover(), through, wg.Done) }()
			k.Start()
			loop(k)
			through = true
		}()
	}
	wg.Wait()
	end()
	for _, k := range crew {
		if k.hung != nil {
			k.lost(k.hung)
		}
		k.Close()
		d.end = max(d.end, k.last)
	}
}

// leaves ends a worker's goroutine. A panic of the strategy ends the pass: other
// strategies go on, and what was decided up to then is judged.
func (k *worker) leaves(v any, through bool, done func()) {
	if !k.Ended() {
		return
	}
	if v == nil && !through {
		v = "it ended its goroutine"
	}
	if v != nil {
		err := &guard.PanicError{Where: cmp.Or(k.calling(), "a caller"), Value: v, Stack: debug.Stack()}
		k.d.crash.CompareAndSwap(nil, err)
		k.d.stop.Store(true)
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
	d := k.d
	now := d.tb.nano()
	switch {
	case k.settling != nil:
		k.settled(*k.settling, now, err)
	case k.call != 0:
		k.counts.Count(err)
		d.errOnce.Do(func() { d.counts.FirstError = err })
		k.lostTake(now)
	}
	k.finish()
}

// lostTake records a take that has no answer as one that failed.
func (k *worker) lostTake(now int64) {
	d, op := k.d, &k.op
	if d.online {
		s := d.subjects.at(op.Subject)
		w := d.window(k.call)
		c := s.cell(w.index)
		if now >= w.end {
			d.crossed(s, w, now)
		}
		c.Fail(op.Units)
	}
	if d.history != nil {
		d.history.Append(k.id, oracle.Event{
			Call: k.call - d.epoch, Reply: now - d.epoch, Units: op.Units, Subject: op.Subject,
			Kind: oracle.Take, Outcome: oracle.Failed, Instance: k.instance,
		})
	}
	d.rec.recordLost(k.stripe, now-k.call, now-k.intended, d.lateness.open)
	k.last = now
}

// recordLost adds a decision that has no answer: it took at least that long.
func (r *recorder) recordLost(s *stripe, service, response int64, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slot(oracle.Failed, 0)
	if open {
		into(&s.latency[i]).RecordAtLeast(response)
		into(&s.service[i]).RecordAtLeast(service)
		return
	}
	into(&s.latency[i]).RecordAtLeast(service)
}
