package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// costs are per decision: what went over the connections in the pass, by the
// number of decisions.
func (p *pass) costs() {
	p.run.Meter = harness.MeterSince(p.meter, p.site.Meter()) // before the probe adds to it
	cost := &p.run.Cost
	counts := &p.drive.counts
	if n := float64(counts.Admitted + counts.Rejected + counts.Errors.Total()); n > 0 {
		cost.ProbeCost = p.traffic.cost(n)
		cost.ClientCPU = float64(p.own.used) / n
		cost.RunQueue = float64(p.own.waiting) / n
		for _, store := range p.site.stores {
			used := float64(max(0, store.after.CPU-store.before.CPU)) / n
			if asksSQL(store) {
				cost.PostgresCPU += used
			} else {
				cost.RedisCPU += used
			}
		}
	}
}

// leftovers counts what the strategy keeps when it is over, and then measures what one
// decision costs.
func (p *pass) leftovers(ctx context.Context) error {
	cost := &p.run.Cost
	if !p.measurement.cfg.First() {
		return nil // it would be told twice
	}
	if err := p.keep(ctx); err != nil {
		return err
	}
	// A store that has failed over has no replica any more. After a fault connections may be dead, and scripts forgotten.
	whole := !slices.ContainsFunc(p.site.outages, func(o *outage) bool { return o.failsOver() || o.Breaks() })
	if whole && p.run.Repetition == 1 && !p.drive.stop.Load() && !p.measurement.latencyOnly {
		probe, err := guard.Within(ctx, p.site.aside(), guard.Grace(p.site.Deadline), "the cost probe", p.probe)
		if err != nil {
			return err
		}
		cost.Probe = probe
	}
	return nil
}

// ownCPU is what this process has used of the processors.
type ownCPU struct {
	used time.Duration
	// waiting is how long its threads were ready to run and were not running:
	// the run-queue delay. Zero if the system does not tell.
	waiting time.Duration
}

// readOwnCPU reads both. Threads that have ended are missing from waiting.
func readOwnCPU() ownCPU {
	c := ownCPU{used: clock.Processor()}
	_, c.waiting = cores.ThreadTimes(os.Getpid())
	return c
}

func (c ownCPU) sub(earlier ownCPU) ownCPU {
	return ownCPU{c.used - earlier.used, max(0, c.waiting-earlier.waiting)}
}

// countKeys counts the strategy's keys in all stores if that can be done.
func (p *pass) countKeys(ctx context.Context) map[string]results.StoredAt {
	keys := map[string]results.StoredAt{}
	for name, store := range p.site.stores {
		// In an outage of the server's own nothing is known.
		if counter := monitor.Countable(store.Store); counter != nil {
			if n, err := counter.Count(ctx); err == nil {
				marks := p.stores.Marks(name) // which never expire
				keys[name] = results.StoredAt{Entries: max(0, n.Keys-store.others.Keys-marks),
					WithoutTTL: max(0, n.WithoutTTL-store.others.WithoutTTL-marks), Bytes: max(0, n.Bytes-store.others.Bytes)}
			}
		}
	}
	return keys
}

// keep counts what the strategy left in its stores.
func (p *pass) keep(ctx context.Context) error {
	cost := &p.run.Cost
	subjects := p.subjects()
	for _, name := range slices.Sorted(maps.Keys(p.site.stores)) {
		store := p.site.stores[name]
		if monitor.Follows(store.Store) {
			continue // its primary's
		}
		usage, err := store.Usage(ctx, p.site.scope)
		if err != nil {
			return fmt.Errorf("count keys: %w", err)
		}
		cost.KeysAtEnd += usage.Keys
		cost.KeysWithoutTTL += usage.WithoutTTL
		if p.measurement.latencyOnly {
			continue
		}
		over := p.keys.Over[name]
		if len(over) < bounds.Quarters-1 {
			over = nil // the run ended early
		}
		p.run.Stored = append(p.run.Stored, results.NewStored(name, subjects, usage.Keys+usage.Rows, usage.Bytes, over))
	}
	return nil
}

// subjects is how many the strategy was asked about, in the warm-up and in the pass, or
// that were set up.
func (p *pass) subjects() (n int64) {
	if _, setUp := p.site.Instances[0].(strategies.Provisioner); setUp {
		return warmSubjects + int64(p.drive.subjects.count)
	}
	for _, subject := range p.drive.subjects.all() {
		if subject.initial != 0 || subject.touched() {
			n++
		}
	}
	return p.warmed + n
}

// probeRequests is how many requests of each outcome a cost probe averages over.
const probeRequests = 16

// probeSubjects bounds how many unused subjects are tried: a filter may take one
// of them for another that has used up its quota, and reject it at once.
const probeSubjects = 8

// probeTimeouts is how many requests to a service may get no answer in time before a probe
// is given up: each may take seconds.
const probeTimeouts = 2

// probeAttempts is how often a probe is made until two count the same.
const probeAttempts = 5

