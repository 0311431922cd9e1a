package service

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"
)

// CrowdSize is how many other subjects ask: tables of them are often emptied at a thousand, or at ten thousand.
var CrowdSize int64 = 10_100

// So many callers ask for them, for so long at most: a slow service is asked for fewer.
const (
	crowdCallers = 8
	crowdTime    = 3 * time.Second
)

// crowd has thousands of other subjects ask once each, and no command held. The runs in which the clients come one
// after the other leave them out: they tell whether answers repeat, and would take as long again.
func (c *client) crowd() (quota.Decision, error) {
	w := c.engine
	if w.InTurn {
		return quota.Decision{Admitted: true}, nil
	}
	c.instance.proxy.Hold(false)
	lasts := min(crowdTime, w.Setup.Patience/2) // the search takes a client for stuck that gets no answer for longer
	began := wall.Now()
	var begun, asked atomic.Int64
	var wrong atomic.Value
	var all sync.WaitGroup
	for range crowdCallers {
		all.Go(func() {
			for begun.Add(1) <= CrowdSize && wall.Now().Sub(began) < lasts && c.ctx.Err() == nil {
				if _, err := w.askFresh(c.ctx, c.instance, w.newSubject()); err != nil {
					wrong.Store(err)
					return
				}
				asked.Add(1)
			}
		})
	}
	all.Wait()
	w.crowdTook = wall.Now().Sub(began)
	if err, failed := wrong.Load().(error); failed {
		w.Err = unfit("a request of one of thousands of other subjects has no decision: %w", err)
		return quota.Decision{}, err
	}
	if n := asked.Load(); w.Run.Crowd == 0 || n < w.Run.Crowd {
		w.Run.Crowd = n
	}
	return quota.Decision{Admitted: true}, nil
}

// askFresh asks an instance for one unit of a subject.
func (w *Engine) askFresh(ctx context.Context, in *instance, subject quota.Subject) (quota.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Setup.Patience)
	defer cancel()
	return in.strategy.Take(ctx, quota.Request{Subject: subject, Policy: &w.Setup.Policy, Units: 1})
}

// timeTells refuses a run in which a request was admitted after those of others if time alone has the same effect: the
// clock of a process may go on meanwhile. A further subject uses its limit, and asks again after a time in which units
// come back that do so within two of such runs, one after the other. What is found is run that often again, so once is
// enough.
func (w *Engine) timeTells(in *instance) error {
	if w.timeTold || in.child == nil {
		return nil
	}
	w.timeTold = true
	pause := 2*w.crowdTook + time.Second
	subject := w.newSubject()
	for range w.Setup.Policy.Limit {
		if _, err := w.askFresh(w.base, in, subject); err != nil {
			return err
		}
	}
	decision, err := w.askFresh(w.base, in, subject)
	if err != nil || decision.Admitted {
		return err
	}
	select {
	case <-time.After(pause):
	case <-w.base.Done():
		return w.base.Err()
	}
	decision, err = w.askFresh(w.base, in, subject)
	if err == nil && decision.Admitted {
		err = unfit("by its own clock, units are free again after %v, so thousands of other subjects cannot be tried: "+
			"name a longer window in its settings", pause.Round(time.Second))
	}
	return err
}

// manyOthers is the subject of a request that stands for those of thousands of others.
var manyOthers = engine.SubjectOf(engine.Many)
