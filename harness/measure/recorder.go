package measure

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// maxStripes bounds how many sets of histograms a run keeps: one set costs
// several hundred kilobytes. Up to this many workers have a set of their own
// and record without a lock.
const maxStripes = 64

// maxTiers is the most deciding tiers that a run tells apart.
const maxTiers = 16

// recorder keeps the latencies of a run, by outcome and deciding tier.
type recorder struct {
	stripes []stripe
	shared  bool // more workers than stripes
	tiers   tierSet
}

type stripe struct {
	mu sync.Mutex // taken only if workers share the stripe
	// batch holds closed-loop latencies that are in no histogram yet. Histograms
	// are large and each value has a place of its own in them: 64 misses of the
	// cache at once take little longer than one.
	batch   [64]sample
	batched int
	// live is what is shown while the pass goes on; nil if nothing is.
	live *liveStripe
	// latency is indexed by outcome and tier, service (open loop) likewise.
	latency [3 * maxTiers]*results.Histogram
	service [3 * maxTiers]*results.Histogram
	wait    *results.Histogram // from release to start
	settle  *results.Histogram // commits and refunds
	_       [64]byte
}

type sample struct {
	slot     uint8
	degraded bool
	took     int64
}

func newRecorder(workers int) *recorder {
	r := &recorder{stripes: make([]stripe, min(workers, maxStripes)), shared: workers > maxStripes}
	r.tiers.names.Store(&[]quota.Tier{""})
	return r
}

// warmed is a recorder for the pass that follows the one that r recorded, in closed
// loop: its histograms of the tiers that r saw exist already, in memory that was
// touched. Otherwise a short pass would spend some percent of its time on page faults,
// and an open loop of few requests would make one with nearly every request.
func (r *recorder) warmed(open bool) *recorder {
	out := &recorder{stripes: make([]stripe, len(r.stripes)), shared: r.shared}
	out.tiers.names.Store(r.tiers.names.Load())
	for i := range r.stripes {
		r.stripes[i].flush()
		for tier := range maxTiers {
			histogram := r.stripes[i].latency[slot(oracle.Admitted, uint8(tier))]
			if histogram == nil {
				continue
			}
			histogram.Reset() // writes to all of it, as touched does
			admitted := slot(oracle.Admitted, uint8(tier))
			rejected := slot(oracle.Rejected, uint8(tier))
			stripe := &out.stripes[i]
			stripe.latency[admitted] = histogram
			stripe.latency[rejected] = touched()
			if open {
				stripe.service[admitted] = touched()
				stripe.service[rejected] = touched()
			}
		}
		if open {
			out.stripes[i].wait = touched()
		}
	}
	return out
}

// spare are histograms of earlier passes. Those of one pass are tens of megabytes, which
// take several times as long to make as to empty.
var spare struct {
	sync.Mutex
	list []*results.Histogram
}

// touched is an empty histogram in memory that was written to.
func touched() (histogram *results.Histogram) {
	spare.Lock()
	if n := len(spare.list); n > 0 {
		histogram = spare.list[n-1]
		spare.list = spare.list[:n-1]
	}
	spare.Unlock()
	if histogram == nil {
		histogram = results.NewHistogram()
	}
	histogram.Reset()
	return histogram
}

// release leaves the histograms to later passes. Nobody may record or read any more.
func (r *recorder) release() {
	spare.Lock()
	defer spare.Unlock()
	for i := range r.stripes {
		stripe := &r.stripes[i]
		for _, histogram := range slices.Concat(stripe.latency[:], stripe.service[:],
			[]*results.Histogram{stripe.wait, stripe.settle}) {
			if histogram != nil {
				spare.list = append(spare.list, histogram)
			}
		}
	}
	r.stripes = nil
}

// forgetSpare gives the memory of all passes back.
func forgetSpare() {
	spare.Lock()
	defer spare.Unlock()
	spare.list = nil
}

func (r *recorder) stripe(worker int) *stripe { return &r.stripes[worker%len(r.stripes)] }

// record adds one closed-loop decision.
func (r *recorder) record(stripe *stripe, out oracle.Outcome, tier uint8, degraded bool, took int64) {
	if r.shared {
		stripe.mu.Lock()
		defer stripe.mu.Unlock()
	}
	if stripe.batched == len(stripe.batch) || stripe.live != nil && stripe.batched >= liveBatch {
		stripe.flush()
	}
	stripe.batch[stripe.batched] = sample{slot(out, tier), degraded, took}
	stripe.batched++
}