// probe measures what one decision costs, exactly: one caller, one request at a
// time, no background jobs, scripts loaded and statements prepared, subjects of
// its own. Its figures are counts, the same on every machine. On a busy one a client may
// lose a connection and open another meanwhile, or the server may answer what was given up
// before, which is counted too. So a probe counts if another one counted the same. If no
// two do, the least counts are taken: of those in which no connection was opened, or of all,
// which are marked then.
func (p *pass) probe(ctx context.Context) (*results.Probe, error) {
	var calm, least, last *results.Probe
	for attempt := range uint64(probeAttempts) {
		probe, disturbed, err := p.probeOnce(ctx, attempt*probeSubjects)
		switch {
		case err != nil:
			return nil, err
		case probe == nil:
			continue
		case last != nil && probe.SameCounts(last):
			return probe, nil
		}
		last = probe
		least = probe.Least(least)
		if !disturbed {
			calm = probe.Least(calm)
		}
	}
	switch {
	case calm != nil:
		return calm, nil
	case least == nil:
		p.discard("probe-disturbed", codes.DiscardsNothing, "the cost probe met time-outs in each of %d attempts",
			probeAttempts)
		return nil, nil
	}
	least.Disturbed = true
	return least, nil
}

// probeOnce makes one attempt, with subjects from the given number on. A subject whose
// first request is rejected tells what a rejection costs and nothing else, so
// another one is tried; if all are rejected, that is what the strategy does. There is no
// probe if requests were not answered in time.
func (p *pass) probeOnce(ctx context.Context, first uint64) (out *results.Probe, disturbed bool, err error) {
	policy := *p.policy
	cost := policy.LeastCost()
	policy.Limit = probeRequests * cost
	late := false
	for number := first; number < first+probeSubjects; number++ {
		subject := quota.Subject(fmt.Sprintf("cost-probe-%d", number))
		grants := []strategies.Grant{{Subject: subject, Limit: policy.Limit}}
		if err := p.site.Provision(ctx, &policy, grants, 0); err != nil {
			return nil, false, err
		}
		before := p.site.setUps()
		probe, admitted, err := p.probeSubject(ctx, &policy, subject, cost, bounds.ProbeID+number<<16)
		if errors.Is(err, errProbeLate) {
			late = true
			break
		}
		if err != nil {
			return nil, false, err
		}
		if probe != nil {
			out = probe
			disturbed = p.site.setUps() != before
		}
		if admitted {
			break
		}
	}
	if late {
		return nil, true, nil
	}
	if out == nil {
		return nil, false, errors.New("cost probe: the first request of every subject failed")
	}
	return out, disturbed, nil
}

// errProbeLate is the end of an attempt in which requests got no answer in time.
var errProbeLate = errors.New("cost probe: no answer in time")

// probeSubject asks for one subject until it has been rejected often enough.
// admitted is set if its first request was. There is no probe if that one failed.
func (p *pass) probeSubject(ctx context.Context, policy *quota.Policy, subject quota.Subject, cost int64,
	firstID uint64) (out *results.Probe, admitted bool, err error) {
	out = &results.Probe{}
	var taken, rejected probeSum
	var failures harness.Failures
	for i := range uint64(4 * probeRequests) {
		before := p.site.traffic(mallocs())
		decision, err := p.site.Instances[0].Take(ctx,
			quota.Request{ID: firstID + i, Subject: subject, Policy: policy, Units: cost})
		if err != nil && !strategies.IsPrescribed(err) {
			failures.Count(err)
			if err := p.probeFailed(&failures, err); err != nil {
				return nil, false, err
			}
			if i == 0 { // of this subject there is no first decision
				return nil, false, nil
			}
			continue // no decision, and no cost of one
		}
		sent := p.site.traffic(mallocs()).sub(before)
		switch {
		case i == 0:
			out.First = sent.cost(1)
			admitted = decision.Admitted
		case decision.Admitted && taken.requests < probeRequests:
			taken.add(sent)
		case !decision.Admitted && rejected.requests < probeRequests:
			rejected.add(sent)
		}
		if rejected.requests == probeRequests {
			break
		}
	}
	out.Admitted = taken.mean()
	out.Rejected = rejected.mean()
	return out, admitted, nil
}

// probeFailed says whether a probe ends with a failed request. A service that fails now and
// then is no broken store.
func (p *pass) probeFailed(all *harness.Failures, err error) error {
	kinds := &all.Errors
	switch {
	case kinds.Store+kinds.Other > 0 && !p.run.Outside:
		return fmt.Errorf("cost probe: %w", err)
	case kinds.TimeOuts > probeTimeouts, kinds.TimeOuts > 0 && !p.run.Outside:
		return errProbeLate
	}
	return nil
}

// mallocs counts allocations so far, exactly: unlike reading the metric it stops
// the world, which a probe may.
func mallocs() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// probeSum adds up requests of one outcome.
type probeSum struct {
	requests int
	sent     traffic
}

func (s *probeSum) add(sent traffic) {
	s.requests++
	s.sent = s.sent.add(sent)
}

// mean is nil if there was no request of the outcome.
func (s *probeSum) mean() *results.ProbeCost {
	if s.requests == 0 {
		return nil
	}
	cost := s.sent.cost(float64(s.requests))
	return &cost
}
