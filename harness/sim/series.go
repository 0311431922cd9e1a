package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// viewer is an instance that is asked for its counters.
type viewer struct {
	strategies.Viewer
	// region is added to the name of what is in Redis; the first one's other
	// tiers stand for all.
	region string
	first  bool
}

// sampler takes the samples.
type sampler struct {
	d     *drive
	out   *results.Series
	every time.Duration
	// viewers read the counters: one instance of each region that has a Redis of
	// its own.
	viewers []viewer
	err     error
	spent   int64 // commands that readings cost
}

func (s *sampler) run(ctx context.Context) {
	for !s.d.over && s.err == nil {
		if s.d.clock.Sleep(ctx, s.every) != nil {
			return
		}
		s.take()
	}
}

// take adds a sample. Readings happen at one instant and outside of all actors:
// they take no time and wait in no queue.
func (s *sampler) take() {
	d := s.d
	now := d.now()
	d.truth.at(now, d.windowAt)
	x := results.Sample{
		AtNS: now - d.epoch, Issued: d.issued, Admitted: d.admitted, Rejected: d.rejected, Errors: d.failed,
		InFlight: d.inFlight, Usage: d.truth.usage, Fill: d.truth.fill, Leak: d.truth.leak, FalseRejects: d.truth.falseRejects,
		Hits: append([]int64{}, d.hits[1:]...), Counters: []results.Counter{},
	}
	before := d.st.commands()
	if len(s.viewers) > 0 && d.truth.counts != quota.CountsNothing {
		s.err = s.read(&x, now)
	}
	s.spent += d.st.commands() - before
	s.out.Samples = append(s.out.Samples, x)
}

func (s *sampler) read(x *results.Sample, now int64) error {
	x.Counters = make([]results.Counter, len(s.out.Counters))
	fresh := make([]int64, len(s.out.Counters)) // readings behind the mean
	for _, tr := range s.d.truth.tracks {
		sub := &s.d.truth.subjects[tr.number]
		s.d.truth.touch(sub, now)
		if sub.crossed {
			continue // which window it was charged to is not known
		}
		want := s.d.truth.expected(sub)
		for _, v := range s.viewers {
			got, err := v.Used(context.Background(), sub.name, s.d.policy)
			if err != nil {
				return fmt.Errorf("read counters at %v: %w", time.Duration(x.AtNS), err)
			}
			for _, g := range got {
				name := string(g.Tier)
				if v.region != "" && g.Tier == quota.TierRedis {
					name += " " + v.region
				} else if !v.first {
					continue
				}
				i := s.counter(name)
				for len(x.Counters) <= i {
					x.Counters, fresh = append(x.Counters, results.Counter{}), append(fresh, 0)
				}
				fresh[i] += countReading(&x.Counters[i], g, want.Distance(g.Units), tr, now)
			}
		}
	}
	for i := range x.Counters {
		if fresh[i] > 0 {
			x.Counters[i].MeanNS /= fresh[i]
		}
	}
	return nil
}

// countReading adds a reading to c, and returns 1 if the truth once was what it
// says.
func countReading(c *results.Counter, g quota.Reading, drift int64, tr *track, now int64) int64 {
	c.Readings++
	if !g.Known {
		c.Unknown++
		return 0
	}
	if drift == 0 {
		return 1
	}
	c.Drifting++
	c.Drift += drift
	c.Size += abs(drift)
	if abs(drift) > abs(c.Worst) {
		c.Worst = drift
	}
	ns, ok := tr.stale(g.Units, now)
	if !ok {
		c.Never++
		return 0
	}
	c.StalenessNS = max(c.StalenessNS, ns)
	c.MeanNS += ns
	return 1
}

func (s *sampler) counter(name string) int {
	if i := slices.Index(s.out.Counters, name); i >= 0 {
		return i
	}
	s.out.Counters = append(s.out.Counters, name)
	return len(s.out.Counters) - 1
}

// finish makes all samples equally wide.
func (s *sampler) finish() {
	s.out.Tiers = []string{}
	for _, t := range s.d.tiers[1:] {
		s.out.Tiers = append(s.out.Tiers, string(t))
	}
	for i := range s.out.Samples {
		x := &s.out.Samples[i]
		for len(x.Hits) < len(s.out.Tiers) {
			x.Hits = append(x.Hits, 0)
		}
		for len(x.Counters) < len(s.out.Counters) {
			x.Counters = append(x.Counters, results.Counter{})
		}
	}
	s.out.Tracked = len(s.d.truth.tracks)
}
