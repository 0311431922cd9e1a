package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
)

// watchCores begins to read how long threads of this program and of the servers that were started for it wait for a
// core.
func (p *pass) watchCores(ctx context.Context) *monitor.Cores {
	if p.drive.timebase != wallTime {
		return monitor.NoCores()
	}
	var servers []int
	for _, store := range p.site.stores {
		if placed, ok := store.Store.(stores.Placed); ok && placed.Place() == stores.StartedHere {
			if more, err := placed.Processes(ctx); err == nil {
				servers = append(servers, more...)
			}
		}
	}
	return monitor.WatchCores(p.drive.timebase.nano, servers...)
}

// mark leaves marks in the stores, before the strategy is asked anything. Stores that a planned outage or loss takes
// away have none, nor those that evict keys: the mark might be one.
func (p *pass) mark(ctx context.Context) error {
	for name, store := range p.site.stores {
		planned := slices.ContainsFunc(p.site.outages, func(o *outage) bool { return p.site.concerns(o.Where.Name, name) })
		if !p.measurement.cfg.First() || store.Info().Evicts || planned || p.site.loses(name) {
			continue
		}
		if err := p.stores.Mark(ctx, name, store.Store, p.site.scope, &store.meter); err != nil {
			return err
		}
	}
	return nil
}

// canCompare reports whether what a store said of itself before and after the pass can be compared, and was not told of
// as a restart or a failover already.
func (p *pass) canCompare(store *siteStore) bool {
	return store.before.Known && store.after.Known && !p.stores.Restarted(store.name) && !p.site.failedOver(store.name)
}

// noticed is what happened to the stores.
func (p *pass) noticed() []harness.Notice {
	out := p.stores.Notices()
	for _, store := range p.site.stores {
		switch before, after := store.before, store.after; {
		case !p.canCompare(store):
		case stores.Restarted(before.Incarnation, after.Incarnation):
			out = append(out, harness.Notice{Fault: quota.FaultOutage, Code: codes.StoreRestarted,
				Detail: store.name + " was restarted during the run"}, harness.Notice{Fault: quota.FaultEviction})
		case after.Evicted > before.Evicted && after.Incarnation == before.Incarnation && !p.site.evicts(store):
			evicted := after.Evicted - before.Evicted
			out = append(out, harness.Notice{Fault: quota.FaultEviction, Code: "store-evicted",
				Detail: fmt.Sprintf("%s evicted %d keys during the run: it is out of memory", store.name, evicted)})
		}
	}
	if n := p.drive.counts.Degraded; n > 0 && len(p.site.outages) == 0 && !p.site.loses("") {
		out = append(out, harness.Notice{Fault: quota.FaultOutage, Code: "store-failed",
			Detail: "without a store, though no outage was planned: " + format.Number(n, "decision")})
	}
	return out
}

// deadline is that of a call: calls return by the wall clock, and under any other one
// none is watched.
func (m *measurement) deadline() time.Duration {
	if m.timebase != wallTime {
		return 0
	}
	return m.cfg.DecisionTimeout
}

// A strategy that has failed is left soon.
const lostDeadline = time.Second

// lose notes that the strategy has failed in a way after which it may not answer.
func (s *site) lose() {
	s.lost = true
	s.Deadline = min(s.Deadline, lostDeadline)
}

// hung notes so if err is that a call did not return.
func (s *site) hung(err error) {
	if _, hung := errors.AsType[*guard.HungError](err); hung {
		s.lose()
	}
}

// aside is how long what belongs to several calls may take, such as a round of a job.
func (s *site) aside() time.Duration {
	if s.lost {
		return s.Deadline
	}
	return 4 * s.Deadline
}

// failure is why the strategy could not be driven to the end, or nil.
func (d *drive) failure() error {
	if err := d.crash.Load(); err != nil {
		return err
	}
	if len(d.hung) > 0 {
		return d.hung[0]
	}
	return nil
}