// flush moves the batch into the histograms.
func (s *stripe) flush() {
	if s.live != nil {
		s.live.add(s.batch[:s.batched])
	}
	for _, sample := range s.batch[:s.batched] {
		into(&s.latency[sample.slot]).Record(sample.took)
	}
	s.batched = 0
}

// openTimes are those of an open-loop decision, in ns: its response time from the intended
// start, its service time and its wait for a free worker.
type openTimes struct{ response, service, wait int64 }

// recordOpen adds one open-loop decision.
func (r *recorder) recordOpen(stripe *stripe, out oracle.Outcome, tier uint8, degraded bool, times openTimes) {
	if r.shared {
		stripe.mu.Lock()
		defer stripe.mu.Unlock()
	}
	i := slot(out, tier)
	if stripe.live != nil {
		stripe.live.add([]sample{{i, degraded, times.service}})
	}
	into(&stripe.latency[i]).Record(times.response)
	into(&stripe.service[i]).Record(times.service)
	into(&stripe.wait).Record(times.wait)
}

// recordLost adds a decision that has no answer: it took at least that long.
func (r *recorder) recordLost(stripe *stripe, service, response int64, open bool) {
	stripe.mu.Lock()
	defer stripe.mu.Unlock()
	i := slot(oracle.Failed, 0)
	if open {
		into(&stripe.latency[i]).RecordAtLeast(response)
		into(&stripe.service[i]).RecordAtLeast(service)
		return
	}
	into(&stripe.latency[i]).RecordAtLeast(service)
}

// recordSettle adds one commit or refund.
func (r *recorder) recordSettle(s *stripe, ns int64) {
	if r.shared {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	into(&s.settle).Record(ns)
}

// outcomes that latencies are told apart by, in the order of the slots.
var outcomes = [...]string{"admitted", "rejected", "error"}

// slot is the index of a histogram.
func slot(out oracle.Outcome, tier uint8) uint8 {
	switch out {
	case oracle.Admitted:
		return tier
	case oracle.Failed:
		return 2*maxTiers + tier
	default:
		return maxTiers + tier
	}
}

// into is the histogram at histogram, which is made if there is none.
func into(histogram **results.Histogram) *results.Histogram {
	if *histogram == nil {
		*histogram = touched()
	}
	return *histogram
}

// merge is the union of a run's histograms of one kind, by slot; nil for an empty one.
func (r *recorder) merge(pick func(*stripe) *[3 * maxTiers]*results.Histogram) (all [3 * maxTiers]*results.Histogram) {
	for i := range r.stripes {
		stripe := &r.stripes[i]
		stripe.flush()
		for slot, histogram := range pick(stripe) {
			if histogram == nil || histogram.Count() == 0 {
				continue
			}
			if all[slot] == nil {
				all[slot] = results.NewHistogram()
			}
			all[slot].Merge(histogram)
		}
	}
	return all
}

// mergeOne is the union of a histogram that every stripe may have.
func (r *recorder) mergeOne(pick func(*stripe) *results.Histogram) *results.Histogram {
	all := results.NewHistogram()
	for i := range r.stripes {
		if histogram := pick(&r.stripes[i]); histogram != nil {
			all.Merge(histogram)
		}
	}
	return all
}

// tierSet numbers the tiers of a run as they appear. Index 0 is no tier: an
// error decided nothing.
type tierSet struct {
	// folded counts decisions of tiers beyond maxTiers, which have no number.
	folded atomic.Int64
	mu     sync.Mutex
	names  atomic.Pointer[[]quota.Tier]
}

func (t *tierSet) index(name quota.Tier) uint8 {
	if i := slices.Index(*t.names.Load(), name); i >= 0 {
		return uint8(i)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	names := *t.names.Load()
	if i := slices.Index(names, name); i >= 0 {
		return uint8(i)
	}
	if len(names) == maxTiers {
		t.folded.Add(1)
		return 0
	}
	more := append(slices.Clip(names), name)
	t.names.Store(&more)
	return uint8(len(names))
}

func (t *tierSet) name(i uint8) string { return string((*t.names.Load())[i]) }
