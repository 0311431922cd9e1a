package inproc

import (
	"strings"

	"github.com/quotabench/quotabench/harness/explore/engine"
	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Look implements [engine.Engine].
func (w *Engine) Look() engine.Look {
	l := engine.Look{AtRest: true, Ended: w.last.m == nil, Faults: w.faults(), SyncPeriod: w.used.synced}
	able := false
	for _, m := range w.actors {
		if m.client == nil && m.Job().Every() > 0 {
			l.PeriodicJobs = true
		}
		if m.Done() {
			continue
		}
		l.Ended = l.Ended && m.client == nil
		kind := m.Kind()
		switch {
		case kind == sched.Start:
			able = true // a request that has not come is not in flight
		case m.between():
			able = true
		case m.client == nil && kind == sched.Idle:
			if m.Ready() {
				l.AtRest, able = false, true
			}
		default:
			l.AtRest = false
			if m.Ready() || kind == sched.Sleep {
				able = true
			} else {
				l.Stuck = append(l.Stuck, m.String())
			}
		}
	}
	if able {
		l.Stuck = nil
	}
	for _, in := range w.instances {
		if in.forgot {
			l.Forgot = append(l.Forgot, in.index)
		}
	}
	return l
}

// faults lists those of this schedule so far.
func (w *Engine) faults() []quota.Fault {
	var out []quota.Fault
	u := w.used
	for _, x := range [...]struct {
		n int
		f quota.Fault
	}{
		{u.crash, quota.FaultCrash}, {u.lost, quota.FaultLostReply}, {u.retry, quota.FaultRetry},
		{u.tick, quota.FaultClock}, {u.evict, quota.FaultEviction}, {u.outage, quota.FaultOutage},
	} {
		if x.n > 0 {
			out = append(out, x.f)
		}
	}
	return out
}

// Holdings implements [engine.Engine].
func (w *Engine) Holdings() ([]engine.Holding, error) {
	w.s.Sync()
	keys, err := w.store.keys(w.s.Now())
	if err != nil {
		return nil, err
	}
	out := make([]engine.Holding, len(keys))
	for i, k := range keys {
		out[i] = engine.Holding{Name: k.name, Forever: k.left == 0, Left: k.left}
		if k.negative() {
			out[i].Negative = strings.Join(k.content, " ")
		}
	}
	return out, nil
}

// Used implements [engine.Engine].
func (w *Engine) Used() (readings []quota.Reading, ok bool) {
	v, ok := w.instances[0].strategy.(strategies.Viewer)
	if !ok {
		return nil, false
	}
	w.footAsks()
	readings, err := v.Used(setupContext, engine.Subject, w.run.Truth.Policy)
	return readings, err == nil
}

// Serial implements [engine.Engine]: a step of a client that is under way, else of
// a job, else of the next client.
func (w *Engine) Serial() (engine.Choice, bool) {
	best, rank := engine.Choice{}, 0
	for id, m := range w.actors {
		if m.Done() || !m.Ready() || m.client == w.last && m.between() {
			continue
		}
		r := 2
		switch {
		case m.client != nil && m.Kind() == sched.Start:
			r = 1
		case m.client != nil:
			r = 3
		}
		if r > rank {
			best, rank = engine.Choice{Kind: engine.StepActor, ID: id}, r
		}
	}
	return best, rank > 0
}
