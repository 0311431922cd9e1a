package measure

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// replicate waits until the replicas that are to take a store's place have all writes so far.
func (p *pass) replicate(ctx context.Context) error {
	p.stores.Prepared(ctx)
	return p.site.replicate(ctx)
}

// lookBefore reads what stores say of themselves, and then waits for the moment at which all generators begin.
func (p *pass) lookBefore(ctx context.Context) error {
	p.began = p.met
	p.counters.open(ctx, p)
	runtime.GC()
	p.site.observe(ctx, func(store *siteStore) *stores.Stats { return &store.before })
	return p.begin(ctx)
}

// decisions has the workers ask for decisions until the pass is over.
func (p *pass) decisions(ctx context.Context) error {
	p.before = p.gauge()
	stop := p.startBeside(ctx)
	p.timed(func() { p.drive.run(ctx) })
	stop()
	p.gaugeAgain()
	return nil
}

// timed has the timer of the measurement, if there is one, run while requests are measured.
func (p *pass) timed(run func()) {
	timer := p.measurement.cfg.Timer
	if timer == nil {
		run()
		return
	}
	timer.StartTimer()
	run()
	timer.StopTimer()
}

// gauges are readings of what a pass uses, as it begins.
type gauges struct {
	traffic traffic
	counts  map[string]stores.Counts // by store
	pools   map[string]stores.PoolUse
	cpu     machine.CPUTime
	own     ownCPU
	// others reports whether another measurement of this process was under way since.
	others func() bool
}

func (p *pass) gauge() gauges {
	before := gauges{traffic: p.site.traffic(heapAllocs()), counts: map[string]stores.Counts{}}
	p.meter = p.site.Meter()
	before.pools = p.site.poolUse()
	for name, store := range p.site.stores {
		before.counts[name] = store.meter.Snapshot()
	}
	before.cpu = machine.ReadCPU()
	before.own = readOwnCPU()
	before.others = watchOthers()
	return before
}

// gaugeAgain sets what the pass has used since it began.
func (p *pass) gaugeAgain() {
	p.machine = machine.ReadCPU().Sub(p.before.cpu)
	p.own = readOwnCPU().sub(p.before.own)
	p.accompanied = p.before.others()
	p.traffic = p.site.traffic(heapAllocs()).sub(p.before.traffic)
}

// startBeside begins all that goes on beside the decisions: planned trouble, and what watches stores, counters and
// cores. What it returns ends that.
func (p *pass) startBeside(ctx context.Context) (stop func()) {
	drive := p.drive
	live := p.measurement.cfg.Live
	over := p.plan(ctx)
	p.stores.Begin(ctx, drive.timebase.nano)
	p.counters.begin(ctx, drive)
	p.cores = p.watchCores(ctx)
	live.begin(p)
	return func() {
		p.cores.End()
		live.end(len(drive.hung) == 0)
		p.counters.end(ctx)
		p.stores.End(ctx)
		for _, name := range p.stores.Absent() {
			p.site.stores[name].absent = true
		}
		for _, end := range over {
			end()
		}
	}
}

// plan begins what is to happen while requests are measured. What it returns ends that.
func (p *pass) plan(ctx context.Context) (over []func()) {
	config := p.measurement.cfg
	drive := p.drive
	over = p.site.goWrong()
	p.limits = operator{drive: drive, session: p.site.Session}
	over = append(over, p.limits.schedule(ctx, config.Trouble.Of(trouble.Change), config.Duration), p.overwrite(ctx))
	if config.Duration > 0 && !p.measurement.latencyOnly && drive.place == 0 {
		over = append(over, p.keys.Schedule(drive.timebase.nano, config.Duration, func() map[string]results.StoredAt {
			return p.countKeys(ctx)
		}))
	}
	return over
}

// lookAfter reads what stores say of themselves after the pass, and what clients sent them. Its error is what ended
// planned trouble.
func (p *pass) lookAfter(ctx context.Context) error {
	site := p.site
	// A client forgets what it counted of a server that has left the cluster.
	if !slices.ContainsFunc(site.outages, (*outage).moves) {
		p.run.PoolWait = poolWaits(p.before.pools, site.poolUse())
	}
	for name, store := range site.stores {
		store.traffic = store.meter.Snapshot().Sub(p.before.counts[name])
	}
	site.observe(ctx, func(store *siteStore) *stores.Stats { return &store.after })
	if slices.ContainsFunc(site.outages, (*outage).restarts) {
		_ = p.drive.timebase.clock.Sleep(ctx, time.Duration(reconnectGrace)) // before clients are asked for counters
	}
	for _, outage := range site.outages {
		if outage.err != nil {
			return fmt.Errorf("%s: %w", outage.Event, outage.err)
		}
	}
	return cmp.Or(p.limits.err, p.overwriting)
}

// stop ends the background jobs, and gives the cores back.
func (p *pass) stop() {
	p.failed = p.drive.failure()
	if p.failed != nil {
		p.site.lose()
	}
	err := p.site.jobs.stop(p.site.aside())
	if err != nil && p.failed == nil {
		p.failed = err
		p.site.lose()
	}
	p.lift()
}

func heapAllocs() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}
